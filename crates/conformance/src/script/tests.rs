//! The meaning of scripts, and the texts of errors.

use super::*;
use core::time::Duration;

const HEAD: &str = "# A title\n# in two lines.\nclause rfc8684 3.1\nkernel passes\n";

fn parsed(steps: &str) -> Script {
    Script::parse("a.script", &format!("{HEAD}{steps}\n")).expect("a script")
}

fn refused(text: &str) -> String {
    Script::parse("a.script", text).expect_err(text).to_string()
}

fn refused_step(step: &str) -> String {
    refused(&format!("{HEAD}{step}\n"))
}

#[test]
fn a_header_says_what_the_script_stands_for() {
    let text = "# What\n\nclause rfc9293 3.10.7\nclause rfc5961 §4 SYN, late\nkernel differs, because it answers: at once.\n\
                engine fails, because of that\nset mss 536\nset rto_min 0.05\npath 1 local.0 peer.1 port 9\njoin 1 backup\n+0 connect\n";
    let script = Script::parse("a.script", text).expect("a script");
    assert_eq!(script.title, "What");
    let clause = |document: &str, section: &str, rule: &str| Clause {
        document: document.into(),
        section: section.into(),
        rule: rule.into(),
    };
    assert_eq!(script.clauses, [clause("rfc9293", "3.10.7", ""), clause("rfc5961", "4", "SYN, late")]);
    assert_eq!(script.kernel, KernelWord::Differs("it answers: at once".into()));
    assert_eq!(script.engine, EngineWord::Fails("of that".into()));
    assert_eq!((script.settings.mss, script.settings.rto_min), (536, Duration::from_millis(50)));
    assert_eq!(script.paths, [PathLine { path: 1, local: 0, peer: 1, port: Some(9), local_port: None }]);
    assert_eq!(script.joins, [JoinLine { path: 1, backup: true }]);
    assert!(script.is_client());
    assert_eq!(parsed("+0 listen").title, "A title in two lines.");
}

#[test]
fn times_are_ranges() {
    let after = |step: &str| parsed(step).steps[0].after;
    let ms = Duration::from_millis;
    assert_eq!(after("+0.25 close"), After { least: ms(250), most: Most::Exactly });
    assert_eq!(after("+.2~0.3 > . 1:1(0) ack 1"), After { least: ms(200), most: Most::Until(ms(300)) });
    assert_eq!(after("+2~ > . 1:1(0) ack 1"), After { least: ms(2000), most: Most::Open });
    assert_eq!(after("+5ms close").least, ms(5));
    assert_eq!(parsed("+0.1 repeat 3 close").steps.len(), 3);
}

#[test]
fn a_packet_is_read_field_by_field() {
    let script =
        parsed("+0 1< SP. -1:9(10) ack =7 win 5 ecn ce <sack 1:2 3:4, raw 0xfd02> payload from 3 checksum bad");
    let What::In(1, pattern) = &script.steps[0].what else { panic!("{script:?}") };
    let expected = Pattern {
        flags: 0x1a,
        open_flags: false,
        seq: Number::At(-1),
        len: Some(10),
        ack: Some(Number::Wire(7)),
        window: Some(5),
        ecn: 3,
        options: vec![OptionPattern::Sack(vec![(1, 2), (3, 4)]), OptionPattern::Raw(vec![0xfd, 2])],
        open: false,
        payload: Sort::From(3),
        bad_checksum: true,
    };
    assert_eq!(*pattern, expected);
}

#[test]
fn an_option_may_leave_out_what_is_computed() {
    let script = parsed("+0 > . *:*(*) ack * <mp_join syn id 1, dss dack 5, ...>");
    let What::Out(0, pattern, Need::Required) = &script.steps[0].what else { panic!("{script:?}") };
    let join = OptionPattern::JoinSyn { backup: false, id: Field::Is(1), token: Field::Right, nonce: Field::Any };
    let ack = Some(Wide { width: Width::Either, at: Number::At(5) });
    assert_eq!(pattern.options, [join, OptionPattern::Dss { fin: false, ack, map: None }]);
    assert!(pattern.open && pattern.len.is_none());
}

#[test]
fn errors_name_the_place_and_the_nearest_word() {
    assert_eq!(
        refused("claus rfc8684 3.1\n"),
        "a.script:1:1: `claus`: not a line of a header; there are clause, kernel, \
                engine, set, path, join; did you mean `clause`?"
    );
    assert!(refused_step("set checksm on").contains("a.script:5:5: `checksm`: not a setting"));
    assert!(refused_step("set checksm on").ends_with("did you mean `checksum`?"));
    assert!(refused_step("+0 lisen").starts_with("a.script:5:4: `lisen`: not a step"));
    assert!(refused_step("+0 lisen").ends_with("did you mean `listen`?"));
    assert!(refused_step("+0 > . 1:1(0) ack 1 <ds dack8 1>").ends_with("did you mean `dss`?"));
    assert!(refused_step("+0 < . 1:9(9) ack 1").starts_with("a.script:5:10: `9`: is not the first number plus"));
    assert!(refused_step("+0 < . 1:1(0)").contains("the end of the line: a packet with ACK (`.`) needs its `ack`"));
    assert!(refused_step("+0 < . 1:1(0) ack 1 <mss *>").contains("must have all its fields"));
    assert!(refused_step("+0 < . *:*(0) ack 1").contains("must have all its numbers"));
    assert!(refused_step("+0~1 close").contains("only what the host sends may take a range"));
    assert!(refused_step("+0 write \"a").contains("a quotation mark is missing"));
    assert!(refused_step("+0 close now").contains("`now`: nothing should follow here"));
    assert!(refused_step("+0 listen\nset mss 9").contains("stands before the first step only"));
    assert!(refused_step("listen").contains("not a line of a header"));
    assert!(refused("# a\nkernel passes\n+0 close\n").contains("names no `clause`"));
    assert!(refused("# a\nclause rfc1 1\n+0 close\n").contains("what the `kernel` does"));
    assert!(refused("clause rfc1 1\nkernel passes\n+0 close\n").contains("no comment at its top"));
    assert!(refused("# a\nclause rfc1 1\nkernel passes\n").contains("has no step"));
    assert!(refused("# a\nclause rfc1 1\nkernel differs\n").contains("`,` should stand here"));
}

#[test]
fn every_word_of_the_tables_is_understood() {
    for step in [
        "+0 backup 1",
        "+0 nobackup 1",
        "+0 reset 1",
        "+0 anew 0",
        "+0 opening",
        "+0 closed aborted",
        "+0 read nothing",
    ] {
        parsed(step);
    }
    for (name, value) in [("dss", "4"), ("keep_alive", "2"), ("scheduler", "blest"), ("rack", "off")] {
        parsed(&format!("set {name} {value}\n+0 close"));
    }
    assert!(refused_step("set dss 6").contains("4 or 8"));
}
