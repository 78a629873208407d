#!/usr/bin/env python3
"""What middleboxes leave of a connection, by the hosts at both ends: the table of interoperation.md, from runs (root).

    docs/lab/middlebox_table.py target/debug/anabranch [--update]
"""
import json, os, subprocess, sys, tempfile

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "interoperation.md")
MARKS = ("<!-- middleboxes -->\n", "<!-- /middleboxes -->")
ENDS = [("engine", "engine", "minrtt"), ("engine", "linux", "minrtt"), ("linux", "engine", "linux-default"), ("linux", "linux", "linux-default")]
CAPABLE = "{ kind = '%s', options = 'mp-capable', on = 'syn'%s }"
JOIN = "{ kind = '%s', options = 'mp-join', on = 'syn'%s }"
up = lambda box: f"{{ up = [{box}], down = [] }}"
down = lambda box: f"{{ up = [], down = [{box}] }}"
DSS, ADD = "[{ kind = 'strip', options = 'dss' }]", "[{ kind = 'strip', options = 'add-addr' }]"
REBOOT = "[[timeline]]\nat = '400ms'\nset = 'path.b.middlebox'\nvalue = [{ kind = 'forget', idle = '60s', answer = '%s' }]\n"
both = lambda box: (f"[{box}]", f"[{box}]", "")
# name: boxes of the first path, of the second, changes
ROWS = {
    "none": ("[]", "[]", ""),
    "strips all of Multipath TCP": both("{ kind = 'strip' }"),
    "strips MP_CAPABLE from the SYN": (up(CAPABLE % ("strip", "")), "[]", ""),
    "strips MP_CAPABLE from the SYN/ACK": (down(CAPABLE % ("strip", "")), "[]", ""),
    "strips MP_JOIN from the SYN, second path": ("[]", up(JOIN % ("strip", "")), ""),
    "strips MP_JOIN from the SYN/ACK, second path": ("[]", down(JOIN % ("strip", "")), ""),
    "strips DSS": (DSS, DSS, ""),
    "strips DSS, second path": ("[]", DSS, ""),
    "drops ADD_ADDR": (ADD, ADD, ""),
    "translates sequence numbers": both("{ kind = 'translate' }"),
    "splits segments": both("{ kind = 'split', size = 500 }"),
    "coalesces segments": both("{ kind = 'coalesce' }"),
    "clears ECN": both("{ kind = 'ecn', flags = true }"),
    "lowers the MSS": both("{ kind = 'mss', most = 1000 }"),
    "thins acknowledgments": (up("{ kind = 'thin-acks' }"), up("{ kind = 'thin-acks' }"), ""),
    "forgets flows after 0.4 s, second path, silence": ("[]", "[]", REBOOT % "silence"),
    "forgets flows after 0.4 s, second path, RST": ("[]", "[]", REBOOT % "reset"),
    "answers joins with RST": ("[]", f"[{JOIN % ('reject', '')}]", ""),
    "drops joins": ("[]", "[%s]" % (JOIN % ("reject", ", answer = 'silence'")), ""),
    "answers MP_CAPABLE with RST": (f"[{CAPABLE % ('reject', '')}]", "[]", ""),
    "drops MP_CAPABLE": ("[%s]" % (CAPABLE % ("reject", ", answer = 'silence'")), "[]", ""),
}


def play(binary, row, ends):
    sender, receiver, scheduler = ends
    path = lambda name, delay, boxes: f"[[path]]\nname = '{name}'\nrate = '20mbit'\ndelay = '{delay}ms'\nmiddlebox = {boxes}\n"
    text = "duration = '12s'\n[connection]\ncongestion = 'cubic'\n[tcp]\necn = true\n" + path("a", 10, row[0]) + path("b", 15, row[1])
    text += "[[traffic]]\nkind = 'bulk'\nsize = '3MB'\n" + row[2]
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "x.toml"), "w") as file:
            file.write(text)
        run = [binary, "run", "x.toml", "--sender", sender, "--receiver", receiver, "--scheduler", scheduler, "--no-baselines", "--no-cache"]
        run += ["--no-preflight", "--events", "events.jsonl", "--format", "json"]
        done = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=60)
        events = []
        if os.path.exists(os.path.join(folder, "events.jsonl")):
            with open(os.path.join(folder, "events.jsonl")) as file:
                events = [json.loads(line) for line in file if '"connectivity:' in line or '"fallback' in line]
    if done.returncode:
        # The receiving application compares each byte.
        if "wrong" in done.stderr and "byte at offset" in " ".join(done.stderr.replace("│", " ").split()):
            return "wrong bytes"
        # A host that hears a reset says so.
        told = any(word in done.stderr.lower() for word in ("reset", "refused", "broken pipe", "aborted"))
        return "dead, reported" if told else "dead"
    run = json.loads(done.stdout)["runs"][0]
    if run["metrics"].get("delivered_bytes", 0) < 3_000_000:
        return "dead"
    shares = [values.get("share", 0) for values in run["paths"].values()]
    spoke = [event["data"].get("mptcp") for event in events if event["name"] == "connectivity:connected"]
    fell = any("fallback" in event["name"] for event in events)
    if fell or False in spoke:
        return "plain TCP"
    return "Multipath TCP" if min(shares) > 0.05 else "Multipath TCP, one path"


def main(binary, *update):
    table = "\n| middlebox | engine → engine, simulated | engine → Linux | Linux → engine | Linux → Linux |\n|---|---|---|---|---|\n"
    for name, row in ROWS.items():
        cells = []
        for ends in ENDS:
            try:
                cells.append(play(binary, row, ends))
            except subprocess.TimeoutExpired:
                cells.append("no end in 60 s")
        table += f"| {name} | " + " | ".join(cells) + " |\n"
        print(name, cells, flush=True)
    if update:
        with open(PAGE) as file:
            text = file.read()
        before, after = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
        with open(PAGE, "w") as file:
            file.write(text[:before] + table + "\n" + text[after:])


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), *sys.argv[2:])
