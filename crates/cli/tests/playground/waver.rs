//! The fields of what wavers.

use super::{digest, served};

#[test]
fn a_field_changes_the_run_and_a_mistake_in_it_is_named() {
    let Some((_server, mut page)) = served() else { return };
    let plain = digest(&mut page);
    page.value("document.getElementById('waver').open = true");
    let field = |key: &str| format!("document.querySelector('#waver [data-key=\"wifi.{key}\"]')");
    let enter = |page: &mut super::Browser, key: &str, text: &str| {
        page.value("document.getElementById('digest').textContent = '…'");
        page.value(&format!("{}.value = {}", field(key), serde_json::json!(text)));
        page.value(&format!("{}.dispatchEvent(new Event('change'))", field(key)));
    };
    let mut seen = vec![plain.clone()];
    for (key, text) in [
        ("jitter", "3ms"),
        ("reorder", "{ probability = 0.05, by = \"4ms\" }"),
        ("arq", "{ loss = \"5%\", delay = \"8ms\" }"),
        ("aggregate", "4ms"),
        ("wake", "{ idle = \"10s\", delay = \"100ms\" }"),
        ("slots", "{ every = \"2s\", step = \"2ms\" }"),
        ("middlebox", "[{ kind = \"thin-acks\", every = 8 }]"),
        ("queue", "{ kind = \"pie\" }"),
        // Behind a policer nothing waits.
        ("police", "{ rate = \"10mbit\", burst = \"32KB\" }"),
        ("burst", "16KB"),
        ("mtu", "1280"),
        // A router drops the first window.
        ("mtu_signal", "icmp"),
        ("ip", "6"),
        ("start", "1s"),
        ("stop", "4s"),
    ] {
        enter(&mut page, key, text);
        let found = digest(&mut page);
        assert!(!seen.contains(&found), "{key}");
        seen.push(found);
        assert!(!page.text(&format!("{}.value", field(key))).is_empty(), "{key} is shown");
    }
    // Empty fields are what the scenario says.
    const BACK: [&str; 15] = [
        "stop",
        "start",
        "ip",
        "mtu_signal",
        "mtu",
        "queue",
        "burst",
        "police",
        "middlebox",
        "slots",
        "wake",
        "aggregate",
        "arq",
        "reorder",
        "jitter",
    ];
    for key in BACK {
        enter(&mut page, key, "");
        digest(&mut page);
    }
    assert_eq!(digest(&mut page), plain);
    enter(&mut page, "queue", "{ kind = \"pei\" }");
    page.wait_for("!document.getElementById('problem').hidden");
    let said = page.text("document.getElementById('problem').textContent");
    assert!(said.contains("pie"), "{said}");
    page.photograph("playground-waver", Some("#waver"));
    assert_eq!(page.complaints, Vec::<String>::new());
}
