//! Hostile files: without end, or with very many mistakes. They are refused quickly, with a short message.
#![cfg(unix)]

#[path = "common/pipe.rs"]
mod pipe;

use pipe::read_pipe;
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
    failed(folder, arguments, 2)
}

/// The message of a command that soon ends with `code`.
#[track_caller]
fn failed(folder: &Path, arguments: &[&str], code: i32) -> String {
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
    assert_eq!(status.code(), Some(code), "{arguments:?}: {}", text.chars().take(2000).collect::<String>());
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
    for (count, more) in [(8_000, "7999 more mistakes"), (300_000, "299999 more mistakes")] {
        let said = said_of(&(repeated(count, |n| format!("k{n} = 1\n")) + GOOD));
        assert!(said.contains(more) && said.matches("unknown_key").count() == 1, "{said}");
    }
    let said = said_of(&(GOOD.to_owned() + &repeated(300_000, |n| format!("k{n} = 1\n"))));
    assert!(said.contains("299999 more mistakes"), "{said}");
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
    assert!(said.contains("cannot read /dev/zero: it is not a regular file"), "{said}");
    // A terabyte of zeros, none of which is on the disk.
    let endless = folder.path().join("endless");
    fs::File::create(&endless).unwrap().set_len(1 << 40).unwrap();
    let said = refused(folder.path(), &["check", "endless"]);
    assert!(said.contains("cannot read endless: it is no text: byte 1 is 0"), "{said}");
    fs::write(folder.path().join("large.toml"), GOOD.to_owned() + &"# nothing\n".repeat(500_000)).unwrap();
    let said = refused(folder.path(), &["run", "large.toml"]);
    assert!(said.contains("a scenario file may have 4 MiB at most"), "{said}");

    fs::write(folder.path().join("long"), "1\n".repeat(33 << 20)).unwrap();
    fs::write(folder.path().join("short"), "1\n".repeat(15 << 20)).unwrap();
    let trace = GOOD.replace("rate = \"1mbit\"", "trace = \"long\"");
    fs::write(folder.path().join("trace.toml"), &trace).unwrap();
    let said = refused(folder.path(), &["check", "trace.toml"]);
    assert!(said.contains("the traces of a scenario together may have 64 MiB at most"), "{said}");
    // By however many names.
    let paths = repeated(500, |n| format!("[[path]]\nname = \"p{n}\"\ntrace = \"{}short\"\n", "./".repeat(n)));
    fs::write(folder.path().join("traces.toml"), "duration = \"1s\"\n".to_owned() + &paths).unwrap();
    let said = refused(folder.path(), &["check", "traces.toml"]);
    assert!(said.contains("64 MiB at most"), "{said}");

    for name in ["results.json", "report.json", "timeline/a.json"] {
        let file = folder.path().join("results").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
        let said = refused(folder.path(), &["report", "results"]);
        assert!(said.contains(name) && said.contains("byte 1 is 0"), "{said}");
    }
    let said = refused(folder.path(), &["compare", "--quick", "--update", "/dev/zero"]);
    assert!(said.contains("it is not a regular file"), "{said}");
}

#[test]
fn a_pipe_without_a_writer_is_refused_wherever_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = |name: &str| {
        fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        nix::unistd::mkfifo(&folder.path().join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    };
    ["pipe", "paper/claims.toml", "results/report.json", "grid/a.toml"].into_iter().for_each(pipe);
    ["shard/shard.json", "timed/timeline/a.json", "run/results.json"].into_iter().for_each(pipe);
    for (name, key) in [("trace.toml", "\"pipe\""), ("up.toml", "{ down = \"pipe\", up = \"pipe\" }")] {
        let text = GOOD.replace("rate = \"1mbit\"", &format!("trace = {key}"));
        fs::write(folder.path().join(name), text).unwrap();
    }
    for arguments in [
        &["check", "pipe"][..],
        &["check", "trace.toml"],
        &["run", "up.toml"],
        &["model", "oracle", "pipe"],
        &["parity", "pipe"],
        &["reproduce", "paper"],
        &["report", "results"],
        &["report", "timed"],
        &["report", "run"],
        &["merge", "shard", "--out", "merged"],
        &["compare", "--grid", "grid"],
        &["compare", "--quick", "--update", "pipe"],
    ] {
        let said = refused(folder.path(), arguments);
        assert!(said.contains("not a regular file"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_pipe_without_a_reader_is_refused_wherever_a_file_is_written() {
    let folder = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::write(folder.path().join("good.toml"), GOOD).unwrap();
    for arguments in [
        &["run", "good.toml", "--events", "pipe"][..],
        &["run", "good.toml", "--trace", "pipe"],
        &["compare", "--quick", "--picture", "pipe"],
        &["shell", "good.toml", "--summary", "pipe", "--", "true"],
    ] {
        let said = failed(folder.path(), arguments, 1);
        assert!(said.contains("cannot write pipe: no program reads this pipe"), "{arguments:?}: {said}");
    }
    // The far end is never reached: it is the file that is wrong.
    let measured = ["measure", "127.0.0.1:1", "--via", "lo", "--server-key", "x", "--record", "pipe"];
    assert!(refused(folder.path(), &measured).contains("no name for a scenario"));
}

#[test]
fn a_pipe_with_a_reader_gets_everything_once() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("good.toml"), GOOD).unwrap();
    let run = |file: &str| {
        let mut program = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
        let output = program.current_dir(folder.path()).args(["run", "good.toml", "--events", file]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    // As `--events >(gzip)` has one: it ends at the end of the first writer.
    let reader = read_pipe(&folder.path().join("pipe"));
    run("pipe");
    run("file");
    let read = reader.join().unwrap();
    assert!(!read.is_empty() && read == fs::read(folder.path().join("file")).unwrap());
}

/// Characters that a terminal would obey are shown.
#[test]
fn no_text_of_a_file_commands_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    write("name.toml", &GOOD.replace("\"a\"", "\"\\u001b[2J\\u009b\\u202e\""));
    write("line.toml", &format!("{GOOD}nothing = 1 # \u{1b}[2J\u{9b}1m\u{202e}\n"));
    write("key.toml", &format!("{GOOD}\"\\u001b]0;x\\u0007\" = 1\n"));
    write("trace.toml", &GOOD.replace("rate = \"1mbit\"", "trace = \"\\u001b[2J\""));
    write("value.toml", &GOOD.replace("1mbit", "\\u001b[2J"));
    write(
        "results/report.json",
        "{\"made_by\": {\"version\": \"1\"}, \"title\": \"t\", \"sections\": [{\"id\": \"a\", \"title\": \"s\", \
           \"pictures\": [{\"kind\": \"\\u001b[2J\u{202e}\"}]}]}",
    );
    write("series/results.json", "{\"schema\": \"\\u001b[2J\"}");
    for arguments in [
        &["check", "name.toml"][..],
        &["check", "line.toml"],
        &["check", "key.toml"],
        &["check", "trace.toml"],
        &["run", "value.toml"],
        &["report", "results"],
        &["report", "series"],
        &["check", "\u{1b}[2J"],
        &["check", "wifi-lte", "--set", "\u{1b}[2J=1"],
    ] {
        let said = refused(folder.path(), arguments);
        let obeyed = said.chars().find(|c| c.is_control() || ('\u{202a}'..='\u{202e}').contains(c));
        assert_eq!(obeyed, None, "{arguments:?}: {said}");
        // As written in a file, or shown by us.
        assert!(["x1b[2J", "u001b", "u{1b}"].iter().any(|form| said.contains(form)), "{arguments:?}: {said}");
    }
}

/// A table shows names, and a terminal that it goes to obeys none of them; a file gets the bytes.
#[test]
fn a_table_on_a_terminal_commands_nothing() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("title.toml"), GOOD.replace("\"x\"", "\"\\u202etitle\"")).unwrap();
    let program = assert_cmd::cargo::cargo_bin!("anabranch").display().to_string();
    let command = format!("{program} check title.toml");
    let mut script = Command::new("script");
    script.current_dir(folder.path()).args(["-qec", &command, "/dev/null"]).stdin(Stdio::null());
    let Ok(on_terminal) = script.output() else { return eprintln!("SKIPPED: script (util-linux) is not here") };
    let shown = String::from_utf8_lossy(&on_terminal.stdout).into_owned();
    let in_file = Command::new(program).current_dir(folder.path()).args(["check", "title.toml"]).output().unwrap();
    assert!(String::from_utf8_lossy(&in_file.stdout).contains('\u{202e}'));
    assert!(shown.contains(r"\u{202e}title") && !shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
}

#[test]
fn a_scenario_comes_through_standard_input_too() {
    let mut program = Command::new(assert_cmd::cargo::cargo_bin!("anabranch"));
    let mut child = program.args(["check", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), GOOD.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && String::from_utf8(output.stdout).unwrap().contains("1mbit"));
}

#[test]
fn mistakes_of_a_command_line_are_counted_too() {
    let folder = tempfile::tempdir().unwrap();
    let said = refused(folder.path(), &["run", "wifi-lte", "--scheduler", &"blets,".repeat(20_000)]);
    assert!(said.contains("did you mean \"blest\"?") && said.contains("20000 more mistakes"), "{said}");
    let set = (0..2000).flat_map(|n| ["--set".to_owned(), format!("path.wifi.k{n}=1")]).collect::<Vec<_>>();
    let all: Vec<&str> = ["check", "wifi-lte"].into_iter().chain(set.iter().map(String::as_str)).collect();
    let said = refused(folder.path(), &all);
    assert!(said.contains("1999 more mistakes"), "{said}");
    let set = (0..2000).flat_map(|_| ["--set", "lamda=1"]);
    let said = refused(folder.path(), &["model", "bufferbloat-loss"].into_iter().chain(set).collect::<Vec<_>>());
    assert!(said.contains("1999 more mistakes"), "{said}");
}
