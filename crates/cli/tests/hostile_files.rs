//! Hostile files: without end, or with very many mistakes. They are refused quickly, with a short message.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const GOOD: &str = "name = \"x\"\nduration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n";

/// Far more than it takes, far less than it took.
const PATIENCE: Duration = Duration::from_secs(60);

/// The message for input that cannot be used.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str]) -> String {
    let errors = folder.join("errors");
    let mut program = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    program.current_dir(folder).args(arguments).stdout(Stdio::null()).stderr(fs::File::create(&errors).unwrap());
    let (mut child, begun) = (program.spawn().unwrap(), Instant::now());
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if begun.elapsed() > PATIENCE => {
                child.kill().unwrap();
                panic!("{arguments:?} takes too long");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let text = fs::read_to_string(errors).unwrap();
    assert_eq!(status.code(), Some(2), "{arguments:?}: {}", text.chars().take(2000).collect::<String>());
    // As one text, however it is broken into lines.
    text.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// The message for a scenario with this text.
#[track_caller]
fn said_of(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.toml"), text).unwrap();
    let said = refused(folder.path(), &["check", "bad.toml"]);
    assert!(said.len() < 60_000, "{} bytes are said", said.len());
    said
}

fn repeated(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn mistakes_without_number_are_counted() {
    for (count, more) in [(8_000, "7950 more mistakes"), (300_000, "299950 more mistakes")] {
        let said = said_of(&(repeated(count, |n| format!("k{n} = 1\n")) + GOOD));
        assert!(said.contains(more) && said.matches("unknown_key").count() == 50, "{said}");
    }
    let said = said_of(&(GOOD.to_owned() + &repeated(300_000, |n| format!("k{n} = 1\n"))));
    assert!(said.contains("299950 more mistakes"), "{said}");
    for (what, line) in [
        ("the same key", "again = 1\n"),
        ("no TOML", "= = 1\n"),
        ("a section twice", "[tcp]\n"),
        ("paths without a name", "[[path]]\n"),
        ("paths of one name", "[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n"),
        ("changes of nothing", "[[timeline]]\nat = \"1s\"\nset = \"path.b.rate\"\nvalue = \"1mbit\"\n"),
        ("cross traffic nowhere", "[[cross]]\npath = \"b\"\nkind = \"tcp\"\n"),
    ] {
        let said = said_of(&(GOOD.to_owned() + &line.repeat(50_000)));
        assert!(said.contains("more mistakes"), "{what}: {said}");
    }
}

#[test]
fn lists_without_end_are_refused_soon() {
    let links = repeated(80_000, |n| format!("[[link]]\nname = \"l{n}\"\nrate = \"1mbit\"\n"));
    let said = said_of(&(GOOD.to_owned() + &links + "[[cross]]\nlink = \"nowhere\"\nkind = \"tcp\"\n"));
    assert!(said.contains("there is no link named \"nowhere\""), "{said}");
    let said =
        said_of(&(GOOD.to_owned() + "[sweep]\n" + &repeated(20_000, |n| format!("\"path.a.k{n}\" = [\"1\"]\n"))));
    assert!(said.contains("16 keys"), "{said}");
    let values = repeated(9_000, |n| format!("\"{}%\", ", n + 101));
    let said = said_of(&format!("{GOOD}[sweep]\n\"path.a.loss\" = [{values}]\n"));
    assert!(said.contains("there may be more mistakes"), "{said}");
    // Of a line and a token without end, the beginning.
    let said = said_of(&("k".repeat(1_000_000) + " = 1\n" + GOOD));
    assert!(said.contains("there is no key") && said.len() < 3000, "{said}");
}

#[test]
fn files_without_end_are_refused_with_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let said = refused(folder.path(), &["check", "/dev/zero"]);
    assert!(said.contains("cannot read /dev/zero: a scenario file may have 4 MiB at most"), "{said}");
    fs::write(folder.path().join("large.toml"), GOOD.to_owned() + &"# nothing\n".repeat(500_000)).unwrap();
    let said = refused(folder.path(), &["run", "large.toml"]);
    assert!(said.contains("a scenario file may have 4 MiB at most"), "{said}");

    let trace = GOOD.replace("rate = \"1mbit\"", "trace = \"/dev/zero\"");
    fs::write(folder.path().join("trace.toml"), &trace).unwrap();
    let said = refused(folder.path(), &["check", "trace.toml"]);
    assert!(said.contains("the traces of a scenario together may have 64 MiB at most"), "{said}");
    // By however many names.
    let paths = repeated(500, |n| format!("[[path]]\nname = \"p{n}\"\ntrace = \"{}/dev/zero\"\n", "/".repeat(n)));
    fs::write(folder.path().join("traces.toml"), "duration = \"1s\"\n".to_owned() + &paths).unwrap();
    let said = refused(folder.path(), &["check", "traces.toml"]);
    assert!(said.contains("64 MiB at most"), "{said}");

    fs::create_dir(folder.path().join("results")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path().join("results/report.json")).unwrap();
    let said = refused(folder.path(), &["report", "results"]);
    assert!(said.contains("it is not a regular file"), "{said}");
    let said = refused(folder.path(), &["compare", "--quick", "--update", "/dev/zero"]);
    assert!(said.contains("it is not a regular file"), "{said}");
}

#[test]
fn mistakes_of_a_command_line_are_counted_too() {
    let folder = tempfile::tempdir().unwrap();
    let said = refused(folder.path(), &["run", "wifi-lte", "--scheduler", &"blets,".repeat(20_000)]);
    assert!(said.contains("did you mean \"blest\"?") && said.contains("19941 more mistakes"), "{said}");
    let set = (0..2000).flat_map(|n| ["--set".to_owned(), format!("path.wifi.k{n}=1")]).collect::<Vec<_>>();
    let all: Vec<&str> = ["check", "wifi-lte"].into_iter().chain(set.iter().map(String::as_str)).collect();
    let said = refused(folder.path(), &all);
    assert!(said.contains("1950 more mistakes"), "{said}");
    let set = (0..2000).flat_map(|_| ["--set", "lamda=1"]);
    let said = refused(folder.path(), &["model", "bufferbloat-loss"].into_iter().chain(set).collect::<Vec<_>>());
    assert!(said.contains("1940 more mistakes"), "{said}");
}
