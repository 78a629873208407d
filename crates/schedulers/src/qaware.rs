//! QAware: the sender's own device queues decide, with the delay of the path behind them.

use crate::pick::{by_rtt, by_score, no_choice};
use anabranch_plugin::registry::Entry;
use anabranch_plugin::schedule::{Device, PathView, Round, Scheduler, SchedulerEvent, View};
use anabranch_units::{Duration, Instant, PathId};

page!(
    "\
# Idea

A host can read how many packets wait in its own network devices, which round trips show only later. Send on the path
where a packet would have left the device and crossed the path first.

# Rule

```text
T_j = (Q_j + 1)·s_j + R_j/2;  the eligible path with the least T_j; ties to the lower R, then id
```

Q_j is the number of packets in the device of path j, with those bound in this round; s_j the mean
time for which the device serves one, measured from its counter while it was never empty (gain 1/8, samples of 8
packets).

# When it helps

The bottleneck is the device itself (WLAN, a modem), is shared with other traffic of the host, or changes its rate:
the queue shows it within a packet.

# When it hurts

Where the bottleneck is further along the path, the device is empty and this is minRTT. The same holds where Linux keeps
packets back before they reach the device (TSQ, BQL).

# Departures

A path's queue is a device's only where the scenario says so: `device = true` under [[path]] declares that its
first queue, the bottleneck, own or shared, is in the sending host, as in the paper's testbed, and gives the host that
device's counters for all traffic (packets inside, packets sent), and nothing else. Without it Q_j and s_j are zero. The
smoothed RTT contains the device's queue of a round trip ago, so that a steady queue counts one and a half times. Paths
that share a device see the same queue, but not the packets that the round binds to the other path.

# References

Shreedhar, Mohan, Kaul, Kangasharju, QAware: A Cross-Layer Approach to MPTCP Scheduling, IFIP Networking 2018.
"
);

/// Registry entry.
pub const ENTRY: Entry<dyn Scheduler> = Entry {
    name: "qaware",
    aliases: &[],
    about: "the path with the least delay through the sender's device and across",
    page: PAGE,
    parameters: &[],
    build: |_| Box::new(QAware::default()),
};

/// Packets that make a sample of the service time.
const SAMPLE: u64 = 8;

/// The estimated pace of one device.
#[derive(Clone, Copy, Debug, Default)]
struct Service {
    /// Mean service time of a packet.
    mean: Option<Duration>,
    /// When the device was last read, and its state then.
    last: Option<(Instant, Device)>,
    /// The begin of its present busy period: the time, and packets sent until then.
    from: (Instant, u64),
}

impl Service {
    /// The device is read.
    fn look(&mut self, now: Instant, device: Device) {
        let Some((_, before)) = self.last.replace((now, device)) else {
            self.from = (now, device.sent);
            return;
        };
        // Some of the packets inside at the last reading are still there: it has not paused.
        if device.sent.saturating_sub(before.sent) >= u64::from(before.queued) {
            self.from = (now, device.sent);
            return;
        }
        let served = device.sent.saturating_sub(self.from.1);
        if served >= SAMPLE {
            let sample = now.since(self.from.0) / served;
            let fold = |mean: Duration| Duration::from_nanos(mean.as_nanos() / 8 * 7 + sample.as_nanos() / 8);
            self.mean = Some(self.mean.map_or(sample, fold));
            self.from = (now, device.sent);
        }
    }
}

/// QAware.
#[derive(Clone, Debug, Default)]
pub struct QAware {
    services: [Service; PathId::LIMIT],
}

impl QAware {
    /// Time until one more packet would reach the peer. Without an RTT sample: the longest.
    fn time(&self, path: &PathView) -> Duration {
        let Some(rtt) = path.srtt else { return Duration::MAX };
        let ahead = path.device.map_or(0, |device| u64::from(device.queued)) + u64::from(path.queued);
        self.services[path.id.index()].mean.unwrap_or_default() * (ahead + 1) + rtt / 2
    }
}

impl Scheduler for QAware {
    fn schedule(&mut self, round: &mut Round<'_>) {
        for p in round.paths() {
            if let Some(device) = p.device {
                self.services[p.id.index()].look(round.now(), device);
            }
        }
        if no_choice(round) {
            return by_rtt(round);
        }
        by_score(round, |a, b| self.time(a).cmp(&self.time(b)));
    }

    fn on_event(&mut self, event: &SchedulerEvent<'_>, _view: &View) {
        if let SchedulerEvent::PathUp { path } | SchedulerEvent::PathDown { path } = event {
            self.services[path.index()] = Service::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, path};

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// A device with a known service time of `micros` per packet.
    fn paced(micros: u64) -> Service {
        Service { mean: Some(Duration::from_micros(micros)), ..Service::default() }
    }

    #[test]
    fn the_queue_moves_the_choice() {
        for (queued, expect) in [(20, (20_500, 27_000, vec![])), (40, (30_500, 27_000, vec![0]))] {
            let with = |id, rtt, queued| PathView { device: Some(Device { queued, sent: 0 }), ..path(id, rtt, 100, 0) };
            let mut bench = Bench::new(&[with(0, 20, queued), with(1, 50, 0)]);
            let mut qaware = QAware::default();
            (qaware.services[0], qaware.services[1]) = (paced(500), paced(2000));
            let times: Vec<_> = bench.view.paths().iter().map(|p| qaware.time(p).as_micros()).collect();
            bench.write(1);
            bench.round(&mut qaware);
            assert_eq!((times[0], times[1], bench.bound(1)), expect);
        }
    }

    #[test]
    fn packets_bound_in_the_round_are_in_the_queue_too() {
        // A packet per ms on the first, R/2 = 10 and 15: five go there, then they alternate with a tie for the first.
        let with = |id, rtt| PathView { device: Some(Device::default()), ..path(id, rtt, 100, 0) };
        let mut bench = Bench::new(&[with(0, 20), with(1, 30)]);
        let mut qaware = QAware::default();
        (qaware.services[0], qaware.services[1]) = (paced(1000), paced(1000));
        bench.write(9);
        bench.round(&mut qaware);
        assert_eq!((bench.bound(0), bench.bound(1)), (vec![0, 1, 2, 3, 4, 5, 7], vec![6, 8]));
    }

    #[test]
    fn the_service_time_is_measured_while_the_device_is_busy() {
        let mut service = Service::default();
        for (ms, queued, sent) in [(0, 20, 0), (10, 20, 5), (15, 12, 7), (18, 30, 9)] {
            service.look(at(ms), Device { queued, sent });
        }
        assert_eq!(service.mean, Some(Duration::from_millis(2)));
        // Twice as fast: an eighth of the difference.
        service.look(at(26), Device { queued: 5, sent: 17 });
        assert_eq!(service.mean, Some(Duration::from_micros(1875)));
    }

    #[test]
    fn idle_time_is_no_service() {
        let mut service = Service::default();
        for (ms, queued, sent) in [(0, 3, 0), (1000, 9, 5), (2000, 0, 14), (3000, 9, 14), (3004, 5, 18), (3008, 9, 22)]
        {
            service.look(at(ms), Device { queued, sent });
        }
        assert_eq!(service.mean, Some(Duration::from_millis(1)));
    }

    #[test]
    fn without_devices_it_is_min_rtt() {
        let mut bench = Bench::new(&[path(0, 30, 2, 0), path(1, 20, 2, 0)]);
        bench.write(3);
        bench.round(&mut QAware::default());
        assert_eq!((bench.bound(1), bench.bound(0)), (vec![0, 1], vec![2]));
    }
}
