#!/usr/bin/env python3
"""Times of `anabranch proxy`: requests, new connections, interfaces that come and go, many connections, memory.

Requests are timed beside the same without the proxy: over paths that `anabranch shell` emulates (`requests`: round trips of 10 and 40 ms), and
between the hosts of two_hosts.py (`overhead`: 20 and 10 Mbit/s without delay). There is all else, too. Needs root, `ip` and `tc`.
Usage: docs/lab/proxy_times.py ANABRANCH [PART…], the parts being requests, overhead, interfaces, silence and many; all unless given."""

import os
import random
import shlex
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

from two_hosts import INTERFACES, IPV4, PORT, SOCKS, Hosts, keys, said

TARGET = IPV4.target

PATHS = """
duration = "600s"

[[path]]
name = "best"
rate = "50mbit"
delay = "5ms"

[[path]]
name = "other"
rate = "20mbit"
delay = "20ms"

[[traffic]]
kind = "bulk"
"""
BEST_RTT = 0.010
REQUEST = b"r" * 100
BIG = 64 << 20


def echo(address):
    """Answers each request of 100 bytes with itself; after a request that begins with `B`, sends 64 MiB."""
    listener = socket.create_server((address, PORT), backlog=4096)

    def serve(client):
        with client:
            try:
                while request := client.recv(len(REQUEST), socket.MSG_WAITALL):
                    client.sendall(bytes(BIG) if request.startswith(b"B") else request)
            except OSError:
                pass

    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def direct(address):
    program = socket.create_connection((address, PORT), timeout=60)
    program.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return program


def proxied(address):
    program = socket.create_connection((IPV4.loopback, SOCKS), timeout=60)
    program.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    program.sendall(b"\5\1\0")
    assert program.recv(2, socket.MSG_WAITALL) == b"\5\0"
    program.sendall(b"\5\1\0\1" + socket.inet_aton(address) + struct.pack("!H", PORT))
    reply = program.recv(10, socket.MSG_WAITALL)
    assert reply[:2] == b"\5\0", reply
    return program


def request(program):
    program.sendall(REQUEST)
    assert program.recv(len(REQUEST), socket.MSG_WAITALL) == REQUEST


def timed(act):
    begun = time.perf_counter()
    result = act()
    return time.perf_counter() - begun, result


def compare(what, ours, others, room):
    """Prints both medians and their difference beside the goal."""
    more = statistics.median(ours) - statistics.median(others)
    p95 = lambda times: sorted(times)[len(times) * 19 // 20]
    print(f"{what}: {statistics.median(ours) * 1e3:.2f} ms (p95 {p95(ours) * 1e3:.2f}), direct {statistics.median(others) * 1e3:.2f} ms "
          f"(p95 {p95(others) * 1e3:.2f}), n = {len(ours)}: {more * 1e3:+.2f} ms, goal ≤ {room * 1e3:+.1f} ms: "
          f"{'reached' if more <= room else 'MISSED'}", flush=True)


def requests(near, far, rtt, count=100):
    """New connections and requests on those that are there, without the proxy to `near` and with it to `far`, in turn."""
    new, established = {direct: [], proxied: []}, {direct: [], proxied: []}
    for _ in range(count):
        for how, address in ((direct, near), (proxied, far)):
            def first(how=how, address=address):
                program = how(address)
                request(program)
                return program
            took, program = timed(first)
            new[how].append(took)
            for _ in range(3):
                time.sleep(0.01)
                established[how].append(timed(lambda: request(program))[0])
            program.close()
            time.sleep(0.02)
    compare("request on an established connection", established[proxied], established[direct], 0.001)
    compare("new connection with a request", new[proxied], new[direct], rtt + 0.001)


def in_shell(binary, own, folder):
    """`requests` between the hosts of `anabranch shell`."""
    key = keys(binary, folder)
    with open(os.path.join(folder, "paths.toml"), "w") as scenario:
        scenario.write(PATHS)
    quoted = lambda *words: " ".join(map(shlex.quote, words))
    serve = quoted(binary, "serve", "--proxy", "--allow", "10.0.0.2", "--listen", "10.0.0.2:51900")
    server = f"{serve} 2>serve.log & exec {quoted(sys.executable, own, 'echo', '10.0.0.2')}"
    client = [sys.executable, own, "requests", binary, key]
    subprocess.run([binary, "shell", "-q", "paths.toml", "--server", server, "--", *client], cwd=folder, check=True)


def resident(process):
    """MiB of memory, now and at most."""
    with open(f"/proc/{process.pid}/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return tuple(int(lines[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))


def many(proxy, serve):
    """A thousand connections at once, ten thousand one after another."""
    memory = lambda: ", ".join(f"{name} {now:.0f} MiB (at most {most:.0f})" for name, (now, most) in
                               (("proxy", resident(proxy)), ("serve", resident(serve))))
    print(f"memory before: {memory()}", flush=True)
    def open_all():
        programs = [proxied(TARGET) for _ in range(1000)]
        for program in programs:
            program.sendall(REQUEST)
        for program in programs:
            assert program.recv(len(REQUEST), socket.MSG_WAITALL) == REQUEST
        return programs
    took, programs = timed(open_all)
    print(f"1,000 connections at once, a request on each: {took:.1f} s, all answered; {memory()}", flush=True)
    for program in programs:
        program.close()
    def one_after_another():
        for _ in range(10_000):
            with proxied(TARGET) as program:
                request(program)
    took, _ = timed(one_after_another)
    print(f"10,000 connections one after another: {took:.1f} s, all answered; {memory()}", flush=True)


def received(name):
    with open(f"/sys/class/net/{name}/statistics/rx_bytes") as count:
        return int(count.read())


class Download:
    """A download without end; knows its longest silence since it was last asked."""

    def __init__(self):
        self.program, self.silence, self.last, self.ended = proxied(TARGET), 0.0, time.monotonic(), False
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while not self.ended:
                self.request()
        except OSError:
            assert self.ended, "the download was cut off"

    def request(self):
        self.program.sendall(b"B" * len(REQUEST))
        left = BIG
        while left > 0:
            piece = self.program.recv(min(left, 1 << 16))
            if not piece:
                raise ConnectionResetError
            left -= len(piece)
            now = time.monotonic()
            self.silence, self.last = max(self.silence, now - self.last), now

    def longest(self):
        """Also the silence that lasts."""
        longest = max(self.silence, time.monotonic() - self.last)
        self.silence = 0.0
        return longest

    def end(self):
        self.ended = True
        self.program.close()


def loaded_rtt():
    """The larger round-trip time of the two interfaces under the load of the download: of requests beside it, the mean of three."""
    def of(name):
        with socket.socket() as program:
            program.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, name.encode())
            program.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            program.connect((IPV4.server, PORT))
            return statistics.mean(timed(lambda: request(program))[0] for _ in range(3))
    return max(map(of, INTERFACES))


def new_interfaces(hosts, trials=10):
    """From an interface's coming up to 100 KB that came through it."""
    times = []
    for n in range(trials):
        name = list(INTERFACES)[n % 2]
        hosts.down(name)
        time.sleep(1.5)
        download = Download()
        time.sleep(1.5)
        hosts.up(name)
        begun, before = time.monotonic(), received(name)
        while received(name) - before < 100_000 and time.monotonic() - begun < 30:
            time.sleep(0.005)
        times.append(time.monotonic() - begun)
        download.end()
        time.sleep(1)
    verdict = "reached" if max(times) <= 2 else "MISSED"
    print(f"a new interface carries 100 KB: median {statistics.median(times):.2f} s, at most {max(times):.2f} s (n = {trials}), goal ≤ 2 s: {verdict}",
          flush=True)


def silences(hosts, luck, trials=20):
    """An interface is pulled in mid-download: the longest time without a byte."""
    within, lines = 0, []
    for n in range(trials):
        download = Download()
        time.sleep(3 + luck.uniform(0, 2))
        name = list(INTERFACES)[n % 2]
        bound = 3 * loaded_rtt() + 0.150
        download.longest()
        hosts.down(name)
        time.sleep(3)
        silence = download.longest()
        within += silence <= bound
        lines.append((silence, bound))
        hosts.up(name)
        download.end()
        time.sleep(2)
    print("silence and bound, ms: " + " ".join(f"{s * 1e3:.0f}/{b * 1e3:.0f}" for s, b in lines))
    print(f"an interface is pulled: longest silence median {statistics.median(s for s, _ in lines) * 1e3:.0f} ms, at most "
          f"{max(s for s, _ in lines) * 1e3:.0f} ms; within 3 × RTT + 150 ms in {within} of {trials}, goal 19: "
          f"{'reached' if within >= trials - 1 else 'MISSED'}", flush=True)


def in_laptop(hosts, part, serve, proxy):
    process = lambda pid: type("Process", (), {"pid": int(pid)})
    if part == "overhead":
        requests(IPV4.server, TARGET, 0)
    elif part == "many":
        many(process(proxy), process(serve))
    elif part == "interfaces":
        new_interfaces(hosts)
    else:
        silences(hosts, random.Random(1))


def between_hosts(binary, own, part):
    with Hosts() as hosts:
        serve, proxy = hosts.proxied(binary)
        hosts.start(hosts.server, sys.executable, own, "echo", "0.0.0.0")
        time.sleep(1)
        words = ["in-laptop", part, str(serve.pid), str(proxy.pid), hosts.laptop]
        subprocess.run(["ip", "netns", "exec", hosts.laptop, sys.executable, own, *words], check=True)


def main():
    binary, own = os.path.realpath(sys.argv[1]), os.path.realpath(__file__)
    parts = sys.argv[2:] or ["requests", "overhead", "interfaces", "silence", "many"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"load average {os.getloadavg()[0]:.1f}", flush=True)
    for part in parts:
        if part == "requests":
            with tempfile.TemporaryDirectory() as folder:
                in_shell(binary, own, folder)
        else:
            between_hosts(binary, own, part)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["echo", address]:
            echo(address)
        case ["requests", binary, key]:
            options = ["--via", "path0,path1", "--server-key", key, "--socks", IPV4.at(IPV4.loopback, SOCKS)]
            proxy = subprocess.Popen([binary, "proxy", "10.0.0.2", *options], stderr=subprocess.PIPE, text=True)
            said(proxy, "listening")
            time.sleep(1)
            requests("10.0.0.2", "10.0.0.2", BEST_RTT)
            proxy.terminate()
        case ["in-laptop", part, serve, proxy, laptop]:
            in_laptop(Hosts(laptop=laptop), part, serve, proxy)
        case [_, *_]:
            main()
        case _:
            sys.exit(__doc__)
