#!/bin/sh
# The tables of docs/failover.md: every pair of hosts, outage and delay. Usage: docs/failover.sh ANABRANCH [REPEAT]
# Kernel runs are in real time (22 s each) and need root.
set -eu
bin=$1 repeat=${2:-5}
printf 'sender receiver outage delay seed outage_s return_s rescued_bytes duplicate_bytes timeouts path_probes goodput_bps\n'
for hosts in 'engine engine minrtt' 'engine linux minrtt' 'linux engine linux-default' 'linux linux linux-default'; do
    for outage in 2 4 10; do
        for delay in 10 40; do
            set -- $hosts
            "$bin" run scenarios/silence.toml --no-baselines --format csv --repeat "$repeat" --jobs 1 --duration 22s \
                --sender "$1" --receiver "$2" --scheduler "$3" --set path.fast.delay="${delay}ms" \
                --set path.fast.outage="[[\"5s\", \"$((5 + outage))s\"]]" |
                awk -F, -v row="$1 $2 $outage $delay" '
                    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
                    { print row, $at["seed"], $at["outage_s"], $at["path.fast.return_s"], $at["rescued_bytes"],
                          $at["duplicate_bytes"], $at["timeouts"], $at["path_probes"], $at["goodput_bps"] }'
        done
    done
done
