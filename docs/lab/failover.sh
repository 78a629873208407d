#!/bin/sh
# The tables of docs/lab/failover.md: every pair of hosts, outage and delay. Usage: docs/lab/failover.sh ANABRANCH [REPEAT] [JOBS]
# Runs with kernels are in real time, need root, and take seven minutes with five repeats, five at a time.
set -eu
bin=$1 repeat=${2:-5} jobs=${3:-$repeat}
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
echo '| sender → receiver | delay | outage | `outage_s` | `return_s` | rescued KB | duplicate KB | timeouts | probes | n |'
echo '|---|---|---|---|---|---|---|---|---|---|'
for hosts in 'engine engine minrtt' 'engine linux minrtt' 'linux engine linux-default' 'linux linux linux-default'; do
    for delay in 10 40; do
        for outage in 2 4 10; do
            set -- $hosts
            # The path falls silent at 2 s. A sender whose intervals double finds it again within about another outage.
            "$bin" run scenarios/silence.toml --no-baselines --no-preflight --format csv \
                --out "$folder/$1-$2-$delay-$outage" --repeat "$repeat" --jobs "$jobs" \
                --duration "$((6 + 2 * outage))s" --sender "$1" --receiver "$2" --scheduler "$3" \
                --set path.fast.delay="${delay}ms" --set path.fast.outage="[[\"2s\", \"$((2 + outage))s\"]]" |
                awk -F, -v row="$1 → $2 | $delay ms | $outage s" '
                    # Mean and half-width of the 95 % interval (Student, up to ten runs).
                    function interval(name, unit, digits,   i, n, sum, mean, squares) {
                        for (i = 2; i <= NR; i++) if (value[i, name] != "") { n++; sum += value[i, name] / unit }
                        if (!n) return "–"
                        mean = sum / n
                        for (i = 2; i <= NR; i++) if (value[i, name] != "") squares += (value[i, name] / unit - mean) ^ 2
                        if (n == 1 || !(n in t)) return sprintf("%." digits "f", mean)
                        return sprintf("%." digits "f ± %." digits "f", mean, t[n] * sqrt(squares / (n - 1) / n)) \
                            (n < NR - 1 ? " (" n ")" : "")
                    }
                    NR == 1 { for (i = 1; i <= NF; i++) head[i] = $i; next }
                    { for (i = 1; i <= NF; i++) value[NR, head[i]] = $i }
                    END {
                        split("0 12.706 4.303 3.182 2.776 2.571 2.447 2.365 2.306 2.262", t, " ")
                        printf "| %s | %s | %s | %s | %s | %s | %s | %d |\n", row, interval("outage_s", 1, 2),
                            interval("path.fast.return_s", 1, 2), interval("rescued_bytes", 1000, 0),
                            interval("duplicate_bytes", 1000, 0), interval("timeouts", 1, 0), interval("path_probes", 1, 0), NR - 1
                    }'
        done
    done
done
echo
echo "Not emulated accurately: $(cat "$folder"/*/results.json | grep -c '"accurate": false') of" \
    "$(cat "$folder"/*/results.json | grep -c '"accurate":') runs in real time."
