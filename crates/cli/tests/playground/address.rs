//! Addresses from strangers: no script in them runs, and the page continues.

use super::{OVER, digest, served};
use crate::browser::Browser;

/// A scenario with this title, as an address has it: packed by the browser.
fn packed(page: &mut Browser, text: &str) -> String {
    let text = serde_json::to_string(text).unwrap();
    page.text(&format!(
        "(async () => {{ const piped = new Blob([{text}]).stream().pipeThrough(new CompressionStream('deflate-raw')); \
         const bytes = new Uint8Array(await new Response(piped).arrayBuffer()); \
         return btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join('')).replaceAll('+', '-').replaceAll('/', '_'); }})()"
    ))
}

const IMAGE: &str = "<img src=x onerror=window.pwned=1>";
const SCRIPT: &str = "</script><script>window.pwned=1</script>";

fn scenario(title: &str, more: &str) -> String {
    let title = serde_json::to_string(title).unwrap();
    format!("name = {title}\nduration = \"1s\"\n[[path]]\nname = \"a\"\nrate = \"10mbit\"\ndelay = \"10ms\"\n{more}")
}

/// Text that does not shrink, as a comment.
fn noise(bytes: usize) -> String {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + (state >> 33) as u8 % 90)
    };
    format!("# {}\n", (0..bytes).map(|_| next()).collect::<String>())
}

fn fragments(page: &mut Browser) -> Vec<String> {
    let texts = [
        scenario(IMAGE, ""),
        scenario(SCRIPT, ""),
        scenario("x", &format!("[[traffic]]\nkind = \"{IMAGE}\"\n")),
        format!("{IMAGE}\n{SCRIPT}"),
        scenario("x\u{1b}[2J\u{202e}", ""),
        scenario("x", &noise(300_000)),
        "#".repeat(50_000_000),
        String::new(),
    ];
    let mut all: Vec<String> = texts.iter().map(|text| format!("#toml={}", packed(page, text))).collect();
    let code =
        packed(page, "window.pwned = 1; self.pwned = 1; fetch('http://example.net'); function choose() { return 0; }");
    all.push(format!("#preset=wifi-lte&code={code}"));
    for plain in [
        "#preset=<img src=x onerror=window.pwned=1>",
        "#preset=__proto__",
        "#preset=wifi-lte&set=path.wifi.loss=<img src=x onerror=window.pwned=1>",
        "#preset=wifi-lte&set=name=\"</script><script>window.pwned=1</script>\"",
        "#preset=wifi-lte&set=__proto__.pwned=1&set=constructor=1&set=nothing&set==",
        "#preset=wifi-lte&at=1e308&pace=1e999",
        "#preset=wifi-lte&at=-1&pace=NaN&at=<script>",
        "#preset=wifi-lte&code=%00%ff!!!",
        "#toml=!!!&set=%",
        "#toml=AAAA",
        "#javascript:window.pwned=1",
        "?embed=<script>window.pwned=1</script>#preset=wifi-lte",
        "?<img src=x onerror=window.pwned=1>&theme=javascript:window.pwned=1",
    ] {
        all.push(plain.to_owned());
    }
    all
}

#[test]
fn no_address_runs_a_script_or_breaks_the_page() {
    let Some((server, mut page)) = served() else { return };
    digest(&mut page);
    let elements =
        "document.querySelectorAll('script').length + 1000 * document.querySelectorAll('[onerror], img').length";
    let before = page.number(elements);
    for fragment in fragments(&mut page) {
        let shown: String = fragment.chars().take(120).collect();
        page.open_served(&server.url, &fragment);
        // Run, or refused with a reason.
        page.wait_for(&format!("{OVER} || document.getElementById('toml-problems').textContent !== ''"));
        assert_eq!(page.value("window.pwned ?? ({}).pwned ?? null"), serde_json::Value::Null, "{shown}");
        assert_eq!(page.number(elements), before, "{shown}");
        // It continues with the next one.
        page.value("void (location.hash = '#preset=wifi-lte&set=seed%3D7')");
        page.wait_for(&format!("{OVER} && document.getElementById('toml').value.includes('seed = 7')"));
        assert_eq!(page.complaints, Vec::<String>::new(), "{shown}");
    }
}
