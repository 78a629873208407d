#!/usr/bin/env python3
"""Streams of all kinds through `anabranch proxy` for a while: downloads, uploads, and half-closes by either end, each with its SHA-256.

Between the hosts of two_hosts.py. `--flaps N` takes an interface down and up again N times, `--mtu N` narrows the
paths in mid-stream and widens them again, `--roam N` gives an interface another address N times, `--ipv6` has no IPv4 at all. Needs root, `ip` and `tc`.
Usage: docs/lab/soak.py ANABRANCH [--minutes N] [--seed N] [--workers N] [--flaps N] [--mtu N] [--roam N] [--ipv6]. The last line says what was carried."""

import argparse
import collections
import hashlib
import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

from two_hosts import IPV4, IPV6, PORT, SOCKS, Hosts

MOST = 8 << 20
KINDS = "download", "upload", "program first", "target first"


def content(seed, size):
    return random.Random(seed).randbytes(size)


def whole(stream):
    """The digest of everything until the end."""
    digest = hashlib.sha256()
    while piece := stream.recv(1 << 16):
        digest.update(piece)
    return digest.digest()


def target(address):
    """Serves what the first 17 bytes name: kind, seed and size."""
    listener = socket.create_server((address, PORT), family=socket.AF_INET6 if ":" in address else socket.AF_INET, backlog=512)
    digests = {}

    def serve(client):
        with client:
            try:
                kind, seed, size = struct.unpack("!BQQ", client.recv(17, socket.MSG_WAITALL))
                if kind == 0:
                    client.sendall(content(seed, size))
                elif kind == 1:
                    client.sendall(whole(client))
                elif kind == 2:
                    # All of it is awaited, and the answer is as long.
                    client.sendall(whole(client) + content(seed + 1, size))
                elif kind == 3:
                    client.sendall(content(seed + 1, 1000))
                    client.shutdown(socket.SHUT_WR)
                    digests[seed] = whole(client)
                else:
                    client.sendall(digests.pop(seed, bytes(32)))
            except OSError as error:
                print("target:", error, flush=True)

    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def connect(proxy, address):
    """A connection to the target by SOCKS5."""
    program = socket.create_connection((proxy, SOCKS), timeout=180)
    program.sendall(b"\5\1\0")
    assert program.recv(2, socket.MSG_WAITALL) == b"\5\0"
    family, kind = (socket.AF_INET6, b"\4") if ":" in address else (socket.AF_INET, b"\1")
    program.sendall(b"\5\1\0" + kind + socket.inet_pton(family, address) + struct.pack("!H", PORT))
    reply = program.recv(10, socket.MSG_WAITALL)
    assert reply[:2] == b"\5\0", reply
    return program


def carry(proxy, address, kind, seed, size):
    """Carries one stream. True if every byte arrived at its end."""
    expected = hashlib.sha256(content(seed, size)).digest()
    with connect(proxy, address) as program:
        program.sendall(struct.pack("!BQQ", kind, seed, size))
        if kind == 0:
            return whole(program) == expected
        if kind == 3:
            # The target writes no more, and the program still does.
            first = whole(program) == hashlib.sha256(content(seed + 1, 1000)).digest()
            program.sendall(content(seed, size))
            program.shutdown(socket.SHUT_WR)
            time.sleep(0.5)
            # Many workers share the paths: an upload of the greatest size may take minutes.
            for _ in range(600):
                with connect(proxy, address) as asking:
                    asking.sendall(struct.pack("!BQQ", 4, seed, 0))
                    if (got := asking.recv(32, socket.MSG_WAITALL)) != bytes(32):
                        return first and got == expected
                time.sleep(1)
            return False
        program.sendall(content(seed, size))
        program.shutdown(socket.SHUT_WR)
        answer = hashlib.sha256(expected + (content(seed + 1, size) if kind == 2 else b"")).digest()
        return whole(program) == answer


def work(proxy, address, until, seed, workers):
    """Prints what was carried; exits with 1 if something was wrong."""
    carried, sizes, wrong, lock = collections.Counter(), collections.Counter(), [], threading.Lock()

    def one(number):
        luck, count = random.Random(f"{seed} {number}"), 0
        while time.time() < until and not wrong:
            count += 1
            kind, size = luck.randrange(4), int(MOST ** luck.random())
            name = (seed << 40) + (number << 20) + 2 * count
            try:
                right = carry(proxy, address, kind, name, size)
            except (OSError, AssertionError) as error:
                right, kind = False, f"{KINDS[kind]}: {error!r}"
            with lock:
                if not right:
                    wrong.append((kind, name, size))
                else:
                    carried[KINDS[kind]] += 1
                    sizes[KINDS[kind]] += size

    threads = [threading.Thread(target=one, args=(number,)) for number in range(workers)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    what = ", ".join(f"{carried[kind]} {kind}" for kind in KINDS)
    print(f"{sum(carried.values())} streams ({what}), {sum(sizes.values()) >> 20} MiB, wrong: {wrong or 'none'}", flush=True)
    sys.exit(bool(wrong))


def disturb(hosts, until, luck, arguments):
    """Spreads what is to happen over the time."""
    numbers = {name: 2 for name in hosts.interfaces}

    def flap():
        name = luck.choice(list(numbers))
        hosts.down(name)
        time.sleep(luck.uniform(0.2, 4))
        hosts.up(name, numbers[name])

    def roam():
        name = luck.choice(list(numbers))
        numbers[name] = 2 + (numbers[name] - 1) % 200
        hosts.up(name, numbers[name])

    def squeeze():
        hosts.narrow(arguments.mtu)
        time.sleep(luck.uniform(5, 10))
        hosts.narrow(1500)

    events = [flap] * arguments.flaps + [roam] * arguments.roam + [squeeze] * (6 if arguments.mtu < 1500 else 0)
    luck.shuffle(events)
    for left in range(len(events), 0, -1):
        time.sleep(max(0.0, (until - time.time() - 15) / left * luck.uniform(0.5, 1)))
        events[left - 1]()
    return collections.Counter(event.__name__ for event in events)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("anabranch")
    parser.add_argument("--minutes", type=float, default=3)
    for name, usual in (("seed", 1), ("workers", 6), ("flaps", 0), ("mtu", 1500), ("roam", 0)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--ipv6", action="store_true")
    arguments = parser.parse_args()
    binary, own, plan = os.path.realpath(arguments.anabranch), os.path.realpath(__file__), IPV6 if arguments.ipv6 else IPV4
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with Hosts(plan=plan) as hosts:
        hosts.proxied(binary)
        hosts.start(hosts.server, sys.executable, own, "target", plan.target)
        time.sleep(1)
        until = time.time() + 60 * arguments.minutes
        words = [plan.loopback, plan.target, str(until), str(arguments.seed), str(arguments.workers)]
        working = hosts.start(hosts.laptop, sys.executable, own, "work", *words)
        happened = disturb(hosts, until, random.Random(arguments.seed), arguments)
        code = working.wait()
        for end in ("s.sock", "p.sock"):
            state = subprocess.run([binary, "status", "--json", "--socket", end], cwd=hosts.folder, capture_output=True, text=True).stdout
            counters = json.loads(state)["counters"] if state else {}
            print(f"{end}:", {name: count for name, count in counters.items() if count}, flush=True)
        print(f"{arguments.minutes:g} min, {dict(happened)}, {'IPv6' if arguments.ipv6 else 'IPv4'}: {'passed' if code == 0 else 'FAILED'}")
        sys.exit(code)


if __name__ == "__main__":
    if sys.argv[1:2] == ["target"]:
        target(sys.argv[2])
    elif sys.argv[1:2] == ["work"]:
        work(sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6]))
    else:
        main()
