#!/bin/sh
# The example of docs/links.md in two network namespaces in place of the internet: a laptop with two interfaces, wlan0 (20 Mbit/s)
# and usb0 (10 Mbit/s), and a server that both reach. Needs root. Usage: docs/links.sh ANABRANCH [OPTIONS OF MEASURE]
set -eu
bin=$(realpath "$1")
shift
folder=$(mktemp -d)
laptop=laptop-$$ server=server-$$ serving=
end() {
    [ -z "$serving" ] || kill "$serving" 2>/dev/null || true
    ip netns del $laptop 2>/dev/null || true
    ip netns del $server 2>/dev/null || true
    rm -r "$folder"
}
trap end EXIT
trap 'exit 1' INT TERM

ip netns add $laptop
ip netns add $server
# The server's address, which both interfaces reach.
ip -n $server addr add 10.9.0.1/32 dev lo
ip -n $server link set lo up
join() { # INTERFACE NUMBER RATE
    ip -n $laptop link add "$1" type veth peer name "to-$1" netns $server
    ip -n $laptop addr add "10.9.$2.2/24" dev "$1"
    ip -n $server addr add "10.9.$2.1/24" dev "to-$1"
    ip -n $laptop link set "$1" up
    ip -n $server link set "to-$1" up
    ip -n $laptop route add 10.9.0.1 via "10.9.$2.1" dev "$1" metric "$2"
    tc -n $laptop qdisc add dev "$1" root tbf rate "$3" burst 3028 limit 100000
    tc -n $server qdisc add dev "to-$1" root tbf rate "$3" burst 3028 limit 100000
}
join wlan0 1 20mbit
join usb0 2 10mbit

here=$PWD
cd "$folder"
# On the server, and on the laptop: keys. The line for the server's list is a secret; in the internet, carry it by ssh.
key=$("$bin" key new server.key)
"$bin" key new client.key >/dev/null
(umask 077 && "$bin" key show client.key --authorize laptop >authorized)

ip netns exec $server "$bin" serve --measure --listen 10.9.0.1:51900 2>serve.log &
serving=$!
until grep -q listening serve.log; do
    kill -0 $serving || { cat serve.log; exit 1; }
    sleep 0.1
done
# From the caller's folder: what --out names is the caller's, and stays.
cd "$here"
ip netns exec $laptop "$bin" measure 10.9.0.1 --via wlan0,usb0 --key "$folder/client.key" --server-key "$key" "$@"
kill -TERM $serving
wait $serving
serving=
