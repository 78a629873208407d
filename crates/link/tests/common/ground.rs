//! Two namespaces with two pairs of interfaces between them, shaped by `tbf` or not. Needs root.

use super::{Congestion, Downloaded, MSS, Receiver, Sender, admit, settle, stop};
use anabranch_carrier::Counters;
use anabranch_lab::{LabError, Namespace};
use anabranch_link::{EcnMarks, secrets};
use anabranch_units::Duration;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;

/// The client's and the server's network: interfaces `va0`, `va1` there, one address here that both reach.
pub struct Ground {
    pub client: Namespace,
    pub server: Namespace,
}

/// The outcome of a download: the client's, its marks, the server's counters, and the congestion that the server noticed.
pub struct Carried {
    pub got: Downloaded,
    pub marks: EcnMarks,
    pub counters: Counters,
    pub congestion: Congestion,
}

/// The server's address.
pub const SERVER: &str = "10.99.9.1";
const LIMIT: Duration = Duration::from_secs(120);

fn run(namespace: &Namespace, program: &str, line: &str) {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    namespace.command(program, &arguments, "").unwrap_or_else(|error| panic!("{program} {line}: {error}"));
}

impl Ground {
    /// Each interface sends at most `rate` (of `tc`) if there is one. `None` where namespaces cannot be made.
    pub fn new(rate: Option<&str>) -> Option<Self> {
        let (Ok(client), Ok(server)) = (Namespace::new(), Namespace::new()) else {
            println!("SKIPPED: no network namespaces can be made here");
            return None;
        };
        let ground = Self { client, server };
        run(&ground.server, "ip", "link set lo up");
        run(&ground.client, "ip", "link set lo up");
        run(&ground.server, "ip", &format!("addr add {SERVER}/32 dev lo"));
        (0..2).for_each(|n| ground.join(n, rate));
        Some(ground)
    }

    /// Makes a client's interface, and the server's at its other end.
    pub fn join(&self, n: u32, rate: Option<&str>) {
        let Self { client, server } = self;
        run(client, "ip", &format!("link add va{n} type veth peer name vb{n} netns {}", server.path()));
        run(server, "ip", &format!("addr add 10.99.{n}.254/24 dev vb{n}"));
        run(server, "ip", &format!("link set vb{n} up"));
        self.address(n, 1);
        self.raise(n);
        for (namespace, device) in [(client, format!("va{n}")), (server, format!("vb{n}"))] {
            if let Some(rate) = rate {
                run(namespace, "tc", &format!("qdisc add dev {device} root tbf rate {rate} burst 3028 limit 100000"));
            }
        }
    }

    /// Gives a client's interface another address.
    pub fn address(&self, n: u32, host: u8) {
        run(&self.client, "ip", &format!("addr flush dev va{n}"));
        run(&self.client, "ip", &format!("addr add 10.99.{n}.{host}/24 dev va{n}"));
    }

    /// Puts a client's interface into service, with its route to the server.
    pub fn raise(&self, n: u32) {
        run(&self.client, "ip", &format!("link set va{n} up"));
        let route = format!("route replace {SERVER}/32 via 10.99.{n}.254 dev va{n} metric {}", 100 + n);
        run(&self.client, "ip", &route);
    }

    /// Sets the MTU of a client's interface, at which larger packets of the server end.
    pub fn resize(&self, n: u32, mtu: u32) {
        run(&self.client, "ip", &format!("link set va{n} mtu {mtu}"));
    }

    /// Puts a client's interface out of service.
    pub fn cut(&self, n: u32) {
        run(&self.client, "ip", &format!("link set va{n} down"));
    }

    /// Removes a client's interface.
    pub fn remove(&self, n: u32) {
        run(&self.client, "ip", &format!("link del va{n}"));
    }

    /// Does something on the server.
    pub fn on_server(&self, work: impl FnOnce() + Send + 'static) {
        self.server.spawn("target", work).unwrap();
    }

    /// A download over both interfaces; `at` is called after each turn with the bytes so far. With the server's counters.
    pub fn download(&self, size: u64, at: impl FnMut(u64) + Send) -> (Downloaded, Counters) {
        self.download_over(&["va0", "va1"], MSS, size, at)
    }

    /// The same over these interfaces, with segments of this payload.
    pub fn download_over(
        &self,
        interfaces: &[&str],
        mss: u32,
        size: u64,
        at: impl FnMut(u64) + Send,
    ) -> (Downloaded, Counters) {
        let Carried { got, counters, .. } = self.carry(interfaces, mss, size, at);
        (got, counters)
    }

    /// Marks ECN-capable packets that come to a client's interface faster than so many per second. An error where nftables cannot.
    pub fn mark(&self, n: u32, per_second: u32) -> Result<String, LabError> {
        let rules = format!(
            "table inet marks {{ chain incoming {{ type filter hook prerouting priority mangle; \
             iifname \"va{n}\" ip ecn ect0 limit rate over {per_second}/second ip ecn set ce; }}; }}"
        );
        self.client.command("nft", &["-f", "-"], &rules)
    }

    /// Packets that the shaper of the server's `n`th interface dropped, as the kernel counts them.
    pub fn dropped(&self, n: u32) -> u64 {
        let shown = self.server.command("tc", &["-s", "qdisc", "show", "dev", &format!("vb{n}")], "").unwrap();
        let count = shown.split_once("(dropped ").and_then(|(_, rest)| rest.split_once(',')).map(|(count, _)| count);
        count.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("no count of drops in {shown}"))
    }

    /// A download, as both ends saw it.
    pub fn carry(&self, interfaces: &[&str], mss: u32, size: u64, mut at: impl FnMut(u64) + Send) -> Carried {
        let (server, client) = (secrets::new_key(), secrets::new_key());
        let admitted = vec![admit(&client, "laptop")];
        let (public, stopped) = (server.key.public(), stop());
        let flag = stopped.clone();
        let address: SocketAddr = format!("{SERVER}:4500").parse().unwrap();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let work = move || {
            let sender = Sender::new(address, &server, admitted, "minrtt", size, mss);
            ready.send(()).unwrap();
            let sender = sender.run(&flag);
            (sender.driver.link.counters(), sender.congestion)
        };
        let serving = self.server.spawn("server", work).unwrap();
        is_ready.recv().unwrap();
        let got = self.client.enter(move || {
            let mut receiver = Receiver::new(client, public, address, interfaces);
            assert!(receiver.join());
            // Every path has an address and an MTU before the first packet.
            settle(&mut receiver.driver, Duration::from_millis(300));
            let got = receiver.download(interfaces.len() as u8, mss, LIMIT, |_, bytes| at(bytes));
            (got, receiver.driver.link.marks())
        });
        stopped.store(true, Ordering::Relaxed);
        let ((got, marks), (counters, congestion)) = (got.unwrap(), serving.join().unwrap().unwrap());
        Carried { got, marks, counters, congestion }
    }
}
