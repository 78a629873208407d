//! Scenarios and plug-ins that the page offers.

use serde::Serialize;
use serde_json::{Value, json};

/// A scenario that the page offers.
#[derive(Clone, Copy, Debug, Serialize)]
struct Preset {
    /// As in the page's address; of a built-in scenario, its name.
    name: &'static str,
    /// In the list.
    title: &'static str,
    /// TOML.
    text: &'static str,
    /// Settings of the page at first: the papers' runs are minutes long.
    set: &'static [&'static str],
}

const AS_IT_IS: &[&str] = &[];
const SHORT: &[&str] = &["warmup=1s", "duration=15s", "repeat=4"];

macro_rules! presets {
    ($($name:literal, $title:literal, $file:literal, $set:ident;)*) => {
        &[$(Preset { name: $name, title: $title, text: include_str!($file), set: $set }),*]
    };
}

/// In the order of the list; the first is shown first.
const PRESETS: &[Preset] = presets![
    "wifi-lte", "Wi-Fi and LTE", "../scenarios/wifi-lte.toml", AS_IT_IS;
    "train", "A train with two carriers", "../scenarios/train.toml", AS_IT_IS;
    "hotel", "A hotel that polices its guests", "../scenarios/hotel.toml", AS_IT_IS;
    "starlink-dsl", "Satellite and DSL (synthetic)", "../presets/starlink-dsl.toml", AS_IT_IS;
    "two-equal-paths", "Two equal paths", "../scenarios/two-equal-paths.toml", AS_IT_IS;
    "tight-window", "A tight receive window", "../scenarios/tight-window.toml", AS_IT_IS;
    "3g-wlan", "WLAN and 3G", "../scenarios/3g-wlan.toml", AS_IT_IS;
    "blest-3g-wlan-bulk", "BLEST paper: download over 3G and WLAN", "../scenarios/blest-3g-wlan-bulk.toml", SHORT;
    "blest-wlan-wlan-bulk", "BLEST paper: download over two WLANs", "../scenarios/blest-wlan-wlan-bulk.toml", SHORT;
    "bufferbloat", "A deep queue (bufferbloat)", "../presets/bufferbloat.toml", AS_IT_IS;
    "handover", "Handover: walking out of Wi-Fi", "../scenarios/handover.toml", AS_IT_IS;
    "failover", "Failover to a backup path", "../scenarios/failover.toml", AS_IT_IS;
    "shared-bottleneck", "A shared bottleneck", "../scenarios/shared-bottleneck.toml", AS_IT_IS;
    "call-over-wifi-and-lte", "A video call over Wi-Fi and LTE", "../scenarios/call-over-wifi-and-lte.toml", AS_IT_IS;
    "call-beside-backup", "A call beside a backup", "../scenarios/call-beside-backup.toml", AS_IT_IS;
    "video-over-wifi-and-lte", "A video over Wi-Fi and LTE", "../scenarios/video-over-wifi-and-lte.toml", AS_IT_IS;
    "web-page", "A web page", "../scenarios/web-page.toml", AS_IT_IS;
];

/// Presets, schedulers and congestion controls, as JSON.
pub fn catalogue() -> Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "presets": PRESETS,
        "schedulers": anabranch_schedulers::all().iter().map(|one| {
            json!({ "name": one.name, "about": one.about, "suffixes": anabranch_schedulers::takes_suffix(one) })
        }).collect::<Vec<_>>(),
        "congestion": anabranch_congestion::all().iter().map(|one| json!({ "name": one.name, "about": one.about })).collect::<Vec<_>>(),
    })
}
