//! Sweeps from outside the file: their notation, their cells, their numbers.

use anabranch_scenario::{Code, Diagnostic, Document, NoFiles, Override, Source, Swept, read, swept};

const TEXT: &str = "duration = '10s'\n[[path]]\nname = 'a'\nrate = '8mbit'\ndelay = '10ms'\n\
    [[path]]\nname = 'b'\nrate = '2mbit'\ndelay = '40ms'\n";

fn sweep(text: &str, sweeps: &[&str], zip: bool, set: &[&str]) -> Result<Document, Vec<Diagnostic>> {
    let sweeps = sweeps.iter().map(|sweep| Override::sweep("--sweep", sweep, zip));
    let overrides: Vec<Override> = sweeps.chain(set.iter().map(|set| Override::parse("--set", set))).collect();
    read(&Source { name: "s.toml".into(), text: text.into() }, &overrides, &NoFiles)
}

/// The cells' values as written.
fn cells(document: &Document) -> Vec<String> {
    let values = |cell: &[(String, String)]| cell.iter().map(|(_, value)| value.clone()).collect::<Vec<_>>().join(" ");
    document.cells.iter().map(|(cell, _)| values(cell)).collect()
}

fn refused(text: &str, sweeps: &[&str], zip: bool, set: &[&str]) -> (Code, String) {
    let wrong = sweep(text, sweeps, zip, set).expect_err("it is refused");
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    (wrong[0].code, wrong[0].message.clone())
}

#[test]
fn sweeps_make_a_grid_whose_last_key_varies_fastest() {
    let document = sweep(TEXT, &["path.b.delay=40ms..160ms*2", "recv_buffer=64KiB,1MiB"], false, &[]).unwrap();
    assert_eq!(cells(&document), ["40ms 64KiB", "40ms 1MiB", "80ms 64KiB", "80ms 1MiB", "160ms 64KiB", "160ms 1MiB"]);
    assert_eq!(document.cells[0].0[1].0, "recv_buffer");
    assert_eq!(document.cells[5].1.settings.recv_buffer, 1 << 20);
    let plug_ins = sweep(TEXT, &["scheduler=minrtt,blest(delta=0.01)", "seed=1..3"], false, &[]).unwrap();
    assert_eq!(plug_ins.cells.len(), 6);
    assert_eq!(cells(&plug_ins)[5], "blest(delta=0.01) 3");
}

#[test]
fn zipped_keys_advance_together_and_the_files_own_sweep_crosses_them() {
    let text = format!("{TEXT}[sweep]\n\"path.a.loss\" = ['1%', '2%']\n");
    let document = sweep(&text, &["path.a.rate=1mbit,2mbit", "path.b.rate=5mbit..6mbit/2"], true, &[]).unwrap();
    assert_eq!(cells(&document), ["1% 1mbit 5mbit", "1% 2mbit 6mbit", "2% 1mbit 5mbit", "2% 2mbit 6mbit"]);
    let (code, message) = refused(&text, &["path.a.rate=1mbit,2mbit", "path.b.rate=5mbit"], true, &[]);
    assert_eq!((code, message.as_str()), (Code::Conflict, "keys that advance together need as many values each"));
}

#[test]
fn a_sweep_from_outside_replaces_the_files_values_of_its_key() {
    let text = format!("{TEXT}[sweep]\nconnection.scheduler = ['minrtt', 'blest']\nseed = [1, 2]\n");
    let document = sweep(&text, &["scheduler=rr"], false, &[]).unwrap();
    assert_eq!(cells(&document), ["1 rr", "2 rr"]);
}

#[test]
fn a_part_of_a_value_that_is_set_may_vary() {
    let document = sweep(TEXT, &["path.a.loss.down=1%,2%"], false, &["path.a.loss=4%"]).unwrap();
    assert_eq!(cells(&document), ["1%", "2%"]);
    let losses = document.cells.iter().map(|(_, scenario)| scenario.topology.paths[0].up.loss).collect::<Vec<_>>();
    assert_eq!(losses[0], losses[1], "the other direction keeps its loss");
    assert!(sweep(TEXT, &["scheduler.lambda=1,1.2"], false, &["scheduler=blest"]).is_ok());
}

#[test]
fn what_cannot_be_swept_is_refused_by_name() {
    let of = |sweeps: &[&str], set: &[&str]| refused(TEXT, sweeps, false, set);
    assert_eq!(of(&["path.a.dely=1ms,2ms"], &[]).0, Code::UnknownKey);
    assert_eq!(of(&["path.c.delay=1ms,2ms"], &[]), (Code::UnknownName, "there is no path `c`".into()));
    assert_eq!(of(&["path.a.delay="], &[]), (Code::Syntax, "`path.a.delay` is swept over nothing".into()));
    assert_eq!(of(&["path.a.delay"], &[]).0, Code::Syntax);
    assert_eq!(of(&["path.a.delay=1ms,,2ms"], &[]).0, Code::Syntax);
    assert_eq!(of(&["path.a.delay=1ms..9ms*1"], &[]).0, Code::ImpossibleValue);
    assert_eq!(of(&["path.a.delay=1ms,2mbit"], &[]).0, Code::WrongUnit);
    assert_eq!(of(&["seed=1..100000"], &[]).0, Code::ImpossibleValue);
    assert_eq!(of(&["seed=1..9999", "repeat=1..9999"], &[]).0, Code::ImpossibleValue);
    let both = of(&["path.a.delay=1ms,2ms"], &["path.a.delay=3ms"]);
    assert_eq!(both, (Code::Conflict, "`path.a.delay` is both set and swept".into()));
    let part = of(&["path.a.loss=1%,2%"], &["path.a.loss.down=3%"]);
    assert_eq!(part, (Code::Conflict, "`path.a.loss` is both set and swept".into()));
    let parts = of(&["path.a.loss.down=1%,2%", "path.a.loss=1%,2%"], &[]);
    assert_eq!(parts, (Code::Conflict, "`path.a.loss` is swept twice".into()));
    let file = format!("{TEXT}[sweep]\npath.a.loss = ['1%', '2%']\n");
    assert_eq!(refused(&file, &[], false, &["path.a.loss.down=3%"]), part);
    let twice = of(&["scheduler=minrtt,blest", "connection.scheduler=rr"], &[]);
    assert_eq!(twice, (Code::Conflict, "`connection.scheduler` is swept twice".into()));
}

#[test]
fn a_timeline_that_sets_a_swept_key_is_refused() {
    let text = format!("{TEXT}[[timeline]]\nat = '3s'\nset = 'path.a.rate'\nvalue = '1mbit'\n");
    let (code, message) = refused(&text, &["path.a.rate=1mbit,2mbit"], false, &[]);
    assert_eq!((code, message.as_str()), (Code::Conflict, "`path.a.rate` is swept, but the timeline sets it"));
    assert!(sweep(&text, &["path.b.rate=1mbit,2mbit"], false, &[]).is_ok());
    let down = text.replace("path.a.rate", "path.a.rate.down");
    assert!(sweep(&down, &["path.a.rate=1mbit,2mbit"], false, &[]).is_err());
}

#[test]
fn a_value_of_a_range_is_shown_alone_when_it_is_wrong() {
    let wrong = sweep(TEXT, &["path.a.loss=10%..110%:50%"], false, &[]).unwrap_err();
    assert_eq!(wrong.len(), 1, "{wrong:#?}");
    assert!(format!("{:?}", miette::Report::new(wrong[0].clone())).contains("path.a.loss=110%"), "{wrong:#?}");
}

#[test]
fn swept_values_are_numbers_in_si_units() {
    let number = |key, text| swept(key, text).map(|Swept { number, unit }| (number, unit));
    assert_eq!(number("path.lte.delay", "60ms"), Some((0.06, "s")));
    assert_eq!(number("path.lte.rate.down", "1.5mbit"), Some((1.5e6, "bit/s")));
    assert_eq!(number("path.5g.lte.loss", "2%"), Some((0.02, "")));
    assert_eq!(number("recv_buffer", "64KiB"), Some((65536.0, "B")));
    assert_eq!(number("connection.recv_buffer", "64KiB"), Some((65536.0, "B")));
    assert_eq!(number("recv_buffer", "65536"), Some((65536.0, "B")), "without a unit, bytes");
    assert_eq!(number("path.lte.delay", "60"), None);
    assert_eq!(number("path.a.queue", "100p"), Some((100.0, "packets")));
    assert_eq!(number("path.a.queue", "0.5bdp"), Some((0.5, "BDP")));
    assert_eq!(number("link.l.queue", "150KB"), Some((150e3, "B")));
    assert_eq!(number("seed", "3"), Some((3.0, "")));
    assert_eq!(number("duration", "90s"), Some((90.0, "s")));
    assert_eq!(number("traffic.size", "14KB"), Some((14e3, "B")));
    assert_eq!(number("traffic.0.size", "14KB"), Some((14e3, "B")));
    assert_eq!(number("scheduler.delta", "0.01"), Some((0.01, "")));
    assert_eq!(number("path.a.price", "5/GB"), Some((5e-9, "1/B")));
    assert_eq!(number("scheduler", "blest"), None);
    assert_eq!(number("path.a.backup", "true"), None);
    assert_eq!(number("path.a.loss", "{ kind = 'gilbert-elliott' }"), None);
}
