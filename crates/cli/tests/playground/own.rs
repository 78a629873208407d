//! The reader's own scheduler.

use super::{OVER, digest, served};

/// Writes code into the page and runs it.
fn run(page: &mut super::Browser, code: &str) {
    page.value(&format!("document.getElementById('own-code').value = {}", serde_json::json!(code)));
    page.value("document.getElementById('digest').textContent = '…'");
    page.value("document.getElementById('own-run').click()");
}

const MINRTT: &str = "function choose(view) { let best = -1, least = Infinity; for (const path of view.paths) { \
                      const srtt = Number.isNaN(path.srtt) ? 1e9 : path.srtt; \
                      if (path.eligible && srtt < least) { best = path.id; least = srtt; } } return best; }";

#[test]
fn the_readers_minrtt_is_minrtt() {
    let Some((_server, mut page)) = served() else { return };
    page.value("page.model.put('connection.scheduler', 'minrtt')");
    page.wait_for("document.getElementById('scheduler').value === 'minrtt'");
    let built_in = digest(&mut page);
    run(&mut page, MINRTT);
    assert_eq!(digest(&mut page), built_in);
    // Another rule, another run.
    run(&mut page, "function choose(view) { return view.paths[0].eligible ? view.paths[0].id : -1; }");
    page.wait_for(&format!("{OVER} && document.getElementById('digest').textContent !== '{built_in}'"));

    // Its report has an origin of its own; the report's scripts run there.
    page.value("document.getElementById('study-schedulers').value = 'minrtt'");
    page.value("document.getElementById('study-seeds').value = 1");
    page.value("document.getElementById('study-run').click()");
    page.wait_for("document.querySelector('#report iframe')?.dataset.loaded === 'yes'");
    assert!(page.value("document.querySelector('#report iframe').contentDocument === null").as_bool().unwrap());
    page.photograph("playground-own-report", None);
    assert_eq!(page.complaints, Vec::<String>::new());
}

#[test]
fn it_reaches_no_network_and_is_ended_and_a_link_runs_nothing() {
    let Some((server, mut page)) = served() else { return };
    digest(&mut page);
    // Between two slices it learns what became of its request.
    run(
        &mut page,
        "fetch('/index.html').then(() => 'reached', () => 'refused').then((word) => { self.word = word; }); \
         function choose(view) { if (self.word) throw new Error(self.word); return view.paths[0].id; }",
    );
    page.wait_for("document.getElementById('own-says').textContent.startsWith('Your code: ')");
    assert_eq!(page.text("document.getElementById('own-says').textContent"), "Your code: Error: refused");
    run(&mut page, "function choose(");
    page.wait_for("document.getElementById('own-says').textContent.includes('valid JavaScript')");

    // A worker that is never ready is ended, too.
    run(&mut page, "for (;;); function choose() { return -1; }");
    page.wait_for("document.getElementById('own-says').textContent.includes('no answer in')");

    run(&mut page, "function choose() { for (;;); }");
    page.wait_for("document.getElementById('own-says').textContent.includes('no answer in')");

    // The address has the code; the page shows it and runs the scenario's scheduler.
    let fragment = page.text("location.hash");
    assert!(fragment.contains("code="), "{fragment}");
    page.open_served(&server.url, &fragment);
    digest(&mut page);
    assert!(page.text("document.getElementById('own-code').value").contains("for (;;)"));
    assert!(page.value("document.getElementById('own').open && page.own === null").as_bool().unwrap());
    assert_eq!(page.complaints, Vec::<String>::new());
}

const REDUNDANT: &str = "function choose(view) { for (const path of view.paths.filter((path) => path.eligible)) { \
                         if (!Number.isNaN(path.copy)) return { path: path.id, copy: path.copy }; \
                         if (view.backlog > 0) return path.id; } return -1; }";

#[test]
fn it_skips_and_repeats_and_its_mistakes_are_named() {
    let Some((_server, mut page)) = served() else { return };
    digest(&mut page);
    let copied = "page.run.summary.metrics.connection.copied_packets ?? 0";
    run(&mut page, REDUNDANT);
    digest(&mut page);
    assert!(page.number(copied) > 100.0, "{}", page.number(copied));
    // The second path takes what lies a hundred segments further on.
    run(
        &mut page,
        "function choose(view) { const [first, second] = view.paths; if (first.eligible) return first.id; \
         return second?.eligible ? { path: second.id, skip: 140000 } : -1; }",
    );
    digest(&mut page);
    assert_eq!(page.number(copied), 0.0);
    let ahead = "(() => { const h = page.run.history; let end = 0; \
                 for (let i = 0; i < h.count; i++) { if (h.path.at(i) === 1) return h.start.at(i) - end; \
                 end = Math.max(end, h.end.at(i)); } return -1; })()";
    assert!(page.number(ahead) >= 140_000.0, "{}", page.number(ahead));

    let valid = "; it returns a path's id, −1 to wait, { path, skip: bytes } or { path, copy: offset }";
    for (answer, why) in [
        ("undefined", "undefined: that is no command"),
        ("7", "7: there is no path 7"),
        ("{ path: 0, skp: 1 }", "{ path: 0, skp: 1 }: there is no skp"),
        ("{ path: 0, skip: -1 }", "{ path: 0, skip: -1 }: skip is -1, no whole number of bytes"),
        ("{ path: 0, copy: NaN }", "{ path: 0, copy: NaN }: copy is NaN, no whole number of bytes"),
    ] {
        run(&mut page, &format!("function choose() {{ return {answer}; }}"));
        let said = "document.getElementById('own-says').textContent";
        page.wait_for(&format!("{said}.startsWith('Your code: TypeError')"));
        assert_eq!(page.text(said), format!("Your code: TypeError: choose returned {why}{valid}"));
    }
    assert_eq!(page.complaints, Vec::<String>::new());
}
