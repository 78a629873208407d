//! Headless Chromium, driven by the DevTools protocol.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

/// One page of a browser of its own. What its console says and what it wants to fetch is kept.
pub struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: String,
    next: u64,
    /// Errors of scripts, messages of the console, requests for anything but the page itself and what lies beside it.
    pub complaints: Vec<String>,
    /// Where a page that is served begins: what it fetches there is its own.
    home: Option<String>,
    /// Chromium's trace: the collected events, and whether that is all.
    trace: (Vec<Value>, bool),
    _profile: TempDir,
}

impl Browser {
    /// Starts Chromium; `None` where there is none, which is said.
    #[allow(dead_code, reason = "one test gives it options")]
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// The same with further options, in the namespace of the calling thread.
    pub fn start_with(options: &[String]) -> Option<Self> {
        let profile = tempfile::tempdir().unwrap();
        let program = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| is_there(name));
        let Some(program) = program else {
            eprintln!("SKIPPED: chromium is not here");
            return None;
        };
        let mut process = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--hide-scrollbars", "--remote-debugging-port=0", "--window-size=1200,900"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(options)
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let said = lines.find_map(|line| Some(line.ok()?.strip_prefix("DevTools listening on ")?.to_owned()));
        // Read on, or it would stand still when the pipe is full.
        thread::spawn(move || lines.for_each(drop));
        let address = said.expect("chromium tells where it listens");
        let host = address.strip_prefix("ws://").unwrap().split('/').next().unwrap().to_owned();
        let stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (socket, _) = tungstenite::client(address, stream).unwrap();
        let mut browser = Self {
            process,
            socket,
            session: String::new(),
            next: 1,
            complaints: Vec::new(),
            home: None,
            trace: (Vec::new(), true),
            _profile: profile,
        };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.ask("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// One command; its result.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        let mut command = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            command["sessionId"] = self.session.clone().into();
        }
        self.socket.send(Message::text(command.to_string())).unwrap();
        loop {
            let Message::Text(text) = self.socket.read().unwrap() else { continue };
            let message: Value = serde_json::from_str(&text).unwrap();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.listen(&message);
        }
    }

    fn listen(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.complaints.push(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" => self.complaints.push(params["args"].to_string()),
            "Log.entryAdded" => self.complaints.push(params["entry"].to_string()),
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                let is_own = self.home.as_ref().is_some_and(|home| url.starts_with(home));
                if !is_own && !["file:", "data:", "blob:"].iter().any(|scheme| url.starts_with(scheme)) {
                    self.complaints.push(format!("wants {url}"));
                }
            }
            // The log's entry of it does not name the address.
            "Network.responseReceived" if params["response"]["status"].as_i64() >= Some(400) => {
                let response = &params["response"];
                self.complaints.push(format!("{} has status {}", response["url"], response["status"]));
            }
            "Tracing.dataCollected" => self.trace.0.extend(params["value"].as_array().cloned().unwrap_or_default()),
            "Tracing.tracingComplete" => self.trace.1 = true,
            _ => {}
        }
    }

    /// Milliseconds for which the page's main thread works (scripts, style, layout, paint) from each of these expressions until the
    /// frame after next, by Chromium's trace.
    #[allow(dead_code, reason = "only measurements need it")]
    pub fn work_ms(&mut self, steps: &[String]) -> Vec<f64> {
        self.trace = (Vec::new(), false);
        let categories = ["toplevel", "disabled-by-default-devtools.timeline", "blink.user_timing"];
        let config = json!({ "includedCategories": categories, "recordMode": "recordUntilFull" });
        self.ask("Tracing.start", json!({ "traceConfig": config, "transferMode": "ReportEvents" }));
        let frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))";
        for step in steps {
            self.value(&format!("performance.mark('step'), {step}, {frames}"));
        }
        self.value("performance.mark('step'), 0");
        self.ask("Tracing.end", json!({}));
        while !self.trace.1 {
            if let Message::Text(text) = self.socket.read().unwrap() {
                self.listen(&serde_json::from_str(&text).unwrap());
            }
        }
        work_between_marks(&self.trace.0)
    }

    /// Opens a file and waits until the page has drawn itself.
    pub fn open(&mut self, file: &Path) {
        self.visit(&format!("file://{}", file.display()));
    }

    /// Opens a page that is served at `home`, with this fragment, in the same way.
    #[allow(dead_code, reason = "one test has a server")]
    pub fn open_served(&mut self, home: &str, fragment: &str) {
        self.home = Some(home.to_owned());
        // A new fragment alone would not load the page again.
        self.ask("Page.navigate", json!({ "url": "about:blank" }));
        self.visit(&format!("{home}{fragment}"));
    }

    fn visit(&mut self, url: &str) {
        self.ask("Page.navigate", json!({ "url": url }));
        self.wait_for("document.documentElement?.dataset.ready === 'yes'");
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait_for(&mut self, expression: &str) {
        let begun = Instant::now();
        while self.value(expression) != true {
            assert!(begun.elapsed() < Duration::from_secs(30), "never: {expression}; {:?}", self.complaints);
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The value of an expression in the page.
    #[track_caller]
    pub fn value(&mut self, expression: &str) -> Value {
        let result = self
            .ask("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }));
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// The same as a number.
    #[track_caller]
    pub fn number(&mut self, expression: &str) -> f64 {
        self.value(expression).as_f64().unwrap_or_else(|| panic!("{expression} is no number"))
    }

    /// The same as text.
    #[track_caller]
    pub fn text(&mut self, expression: &str) -> String {
        self.value(expression).as_str().unwrap_or_else(|| panic!("{expression} is no text")).to_owned()
    }

    /// A screen of this many CSS pixels.
    pub fn screen(&mut self, width: u32, height: u32, mobile: bool) {
        let scale = if mobile { 2 } else { 1 };
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile });
        self.ask("Emulation.setDeviceMetricsOverride", metrics);
        // The page waits a little before it draws again.
        thread::sleep(Duration::from_millis(400));
    }

    /// The system's colour scheme: `light` or `dark`.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.ask("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// A key, as if pressed.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if key.len() == 1 && kind == "keyDown" { key } else { "" };
            self.ask("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "text": text }));
        }
    }

    /// A mouse event at a place of the window.
    pub fn mouse(&mut self, kind: &str, x: f64, y: f64, more: Value) {
        let mut event = json!({ "type": kind, "x": x, "y": y });
        more.as_object().unwrap().iter().for_each(|(key, value)| event[key] = value.clone());
        self.ask("Input.dispatchMouseEvent", event);
    }

    /// Writes the whole page, or one element, as PNG into target/screenshots.
    pub fn photograph(&mut self, name: &str, selector: Option<&str>) {
        let clip = selector.map(|selector| {
            let of = |what: &str| format!("document.querySelector('{selector}').getBoundingClientRect().{what}");
            let y = self.number(&format!("{} + scrollY", of("y")));
            json!({ "x": self.number(&of("x")), "y": y, "width": self.number(&of("width")),
                "height": self.number(&of("height")), "scale": 1 })
        });
        let mut params = json!({ "captureBeyondViewport": true, "format": "png" });
        if let Some(clip) = clip {
            params["clip"] = clip;
        } else {
            let height = self.number("document.documentElement.scrollHeight");
            let width = self.number("document.documentElement.clientWidth");
            params["clip"] = json!({ "x": 0, "y": 0, "width": width, "height": height, "scale": 1 });
        }
        let shot = self.ask("Page.captureScreenshot", params);
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.decode(shot["data"].as_str().unwrap()).unwrap();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/screenshots");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Prints median and 95 % quantile of times in milliseconds.
#[allow(dead_code, reason = "only measurements need it")]
pub fn print_quantiles(what: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{what}: median {:.1} ms, p95 {:.1} ms, n = {}", at(0.5), at(0.95), times.len());
}

/// The sums of the tasks between marks named `step`, on their thread, in milliseconds of the thread's own time: other programs on the
/// machine do not count.
fn work_between_marks(trace: &[Value]) -> Vec<f64> {
    let named = |name: &'static str| trace.iter().filter(move |event| event["name"] == name);
    let at = |event: &Value| event["ts"].as_f64().unwrap_or_default();
    let mut marks: Vec<&Value> = named("step").collect();
    marks.sort_by(|a, b| at(a).total_cmp(&at(b)));
    let thread = |event: &Value| (event["pid"].clone(), event["tid"].clone());
    let here: Vec<(f64, f64)> = named("RunTask")
        .filter(|event| marks.first().is_some_and(|mark| thread(mark) == thread(event)))
        .map(|event| (at(event), event["tdur"].as_f64().unwrap_or_default()))
        .collect();
    let sum =
        |from: f64, to: f64| here.iter().filter(|(at, _)| (from..to).contains(at)).map(|(_, dur)| dur).sum::<f64>();
    marks.windows(2).map(|pair| sum(at(pair[0]), at(pair[1])) / 1e3).collect()
}

fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}
