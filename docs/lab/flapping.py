#!/usr/bin/env python3
"""Downloads through `anabranch proxy` while its interfaces come and go at random: every download must have every byte.

Between the hosts of two_hosts.py: a laptop with wlan0 (20 Mbit/s) and usb0 (10 Mbit/s), and a server that both
reach. Needs root, `ip` and `tc`. Usage: docs/lab/flapping.py ANABRANCH [--minutes N] [--seed N]. The last line counts downloads and changes."""

import argparse
import hashlib
import os
import random
import signal
import socket
import struct
import sys
import threading
import time

from two_hosts import IPV4, PORT, SOCKS, Hosts

TARGET = IPV4.target
SIZE = 8 << 20


def content(seed):
    return random.Random(seed).randbytes(SIZE)


def target():
    """Sends the bytes of the seed that a client names, in 8 bytes."""
    listener = socket.create_server((TARGET, PORT))

    def serve(client):
        with client:
            try:
                client.sendall(content(struct.unpack("!Q", client.recv(8, socket.MSG_WAITALL))[0]))
            except OSError:
                pass

    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def download(seed):
    """The number of bytes and their hash."""
    with socket.create_connection((IPV4.loopback, SOCKS), timeout=120) as program:
        program.sendall(b"\5\1\0")
        assert program.recv(2, socket.MSG_WAITALL) == b"\5\0"
        program.sendall(b"\5\1\0\1" + socket.inet_aton(TARGET) + struct.pack("!H", PORT))
        reply = program.recv(10, socket.MSG_WAITALL)
        assert reply[:2] == b"\5\0", reply
        program.sendall(struct.pack("!Q", seed))
        hashed, length, silence, last = hashlib.sha256(), 0, 0.0, time.monotonic()
        while piece := program.recv(1 << 16):
            hashed.update(piece)
            length += len(piece)
            silence, last = max(silence, time.monotonic() - last), time.monotonic()
        return length, hashed.hexdigest(), silence


def downloads(until, seed):
    """Prints a line per download; exits with 1 if one is wrong."""
    done, longest = 0, 0.0
    while time.time() < until:
        seed += 1
        length, digest, silence = download(seed)
        right = digest == hashlib.sha256(content(seed)).hexdigest()
        done, longest = done + 1, max(longest, silence)
        print(f"download {done}: {length} bytes, {'equal' if right else 'WRONG'}, longest silence {silence:.2f} s", flush=True)
        if not right:
            sys.exit(1)
    print(f"{done} downloads, every hash equal, longest silence {longest:.2f} s", flush=True)


def flap(hosts, until, luck):
    """Takes one interface down, for 0.2 to 8 s, and rarely both; returns how often something changed."""
    changes = 0
    while time.time() < until:
        time.sleep(luck.uniform(0.5, 8))
        names = list(hosts.interfaces) if luck.random() < 0.1 else [luck.choice(list(hosts.interfaces))]
        for name in names:
            hosts.down(name)
        time.sleep(luck.uniform(0.2, 8))
        for name in names:
            hosts.up(name)
        changes += 2 * len(names)
    return changes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("anabranch")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    binary, own = os.path.realpath(arguments.anabranch), os.path.realpath(__file__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with Hosts() as hosts:
        hosts.proxied(binary)
        hosts.start(hosts.server, sys.executable, own, "target")
        time.sleep(1)
        until = time.time() + 60 * arguments.minutes
        loading = hosts.start(hosts.laptop, sys.executable, own, "downloads", str(until), str(arguments.seed))
        changes = flap(hosts, until, random.Random(arguments.seed))
        code = loading.wait(timeout=180)
        print(f"{changes} changes of interfaces in {arguments.minutes:g} min: {'passed' if code == 0 else 'FAILED'}")
        sys.exit(code)


if __name__ == "__main__":
    if sys.argv[1:2] == ["target"]:
        target()
    elif sys.argv[1:2] == ["downloads"]:
        downloads(float(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
