"""A laptop and a server: two network namespaces that stand in for the internet. flapping.py, goodput.py, proxy_times.py and soak.py measure between them.

The server has an address that all interfaces of the laptop reach, as in docs/links.sh. It needs root, `ip` and `tc`."""

import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass

#: The rate (None: no limit) and the number of each interface of the laptop.
INTERFACES = {"wlan0": ("20mbit", 1), "usb0": ("10mbit", 2)}
#: Ports of the target and of the proxy.
PORT, SOCKS = 8080, 1080


@dataclass(frozen=True)
class Plan:
    """Addresses. That of the target is public, as the server dials no other; it exists in the namespace alone."""

    server: str
    target: str
    network: str
    loopback: str
    bits: int
    whole: int
    nodad: tuple[str, ...] = ()

    def at(self, address, port):
        return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


IPV4 = Plan("10.9.0.1", "10.99.0.9", "10.9.{}.{}", "127.0.0.1", 24, 32)
IPV6 = Plan("fd09::1", "fd99::9", "fd09:0:{}::{}", "::1", 64, 128, ("nodad",))


def run(*words):
    subprocess.run(words, check=True)


def said(process, word):
    """Waits until a process has said a word on standard error; all that it says is shown."""
    while line := process.stderr.readline():
        print(line.strip(), flush=True)
        if word in line:
            threading.Thread(target=lambda: [print(line.strip(), flush=True) for line in process.stderr], daemon=True).start()
            return
    sys.exit(f"it ended before it said `{word}`")


def keys(binary, folder):
    """Keys of both ends in `folder`, and the list of those that the server authorises; the server's public key."""
    key = subprocess.run([binary, "key", "new", "server.key"], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
    with open(os.open(os.path.join(folder, "authorized"), os.O_CREAT | os.O_WRONLY, 0o600), "w") as authorized:
        subprocess.run([binary, "key", "new", "client.key"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([binary, "key", "show", "client.key", "--authorize", "laptop"], cwd=folder, check=True, stdout=authorized)
    return key


class Hosts:
    """Both hosts with their links while the `with` statement lasts, the programs that run there, and a folder for these."""

    def __init__(self, interfaces=INTERFACES, plan=IPV4, laptop=None):
        self.interfaces, self.plan, self.processes = interfaces, plan, []
        self.laptop, self.server = laptop or f"laptop-{os.getpid()}", f"server-{os.getpid()}"

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        self.folder = self._folder.name
        try:
            self._build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait()
        for namespace in (self.laptop, self.server):
            subprocess.run(["ip", "netns", "del", namespace], check=False)
        self._folder.cleanup()

    def _build(self):
        plan = self.plan
        for namespace in (self.laptop, self.server):
            run("ip", "netns", "add", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
        for address in (plan.server, plan.target):
            run("ip", "-n", self.server, "addr", "add", f"{address}/{plan.whole}", "dev", "lo")
        for name, (rate, number) in self.interfaces.items():
            run("ip", "-n", self.laptop, "link", "add", name, "type", "veth", "peer", "name", f"to-{name}", "netns", self.server)
            run("ip", "-n", self.server, "link", "set", f"to-{name}", "up")
            there = f"{plan.network.format(number, 1)}/{plan.bits}"
            run("ip", "-n", self.server, "addr", "add", there, "dev", f"to-{name}", *plan.nodad)
            self.up(name)
            for namespace, device in ((self.laptop, name), (self.server, f"to-{name}")) if rate else ():
                run("tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", "rate", rate, "burst", "3028", "limit", "100000")

    def up(self, name, host=2):
        """Puts an interface of the laptop into service, with this address of its network. The kernel forgets routes with the interface."""
        plan, number = self.plan, self.interfaces[name][1]
        run("ip", "-n", self.laptop, "link", "set", name, "up")
        run("ip", "-n", self.laptop, "addr", "flush", "dev", name, "scope", "global")
        here = f"{plan.network.format(number, host)}/{plan.bits}"
        run("ip", "-n", self.laptop, "addr", "add", here, "dev", name, *plan.nodad)
        via = ["via", plan.network.format(number, 1), "dev", name, "metric", str(number)]
        run("ip", "-n", self.laptop, "route", "replace", f"{plan.server}/{plan.whole}", *via)

    def down(self, name):
        run("ip", "-n", self.laptop, "link", "set", name, "down")

    def narrow(self, mtu):
        for name in self.interfaces:
            run("ip", "-n", self.laptop, "link", "set", name, "mtu", str(mtu))
            run("ip", "-n", self.server, "link", "set", f"to-{name}", "mtu", str(mtu))

    def start(self, namespace, *words, **options):
        """A program that runs until the hosts end."""
        self.processes.append(subprocess.Popen(["ip", "netns", "exec", namespace, *words], cwd=self.folder, **options))
        return self.processes[-1]

    def proxied(self, binary):
        """`anabranch serve --proxy`, and the `proxy` of the laptop over all its interfaces: both processes."""
        plan, key = self.plan, keys(binary, self.folder)
        listen, pipes = plan.at(plan.server, 51900), {"stderr": subprocess.PIPE, "text": True}
        # The target's address is the server's own, which only its owner's leave opens.
        served = ["--proxy", "--allow", plan.target, "--listen", listen, "--socket", "s.sock"]
        serve = self.start(self.server, binary, "serve", *served, **pipes)
        said(serve, "listening")
        options = ["--via", ",".join(self.interfaces), "--server-key", key, "--socks", plan.at(plan.loopback, SOCKS), "--socket", "p.sock"]
        proxy = self.start(self.laptop, binary, "proxy", listen, *options, **pipes)
        said(proxy, "listening")
        return serve, proxy
