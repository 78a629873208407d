#!/usr/bin/env python3
"""Downloads through `anabranch proxy` while its interfaces come and go at random: every download must have every byte.

Two network namespaces stand in for the internet, as in links.sh: a laptop with wlan0 (20 Mbit/s) and usb0 (10 Mbit/s), and a server that both
reach. Needs root, `ip` and `tc`. Usage: docs/flapping.py ANABRANCH [--minutes N] [--seed N]. The last line counts downloads and changes."""

import argparse
import hashlib
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

LAPTOP, SERVER = f"laptop-{os.getpid()}", f"server-{os.getpid()}"
# A public address, as the server dials no other; it exists in the namespace alone.
TARGET, PORT, SOCKS = "10.99.0.9", 8080, ("127.0.0.1", 1080)
SIZE = 8 << 20
INTERFACES = {"wlan0": ("20mbit", 1), "usb0": ("10mbit", 2)}


def run(*words):
    subprocess.run(words, check=True)


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
    with socket.create_connection(SOCKS, timeout=120) as program:
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


def change(name, up):
    _, number = INTERFACES[name]
    run("ip", "-n", LAPTOP, "link", "set", name, "up" if up else "down")
    if up:
        # The kernel forgets the route with the interface.
        run("ip", "-n", LAPTOP, "route", "replace", "10.9.0.1", "via", f"10.9.{number}.1", "dev", name, "metric", str(number))


def flap(until, luck):
    """Takes one interface down, for 0.2 to 8 s, and rarely both; returns how often something changed."""
    changes = 0
    while time.time() < until:
        time.sleep(luck.uniform(0.5, 8))
        names = list(INTERFACES) if luck.random() < 0.1 else [luck.choice(list(INTERFACES))]
        for name in names:
            change(name, False)
        time.sleep(luck.uniform(0.2, 8))
        for name in names:
            change(name, True)
        changes += 2 * len(names)
    return changes


def build():
    for namespace in (LAPTOP, SERVER):
        run("ip", "netns", "add", namespace)
        run("ip", "-n", namespace, "link", "set", "lo", "up")
    run("ip", "-n", SERVER, "addr", "add", "10.9.0.1/32", "dev", "lo")
    run("ip", "-n", SERVER, "addr", "add", f"{TARGET}/32", "dev", "lo")
    for name, (rate, number) in INTERFACES.items():
        run("ip", "-n", LAPTOP, "link", "add", name, "type", "veth", "peer", "name", f"to-{name}", "netns", SERVER)
        run("ip", "-n", LAPTOP, "addr", "add", f"10.9.{number}.2/24", "dev", name)
        run("ip", "-n", SERVER, "addr", "add", f"10.9.{number}.1/24", "dev", f"to-{name}")
        run("ip", "-n", SERVER, "link", "set", f"to-{name}", "up")
        change(name, True)
        for namespace, device in ((LAPTOP, name), (SERVER, f"to-{name}")) if rate else ():
            run("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "3028", "limit", "100000")


def inside(namespace, *words, **options):
    return subprocess.Popen(["ip", "netns", "exec", namespace, *words], **options)


def said(process, word):
    while line := process.stderr.readline():
        print(line.strip(), flush=True)
        if word in line:
            # What else it says is shown, too.
            threading.Thread(target=lambda: [print(line.strip(), flush=True) for line in process.stderr], daemon=True).start()
            return
    sys.exit(f"it ended before it said `{word}`")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("anabranch")
    parser.add_argument("--minutes", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    binary, own = os.path.realpath(arguments.anabranch), os.path.realpath(__file__)
    folder = tempfile.TemporaryDirectory()
    processes = []

    def start(namespace, *words, **options):
        processes.append(inside(namespace, *words, cwd=folder.name, **options))
        return processes[-1]

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        build()
        key = subprocess.run([binary, "key", "new", "server.key"], cwd=folder.name, check=True, capture_output=True, text=True).stdout.strip()
        run("sh", "-c", f"cd {folder.name} && umask 077 && {binary} key new client.key > /dev/null && "
            f"{binary} key show client.key --authorize laptop > authorized")
        pipes = {"stderr": subprocess.PIPE, "text": True}
        # The target's address is the server's own, which only its owner's leave opens.
        said(start(SERVER, binary, "serve", "--proxy", "--allow", TARGET, "--listen", "10.9.0.1:51900", **pipes), "listening")
        start(SERVER, sys.executable, own, "target")
        proxy = ["--via", ",".join(INTERFACES), "--server-key", key, "--socks", f"{SOCKS[0]}:{SOCKS[1]}"]
        said(start(LAPTOP, binary, "proxy", "10.9.0.1", *proxy, **pipes), "listening")
        time.sleep(1)
        until = time.time() + 60 * arguments.minutes
        loading = start(LAPTOP, sys.executable, own, "downloads", str(until), str(arguments.seed))
        changes = flap(until, random.Random(arguments.seed))
        code = loading.wait(timeout=180)
        print(f"{changes} changes of interfaces in {arguments.minutes:g} min: {'passed' if code == 0 else 'FAILED'}")
        sys.exit(code)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        for namespace in (LAPTOP, SERVER):
            subprocess.run(["ip", "netns", "del", namespace], check=False)


if __name__ == "__main__":
    if sys.argv[1:2] == ["target"]:
        target()
    elif sys.argv[1:2] == ["downloads"]:
        downloads(float(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
