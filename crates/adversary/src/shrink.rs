//! The smallest case that breaks the same property.

use crate::case::Case;
use crate::parties::Plan;
use crate::verdict::Kind;
use crate::world::{played, run};
use anabranch_engine::{Settings, TcpSettings};
use anabranch_units::Duration;

/// Most runs that shrinking may take.
const RUNS: u32 = 4_000;

type Put = Box<dyn Fn(&mut TcpSettings)>;

/// Sets one setting each to its default; `timestamps` to what makes segments simpler.
fn defaults() -> Vec<Put> {
    // Every field by name: a new one does not compile until it is here.
    macro_rules! puts {
        ($($field:ident),* $(,)?) => {{
            let TcpSettings { $($field),* } = TcpSettings { timestamps: false, ..TcpSettings::default() };
            vec![$(Box::new(move |tcp: &mut TcpSettings| tcp.$field = $field)),*]
        }};
    }
    puts![
        recovery,
        tail_loss_probe,
        rto_min,
        rto_max,
        rto_initial,
        rto_form,
        initial_window,
        abc_limit,
        ack_counting,
        cwnd_slack,
        slow_start_at_threshold,
        initial_ssthresh,
        idle_restart,
        mtu_probing,
        limited_decay,
        receive_window,
        buffer_accounting,
        autotune,
        delayed_ack,
        quick_acks,
        pacing,
        nagle,
        timestamps,
        sack,
        ecn,
        syn_retries,
        retries,
        keep_alive,
        time_wait,
    ]
}

struct Shrinker {
    best: Case,
    kind: Kind,
    runs: u32,
}

/// The smallest case found that breaks the same property as `case`; `case` itself if it breaks none.
pub fn shrink(case: &Case) -> Case {
    let (result, deeds) = played(case);
    let Err(failure) = result else { return case.clone() };
    let mut shrinker = Shrinker { best: case.clone(), kind: failure.kind, runs: 0 };
    shrinker.attempt(|c| c.deeds = Some(deeds.clone()));
    for _ in 0..3 {
        let before = format!("{:?}", shrinker.best);
        shrinker.thin_out(|c| c.deeds.as_mut());
        shrinker.thin_out(|c| Some(&mut c.script));
        shrinker.thin_out(|c| Some(&mut c.floods));
        shrinker.simplify();
        if format!("{:?}", shrinker.best) == before {
            break;
        }
    }
    shrinker.best
}

impl Shrinker {
    /// Keeps a change if the case still breaks the same property.
    fn attempt(&mut self, change: impl FnOnce(&mut Case)) -> bool {
        let mut changed = self.best.clone();
        change(&mut changed);
        self.runs += 1;
        let same = self.runs < RUNS && run(&changed).err().is_some_and(|failure| failure.kind == self.kind);
        if same {
            self.best = changed;
        }
        same
    }

    /// Removes as many items of a list as possible, in parts of decreasing size.
    fn thin_out<T>(&mut self, list: impl Fn(&mut Case) -> Option<&mut Vec<T>>) {
        let len = |case: &mut Case| list(case).map_or(0, |items| items.len());
        let mut part = len(&mut self.best);
        while part > 0 {
            let mut at = 0;
            while at < len(&mut self.best) {
                let kept = !self.attempt(|c| {
                    if let Some(items) = list(c) {
                        let end = (at + part).min(items.len());
                        items.drain(at..end);
                    }
                });
                if kept {
                    at += part;
                }
            }
            part /= 2;
        }
    }

    fn simplify(&mut self) {
        self.attempt(|c| c.start = anabranch_units::Instant::ZERO);
        while self.best.paths.len() > 1
            && self.attempt(|c| {
                c.paths.pop();
            })
        {}
        for n in 0..2 {
            self.simplify_party(n);
        }
        for n in 0..self.best.paths.len() {
            self.attempt(|c| c.paths[n].nat = None);
            self.attempt(|c| c.paths[n].dark.clear());
            self.attempt(|c| c.paths[n].v6 = false);
            self.attempt(|c| c.paths[n].delay = [Duration::from_millis(10); 2]);
            self.attempt(|c| c.paths[n].byte_ns = [100; 2]);
            self.attempt(|c| c.paths[n].byte_ns = [0; 2]);
        }
    }

    fn simplify_party(&mut self, n: usize) {
        let settings = Settings::default();
        let tcp = TcpSettings::default();
        self.attempt(|c| c.parties[n].parameters.clear());
        self.attempt(|c| {
            c.parties[n].scheduler = "minrtt".into();
            c.parties[n].parameters.clear();
        });
        self.attempt(|c| c.parties[n].policies.clear());
        self.attempt(|c| c.parties[n].congestion = "reno");
        self.attempt(|c| c.parties[n].backups = 0);
        self.attempt(|c| c.parties[n].accept_announced = false);
        self.attempt(|c| c.parties[n].settings.tcp = TcpSettings { timestamps: false, nagle: false, ..tcp.clone() });
        self.attempt(|c| c.parties[n].settings.tcp = tcp.clone());
        // Checksums stay on where the failure was found with them: their absence must not explain it.
        if self.best.parties[1 - n].settings.checksum || !self.best.class.needs_checksums() {
            self.attempt(|c| c.parties[n].settings.checksum = false);
        }
        self.attempt(|c| c.parties[n].settings.dss = settings.dss);
        self.attempt(|c| c.parties[n].settings.recv_buffer = settings.recv_buffer);
        self.attempt(|c| c.parties[n].settings.send_buffer = settings.send_buffer);
        self.attempt(|c| c.parties[n].settings.early_rescue = settings.early_rescue);
        self.attempt(|c| c.parties[n].settings.rejoin_after = settings.rejoin_after);
        self.attempt(|c| c.parties[n].settings.orphan_timeout = settings.orphan_timeout);
        self.attempt(|c| c.parties[n].settings.mss = 1000);
        self.attempt(|c| c.parties[n].plan = Plan::simple(0));
        self.attempt(|c| c.parties[n].plan = Plan::simple(c.parties[n].plan.bytes));
        self.attempt(|c| {
            c.parties[n].plan = Plan { end: c.parties[n].plan.end, ..Plan::simple(c.parties[n].plan.bytes) }
        });
        while self.best.parties[n].plan.bytes > 1 && self.attempt(|c| c.parties[n].plan.bytes /= 2) {}
        let round = self.best.parties[n].plan.bytes / 1000 * 1000;
        if round > 0 {
            self.attempt(|c| c.parties[n].plan.bytes = round);
        }
        self.simplify_tcp(n);
    }

    /// Resets each setting alone, where resetting all at once changed the failure.
    fn simplify_tcp(&mut self, n: usize) {
        if self.best.parties[n].settings.tcp != TcpSettings::default() {
            for put in defaults() {
                self.attempt(|c| put(&mut c.parties[n].settings.tcp));
            }
        }
    }
}
