#!/usr/bin/env python3
"""Goodput of a download by `anabranch proxy`, through boringtun (WireGuard in user space), by the kernel's Multipath TCP and by its TCP.

Between the hosts of two_hosts.py, with interfaces of 1,500 bytes, in three sets: one pair without a limit, two without, two of 50 and 20
Mbit/s. anabranch and Multipath TCP use all pairs, the others the first. Needs root, `ip`, `tc`, `wg` (wireguard-tools) and boringtun-cli.
Usage: docs/lab/goodput.py ANABRANCH BORINGTUN [--trials N] [--seconds S]."""

import argparse
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

from two_hosts import IPV4, PORT, SOCKS, Hosts, run

SETS = {
    "one pair": {"wlan0": (None, 1)},
    "two pairs": {"wlan0": (None, 1), "usb0": (None, 2)},
    "50 and 20 Mbit/s": {"wlan0": ("50mbit", 1), "usb0": ("20mbit", 2)},
}
TUNNEL = "10.8.0.1"
MPTCP = 262
PIECE = 1 << 20
# Student's t for a 95 % interval, by degrees of freedom.
T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
MOST_TRIALS = max(T95) + 1
# boringtun's sockets are the host's, by device: two sittings at once have devices of their own.
DEVICES = [f"wgc{os.getpid()}", f"wgs{os.getpid()}"]


def source():
    """Sends without end to whoever connects."""
    piece = bytes(PIECE)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, MPTCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("0.0.0.0", PORT))
    listener.listen()

    def serve(client):
        with client:
            try:
                while True:
                    client.sendall(piece)
            except OSError:
                pass

    while True:
        threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


def connected(address, protocol=0):
    program = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
    program.settimeout(30)
    program.connect(address)
    return program


def through_proxy():
    program = connected((IPV4.loopback, SOCKS))
    program.sendall(b"\5\1\0\5\1\0\1" + socket.inet_aton(IPV4.target) + struct.pack("!H", PORT))
    assert program.recv(12, socket.MSG_WAITALL)[:4] == b"\5\0\5\0"
    return program


WAYS = {
    "anabranch proxy": through_proxy,
    "boringtun": lambda: connected((TUNNEL, PORT)),
    "kernel Multipath TCP": lambda: connected((IPV4.server, PORT), MPTCP),
    "kernel TCP": lambda: connected((IPV4.server, PORT)),
}


def download(way, seconds):
    """Bit/s, after a second that does not count."""
    program, buffer = WAYS[way](), bytearray(PIECE)
    begun, got = time.monotonic(), 0
    counted = begun + 1
    while (now := time.monotonic()) < counted + seconds:
        length = program.recv_into(buffer)
        assert length, f"{way}: the connection ended"
        got += length if now >= counted else 0
    program.close()
    return got * 8 / seconds


def tunnel(hosts, boringtun):
    """WireGuard over the first pair."""
    ends = [(hosts.laptop, DEVICES[0], "10.8.0.2"), (hosts.server, DEVICES[1], TUNNEL)]
    environment = os.environ | {"WG_SUDO": "1"}
    public = {}
    for namespace, device, address in ends:
        process = hosts.start(namespace, boringtun, "--foreground", "--disable-drop-privileges", device, env=environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        private = subprocess.run(["wg", "genkey"], check=True, capture_output=True).stdout
        public[device] = subprocess.run(["wg", "pubkey"], input=private, check=True, capture_output=True).stdout.decode().strip()
        with open(os.open(os.path.join(hosts.folder, device), os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(private)
        while subprocess.run(["ip", "-n", namespace, "link", "show", device], capture_output=True).returncode:
            assert process.poll() is None, f"{boringtun} ended: is there /dev/net/tun?"
            time.sleep(0.05)
    for (namespace, device, address), (_, other, far) in zip(ends, reversed(ends)):
        where = ["endpoint", f"{IPV4.server}:51820"] if namespace == hosts.laptop else []
        run("ip", "netns", "exec", namespace, "wg", "set", device, "listen-port", "51820", "private-key", os.path.join(hosts.folder, device),
                     "peer", public[other], "allowed-ips", f"{far}/32", *where)
        run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", device)
        # 1,500 bytes less IPv4, UDP, WireGuard's header and tag.
        run("ip", "-n", namespace, "link", "set", device, "mtu", "1440", "up")


def multipath(hosts):
    """The kernel's second subflow leaves through the second interface."""
    for namespace in (hosts.laptop, hosts.server):
        run("ip", "-n", namespace, "mptcp", "limits", "set", "subflow", "4", "add_addr_accepted", "4")
    for name, (_, number) in list(hosts.interfaces.items())[1:]:
        run("ip", "-n", hosts.laptop, "mptcp", "endpoint", "add", f"10.9.{number}.2", "dev", name, "subflow")
    for name, (_, number) in hosts.interfaces.items():
        run("ip", "-n", hosts.laptop, "rule", "add", "from", f"10.9.{number}.2", "table", str(number))
        run("ip", "-n", hosts.laptop, "route", "add", "default", "via", f"10.9.{number}.1", "dev", name, "table", str(number))


def estimate(values, digits):
    """Mean with 95 % interval."""
    n = len(values)
    half = T95[n - 1] * statistics.stdev(values) / n ** 0.5
    return f"{statistics.mean(values):.{digits}f} ± {half:.{digits}f} (n = {n})"


def measure(title, interfaces, arguments):
    with Hosts(interfaces) as hosts:
        multipath(hosts)
        hosts.proxied(arguments.anabranch)
        tunnel(hosts, arguments.boringtun)
        hosts.start(hosts.server, sys.executable, os.path.realpath(__file__), "source")
        # Path MTU discovery of the carrier is over by then.
        time.sleep(8)
        rates = {way: [] for way in WAYS}
        for _ in range(arguments.trials):
            for way in WAYS:
                words = [sys.executable, os.path.realpath(__file__), "download", way, str(arguments.seconds)]
                done = subprocess.run(["ip", "netns", "exec", hosts.laptop, *words], check=True, capture_output=True, text=True)
                rates[way].append(float(done.stdout) / 1e6)
                time.sleep(0.5)
        for way, of in rates.items():
            print(f"{title}: {way}: {estimate(of, 1)} Mbit/s", flush=True)
        # Trial by trial: both ways of one trial meet about the same load.
        ratios = [ours / theirs for ours, theirs in zip(rates["anabranch proxy"], rates["boringtun"])]
        print(f"{title}: anabranch proxy ÷ boringtun: {estimate(ratios, 2)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("anabranch", type=os.path.realpath)
    parser.add_argument("boringtun", type=os.path.realpath)
    parser.add_argument("--trials", type=int, default=5, choices=range(2, MOST_TRIALS + 1))
    parser.add_argument("--seconds", type=float, default=4)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"load average {os.getloadavg()[0]:.1f}", flush=True)
    for title, interfaces in SETS.items():
        measure(title, interfaces, arguments)


if __name__ == "__main__":
    if sys.argv[1:] == ["source"]:
        source()
    elif sys.argv[1:2] == ["download"]:
        print(download(sys.argv[2], float(sys.argv[3])))
    else:
        main()
