//! A browser behind the proxy: headless Chromium in a namespace with two interfaces reads a page of many objects, with a server of ours and
//! without. Needs what the tests of `proxy --native` need, and Chromium; SKIPPED without.

use super::browser::Browser;
use super::native::{Ground, Running, received, run, status};
use super::{keys, listening};
use serde_json::json;
use socket2::Protocol;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;

const OBJECTS: usize = 100;

/// Each object has a length of its own, in bytes.
fn length(n: usize) -> usize {
    40_000 + 400 * n
}

/// The letters of an object.
fn letters(n: usize) -> String {
    let letter = |k: usize| char::from(b'a' + ((k * 31 + n * 17 + (k >> 7)) % 26) as u8);
    (0..length(n)).map(letter).collect()
}

/// FNV-1a, as the page computes it.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The page: it notes length and hash of each object that its scripts bring, and says when it is whole.
fn page() -> String {
    let mut page =
        r"<!doctype html><html><head><meta charset=utf-8><title>many</title><link rel=icon href='data:,'><script>
        var got = {};
        function arrived(n, text) {
            let hash = 0x811c9dc5;
            for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
            got[n] = [text.length, hash >>> 0];
        }
        addEventListener('load', () => { document.documentElement.dataset.ready = 'yes' });
        </script></head><body>"
            .to_owned();
    for n in 0..OBJECTS {
        let _ = writeln!(page, "<script src='object-{n}.js' async></script>");
    }
    page + "</body></html>"
}

/// Answers the requests of a connection, which stays open.
fn answer(program: TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(program.try_clone()?).lines();
    while let Some(request) = lines.next().transpose()? {
        // The headers end with an empty line.
        while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
        let name = request.split(' ').nth(1).unwrap_or_default();
        let object = name.strip_prefix("/object-").and_then(|rest| rest.strip_suffix(".js")?.parse().ok());
        let (kind, body) = match object {
            Some(n) => ("text/javascript", format!("arrived({n}, '{}')", letters(n))),
            None => ("text/html", page()),
        };
        let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
        (&program).write_all((head + &body).as_bytes())?;
    }
    Ok(())
}

fn serve(ground: &Ground, listener: TcpListener) {
    let work = move || {
        listener.incoming().flatten().for_each(|program| _ = thread::spawn(move || answer(program)));
    };
    ground.server.spawn("pages", work).unwrap();
}

/// The browser opens the page through the proxy at `socks`, whose socket for its state is in `folder`. Every object arrives as it was sent, and each
/// interface brings `least` bytes or more.
fn read_page(ground: &Ground, socks: &str, folder: &Path, least: u64) {
    let options = [format!("--proxy-server=socks5://{socks}")];
    let Some(mut browser) = ground.client.enter(|| Browser::start_with(&options)).unwrap() else { return };
    browser.open_served("http://10.99.9.1/", "");
    let expected: serde_json::Map<_, _> = (0..OBJECTS)
        .map(letters)
        .enumerate()
        .map(|(n, text)| (n.to_string(), json!([text.len(), hash(&text)])))
        .collect();
    // The browser's own words first, and what the proxy refused or cut off: they say why an object is missing.
    let counted = &status(folder)["counters"];
    assert_eq!(browser.complaints, Vec::<String>::new(), "{counted}");
    assert_eq!(browser.value("got"), serde_json::Value::Object(expected), "{counted}");
    let (received, all) = (received(folder), (0..OBJECTS).map(length).sum::<usize>() as u64);
    assert!(received.iter().sum::<u64>() >= all && received.iter().all(|bytes| *bytes >= least), "{received:?}");
}

#[test]
fn chromium_reads_a_page_over_both_interfaces_through_a_server() {
    let Some(ground) = Ground::new() else { return };
    serve(&ground, ground.listen(Protocol::TCP));
    // One server is reached through both interfaces: the strict form would drop answers at the second.
    run(
        &ground.client,
        "sysctl",
        "-w net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.va0.rp_filter=0 net.ipv4.conf.va1.rp_filter=0",
    );
    let (folder, key) = keys();
    let far = ["serve", "--proxy", "--allow", "10.99.9.1/32", "--listen", "10.99.9.1:51900"];
    let (far, address) = ground.server.enter(|| listening(folder.path(), &far, "far")).unwrap();
    let _far = Running(far);
    let near = ["proxy", &address, "--via", "va0,va1", "--server-key", &key];
    let more = ["--socks", "127.0.0.1:0", "--socket", "proxy.sock"];
    let start = || listening(folder.path(), &[&near[..], &more].concat(), "near");
    let (near, socks) = ground.client.enter(start).unwrap();
    let _near = Running(near);
    // Connections wait with both paths: the second one carries several objects.
    read_page(&ground, &socks, folder.path(), 4 * length(OBJECTS) as u64);
}

#[test]
fn chromium_reads_a_page_of_an_unmodified_server_over_both_interfaces() {
    let Some(ground) = Ground::new() else { return };
    serve(&ground, ground.listen(Protocol::MPTCP));
    let (_process, socks) = ground.proxy(&[]);
    // The server's kernel schedules, and a connection's second subflow comes after its first data: it carries more than one object.
    read_page(&ground, &socks.to_string(), ground.folder.path(), length(OBJECTS) as u64);
}
