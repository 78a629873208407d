//! Two kernels joined by veth devices: this machine's rate without the emulation.

use crate::rig::Case;
use anabranch_lab::kernel::Application;
use anabranch_lab::{Clock, LabError, Namespace};
use anabranch_units::Side;
use std::fmt::Write;

/// Both namespaces with their applications.
pub struct Pair {
    pub client: Namespace,
    pub clock: Clock,
    pub applications: [Application; 2],
    _server: Namespace,
}

impl Pair {
    pub fn start(case: &Case) -> Result<Self, LabError> {
        let (client, server) = (Namespace::new()?, Namespace::new()?);
        for namespace in [&client, &server] {
            let sysctls = case.kernel_settings().sysctls;
            let mut words = vec!["-q".to_owned(), "net.ipv4.conf.all.rp_filter=0".into()];
            words.push("net.ipv4.conf.default.rp_filter=0".into());
            words.extend(sysctls.into_iter().map(|(name, value)| format!("{name}={value}")));
            namespace.command("sysctl", &words.iter().map(String::as_str).collect::<Vec<_>>(), "")?;
        }
        let ip = |namespace: &Namespace, script: &str| namespace.command("ip", &["-batch", "-"], script);
        ip(&client, &client_script(case, &server.path()))?;
        ip(&server, &server_script(case))?;
        let clock = Clock::start();
        let applications =
            [case.application(&server, Side::Server, clock)?, case.application(&client, Side::Client, clock)?];
        Ok(Self { client, clock, applications, _server: server })
    }
}

/// Writing to a string cannot fail.
fn client_script(case: &Case, server: &str) -> String {
    let mut script = "link set lo up\nmptcp limits set subflow 8\n".to_owned();
    let addresses = case.addresses();
    for path in 0..case.paths() {
        let (address, table, metric) = (addresses.client(path), 100 + path, path + 1);
        let _ = writeln!(script, "link add path{path} type veth peer name path{path} netns {server}");
        let _ = writeln!(script, "link set path{path} up");
        let _ = writeln!(script, "addr add {address}/32 dev path{path}");
        let _ = writeln!(script, "rule add from {address} table {table}");
        let _ = writeln!(script, "route add default dev path{path} table {table}");
        let _ = writeln!(script, "route add {} dev path{path} src {address} metric {metric}", addresses.server(0));
        let _ = writeln!(script, "mptcp endpoint add {address} dev path{path} id {metric} subflow");
    }
    script
}

fn server_script(case: &Case) -> String {
    let addresses = case.addresses();
    let address = addresses.server(0);
    let mut script = format!("link set lo up\nmptcp limits set subflow 8\naddr add {address}/32 dev lo\n");
    for path in 0..case.paths() {
        let client = addresses.client(path);
        let _ = writeln!(script, "link set path{path} up");
        let _ = writeln!(script, "route add {client} dev path{path} src {address}");
    }
    script
}
