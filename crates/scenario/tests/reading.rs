//! What a scenario file means.

use anabranch_scenario::Document;

#[test]
fn smallest() {
    let d = Document::parse("x.toml", "duration='1s'\n[[path]]\nname='a'\nrate='25mbit'\ndelay='25ms'\n").unwrap();
    println!("{}", d.resolved());
}
