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
