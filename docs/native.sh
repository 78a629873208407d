#!/bin/sh
# The example of docs/native.md in two network namespaces in place of the internet: a laptop with two interfaces, wlan0 and usb0, and a Linux
# server with Multipath TCP that both reach. Prints bytes, seconds and Gbit/s of a download, and each interface's share. RATE (20mbit) and
# MB (32) change it; without a RATE the interfaces are as fast as the machine; PROTOCOL=6 has a server without Multipath TCP.
# Needs root, nft, curl and python3. Usage: docs/native.sh ANABRANCH [OPTIONS OF PROXY]
set -eu
bin=$(realpath "$1")
shift
rate=${RATE-20mbit} mb=${MB:-32} protocol=${PROTOCOL:-262}
folder=$(mktemp -d)
laptop=laptop-$$ server=server-$$ serving='' proxying=''
end() {
    for process in $proxying $serving; do kill "$process" 2>/dev/null || true; done
    [ -z "$proxying" ] || wait "$proxying" || true
    ip netns del $laptop 2>/dev/null || true
    ip netns del $server 2>/dev/null || true
    rm -r "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM

ip netns add $laptop
ip netns add $server
ip -n $laptop link set lo up
# The server's address, which both interfaces reach.
ip -n $server addr add 10.9.0.1/32 dev lo
ip -n $server link set lo up
join() { # INTERFACE NUMBER
    ip -n $laptop link add "$1" type veth peer name "to-$1" netns $server
    ip -n $laptop addr add "10.9.$2.2/24" dev "$1"
    ip -n $server addr add "10.9.$2.1/24" dev "to-$1"
    ip -n $laptop link set "$1" up
    ip -n $server link set "to-$1" up
    ip -n $laptop route add default via "10.9.$2.1" dev "$1" metric "$2"
    if [ -n "$rate" ]; then
        tc -n $laptop qdisc add dev "$1" root tbf rate "$rate" burst 16kb limit 200000
        tc -n $server qdisc add dev "to-$1" root tbf rate "$rate" burst 16kb limit 200000
    fi
}
join wlan0 1
join usb0 2

cd "$folder"
# An unmodified server: a page of MB megabytes, by the kernel's own Multipath TCP (protocol 262).
cat >serve.py <<'END'
import socket, sys
protocol, size = int(sys.argv[1]), int(sys.argv[2]) << 20
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
listener.bind(("10.9.0.1", 80))
listener.listen()
print("listening", flush=True)
piece = bytes(range(256)) * 4096
while True:
    program, _ = listener.accept()
    program.recv(65536)
    program.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
    for _ in range(size >> 20):
        program.sendall(piece)
    program.close()
END
ip netns exec $server python3 serve.py "$protocol" "$mb" >serve.log 2>&1 &
serving=$!
ip netns exec $laptop "$bin" proxy --native --via wlan0,usb0 "$@" 2>proxy.log &
proxying=$!
for log in serve.log proxy.log; do
    until grep -q listening $log; do
        kill -0 $serving && kill -0 $proxying || { cat $log; exit 1; }
        sleep 0.1
    done
done
received() { ip netns exec $laptop cat /proc/net/dev | awk -v dev="$1:" '$1 == dev { print $2 }'; }
ip netns exec $laptop curl --silent --show-error --proxy socks5h://127.0.0.1:1080 http://10.9.0.1/ \
    --output /dev/null --write-out '%{size_download} %{time_total}\n' |
    awk '{ printf "%.0f bytes in %.2f s: %.3f Gbit/s\n", $1, $2, $1 * 8 / $2 / 1e9 }'
wlan0=$(received wlan0) usb0=$(received usb0)
echo "wlan0 $((100 * wlan0 / (wlan0 + usb0))) %, usb0 $((100 * usb0 / (wlan0 + usb0))) %"
kill -TERM $proxying
wait $proxying
proxying=''
