"""What Linux makes of a train of packets: nftables' limit as a policer, TBF and HTB as shapers.

Usage: kernel_buckets.py nft|tbf|htb BITS_PER_SECOND BURST SEED. Three network namespaces in a row: a sends, b forwards, c receives. Every time is the
kernel's, of arrival at b and at c. Prints a line for each packet: arrival in ns, bytes of the IP packet, and when it came to c, or `-`.
"""
import ctypes, os, random, socket, struct, subprocess, sys, threading, time

kind, rate, burst, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
names = [f"{part}-{os.getpid()}" for part in ("bucket-a", "bucket-b", "bucket-c")]
ETH_P_ALL, SO_TIMESTAMPNS, CLONE_NEWNET = 3, 35, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def sh(line):
    subprocess.run(line.split(), check=True)


def within(name):
    with open(f"/run/netns/{name}") as ns:
        if LIBC.setns(ns.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")


def watch(name, device, into, ready, stop):
    within(name)
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.setsockopt(socket.SOL_SOCKET, 33, 1 << 26)
    tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    tap.bind((device, 0))
    tap.settimeout(0.1)
    ready.set()
    while not stop.is_set():
        try:
            data, extra, _, address = tap.recvmsg(2048, 64)
        except TimeoutError:
            continue
        # Incoming UDP to port 9.
        if address[2] == socket.PACKET_OUTGOING or len(data) < 46 or data[12:14] != b"\x08\x00" or data[36:38] != b"\x00\x09":
            continue
        seconds, nanos = struct.unpack("qq", extra[0][2])
        into[struct.unpack("!I", data[42:46])[0]] = (seconds * 10**9 + nanos, len(data) - 14)


def main():
    a, b, c = names
    for name in names:
        sh(f"ip netns add {name}")
    sh(f"ip link add a0 netns {a} type veth peer name b0 netns {b}")
    sh(f"ip link add c0 netns {c} type veth peer name b1 netns {b}")
    for name, device, address in ((a, "a0", "10.9.0.1"), (b, "b0", "10.9.0.2"), (b, "b1", "10.9.1.2"), (c, "c0", "10.9.1.1")):
        sh(f"ip -n {name} addr add {address}/24 dev {device}")
        sh(f"ip -n {name} link set {device} up")
    sh(f"ip -n {a} route add default via 10.9.0.2")
    sh(f"ip -n {c} route add default via 10.9.1.2")
    sh(f"ip netns exec {b} sysctl -qw net.ipv4.ip_forward=1")
    macs = subprocess.run(f"ip -n {c} -br link show c0".split(), capture_output=True, text=True, check=True).stdout.split()[2]
    sh(f"ip -n {b} neigh replace 10.9.1.1 lladdr {macs} dev b1")
    macs = subprocess.run(f"ip -n {b} -br link show b0".split(), capture_output=True, text=True, check=True).stdout.split()[2]
    sh(f"ip -n {a} neigh replace 10.9.0.2 lladdr {macs} dev a0")
    bits = int(rate)
    if kind == "nft":
        rules = f"add table ip t; add chain ip t f {{ type filter hook forward priority 0; }}; add rule ip t f udp dport 9 limit rate over {bits // 8} bytes/second burst {burst} bytes drop"
        subprocess.run(["ip", "netns", "exec", b, "nft", rules], check=True)
    elif kind == "tbf":
        sh(f"tc -n {b} qdisc add dev b1 root tbf rate {bits}bit burst {burst} limit 100000000")
    else:
        sh(f"tc -n {b} qdisc add dev b1 root handle 1: htb default 1 direct_qlen 100000")
        sh(f"tc -n {b} class add dev b1 parent 1: classid 1:1 htb rate {bits}bit ceil {bits}bit burst {burst} cburst {burst} quantum 1500")
        sh(f"tc -n {b} qdisc add dev b1 parent 1:1 pfifo limit 100000")
    came, left, stop = {}, {}, threading.Event()
    watchers = []
    for name, device, into in ((b, "b0", came), (c, "c0", left)):
        ready = threading.Event()
        watchers.append(threading.Thread(target=watch, args=(name, device, into, ready, stop), daemon=True))
        watchers[-1].start()
        if not ready.wait(10):
            sys.exit("no capture")
    luck = random.Random(seed)
    sent = 0

    def send():
        nonlocal sent
        within(a)
        out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        # Bursts and gaps, about 1.5 times the rate on average.
        for _ in range(60):
            for _ in range(luck.randrange(1, 25)):
                size = luck.choice((40, 200, 576, 1000, 1400, 1472))
                out.sendto(struct.pack("!I", sent) + bytes(size - 4), ("10.9.1.1", 9))
                sent += 1
                time.sleep(luck.choice((0, 0, 0, size * 8 / bits)))
            time.sleep(luck.expovariate(1 / 0.004))

    sender = threading.Thread(target=send)
    sender.start()
    sender.join()
    until = time.time() + 20
    while kind != "nft" and len(left) < len(came) and time.time() < until:
        time.sleep(0.05)
    time.sleep(0.3)
    stop.set()
    for watcher in watchers:
        watcher.join()
    first = min(at for at, _ in came.values())
    for number in sorted(came):
        at, size = came[number]
        print(at - first, size, left[number][0] - first if number in left else "-")


try:
    main()
finally:
    for name in names:
        subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)
