#!/usr/bin/env python3
"""The project's middleboxes beside nftables' own rules, between two Linux hosts (root; `nft` or $NFT).

    docs/lab/middleboxes.py target/debug/anabranch

Each case is a download of 3 MB over two paths, in `anabranch shell`: once with nothing, once with rules of nftables in both hosts, once
with boxes of the same meaning on the paths. The kernels' MIB counters of both hosts must be the same for rules and boxes.
"""
import json, os, socket, subprocess, sys, tempfile, time

NFT = os.environ.get("NFT", "nft")
PORT, BYTES, MPTCP = 5001, 3_000_000, 262
# Counters of the order in which data arrives, and of what is retransmitted or how windows move, differ from run to run.
LEFT_OUT = ("OFO", "Duplicate", "Wnd", "Retrans", "CurrEstab", "Prun", "Blackhole")
SYN = "tcp flags syn"
CASES = {
    # name: (nft rules of the client, of the server, boxes up, boxes down, protocol)
    "nothing": ([], [], "", "", MPTCP),
    "all of Multipath TCP": (["reset tcp option mptcp"], ["reset tcp option mptcp"], "{ kind = 'strip' }", "{ kind = 'strip' }", MPTCP),
    "MP_CAPABLE, SYN": ([f"{SYN} tcp option mptcp subtype 0 reset tcp option mptcp"], [], "{ kind = 'strip', options = 'mp-capable', on = 'syn' }", "", MPTCP),
    "MP_CAPABLE, SYN/ACK": ([], [f"{SYN} tcp option mptcp subtype 0 reset tcp option mptcp"], "", "{ kind = 'strip', options = 'mp-capable', on = 'syn' }", MPTCP),
    "MP_JOIN, SYN": ([f"{SYN} tcp option mptcp subtype 1 reset tcp option mptcp"], [], "{ kind = 'strip', options = 'mp-join', on = 'syn' }", "", MPTCP),
    "MP_JOIN, SYN/ACK": ([], [f"{SYN} tcp option mptcp subtype 1 reset tcp option mptcp"], "", "{ kind = 'strip', options = 'mp-join', on = 'syn' }", MPTCP),
    "ECN cleared": (["ip ecn set not-ect"], ["ip ecn set not-ect"], "{ kind = 'ecn', all = true }", "{ kind = 'ecn', all = true }", 0),
    "MSS of 1000": ([f"{SYN} tcp option maxseg size set 1000"], [f"{SYN} tcp option maxseg size set 1000"], "{ kind = 'mss', most = 1000 }", "{ kind = 'mss', most = 1000 }", 0),
}


def table(name):
    with open(name) as file:
        lines = file.read().split("\n")
    for names, values in zip(lines[::2], lines[1::2]):
        kind, *names = names.split()
        for one, value in zip(names, values.split()[1:]):
            yield kind.rstrip(":") + one, int(value)


def counters():
    """Nonzero counters of Multipath TCP in this host's namespace, and whether packets with ECT arrived."""
    found = dict(table("/proc/net/netstat"))
    kept = {name: value for name, value in found.items() if name.startswith("MPTcpExt") and value and not any(word in name for word in LEFT_OUT)}
    return kept | {"arrived with ECT": found["IpExtInECT0Pkts"] > 0}


def host(role, rules, out, protocol):
    protocol = int(protocol)
    with open("/proc/sys/net/ipv4/tcp_ecn", "w") as file:
        file.write("1")
    rules = json.loads(rules)
    if rules:
        lines = ["add table inet t", "add chain inet t out { type filter hook output priority 0; }"]
        text = "\n".join(lines + [f"add rule inet t out {rule}" for rule in rules])
        subprocess.run([NFT, "-f", "-"], input=text, text=True, check=True)
    found = serve(protocol) if role == "server" else fetch(protocol)
    with open(out, "w") as file:
        json.dump(found | counters(), file)


def serve(protocol):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", PORT))
        listener.listen()
        connection, _ = listener.accept()
        with connection:
            # Once both paths have joined.
            time.sleep(0.5)
            connection.sendall(bytes(BYTES))
            segment = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) if not protocol else 0
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    return {"segment": segment}


def fetch(protocol):
    for _ in range(50):
        try:
            connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
            connection.connect((os.environ["ANABRANCH_SERVER"], PORT))
            break
        except ConnectionRefusedError:
            time.sleep(0.1)
    got = 0
    with connection:
        while data := connection.recv(65536):
            got += len(data)
    time.sleep(0.3)
    return {"bytes": got}


def play(binary, rules, boxes, protocol):
    with tempfile.TemporaryDirectory() as folder:
        way = f"middlebox = {{ up = [{boxes[0]}], down = [{boxes[1]}] }}\n" if any(boxes) else ""
        path = lambda name, delay: f"[[path]]\nname = '{name}'\nrate = '20mbit'\ndelay = '{delay}ms'\n{way}"
        scenario = os.path.join(folder, "x.toml")
        with open(scenario, "w") as file:
            file.write("duration = '20s'\n[tcp]\necn = true\n" + path("a", 10) + path("b", 15))
        files = [os.path.join(folder, name) for name in ("client", "server")]
        command = lambda role, n: [sys.executable, os.path.abspath(__file__), role, json.dumps(rules[n]), files[n], str(protocol)]
        quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in command("server", 1))
        shell = [binary, "shell", scenario, "-q", "--no-preflight", "--server", quoted, "--", *command("client", 0)]
        subprocess.run(shell, check=True, timeout=90)
        found = []
        for name in files:
            for _ in range(30):
                if os.path.exists(name) and os.path.getsize(name):
                    break
                time.sleep(0.1)
            with open(name) as file:
                found.append(json.load(file))
        return found


def main(binary):
    failed = 0
    for name, (client, server, up, down, protocol) in CASES.items():
        rules = play(binary, (client, server), ("", ""), protocol)
        boxes = play(binary, ([], []), (up, down), protocol)
        failed += rules != boxes
        print(f"{name}: {'equal' if rules == boxes else 'DIFFERENT'}")
        for role, ours, theirs in zip(("client", "server"), boxes, rules):
            for counter in sorted(ours.keys() | theirs.keys()):
                print(f"  {role:7} {counter:40} nft {theirs.get(counter, 0)!s:>8}  box {ours.get(counter, 0)!s:>8}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else host(*sys.argv[1:])
