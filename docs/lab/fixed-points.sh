#!/bin/bash
# The figures of fixed-points.md: group, predicted and measured rate in Mbit/s on the wire (± standard deviation), and how much they differ.
# Usage: docs/lab/fixed-points.sh [PROGRAM]. Minutes on two cores with a release build.
set -eu
program=${1:-target/release/anabranch}

# row TITLE "FLAGS OF topology" "OPTIONS OF run" GROUP:PREDICTED:BYTES…  (bytes of a packet with 1400 of payload)
row() {
  local title=$1 flags=$2 options=$3
  shift 3
  # shellcheck disable=SC2086 # Flags are words.
  $program topology $flags --duration 120s --warmup 60s | $program run - --repeat 5 --format json $options |
    python3 -c '
import json, sys
summary = {row["metric"]: row for row in json.load(sys.stdin)["summary"]}
for group in sys.argv[2:]:
    name, predicted, packet = group.split(":")
    row = summary[f"group.{name}.goodput_mean_bps"]
    scale = float(packet) / 1400 / 1e6
    mean, predicted = row["mean"] * scale, float(predicted)
    half = (row["sd"] or 0) * scale
    print(f"| {sys.argv[1]} | {name} | {predicted:.3f} | {mean:.3f} ± {half:.3f} | {100 * (mean / predicted - 1):+.1f} % |")
' "$title" "$@"
}

echo "| scenario | group | predicted | measured | differs by |"
echo "|---|---|--:|--:|--:|"
row "A, LIA" "olia-a" "" two-path:1.000:1480 one-path:0.739:1452
row "A, LIA, N1 = 20" "olia-a --n1 20" "" two-path:1.000:1480 one-path:0.590:1452
row "A, OLIA" "olia-a --congestion olia" "" two-path:1.000:1480 one-path:0.921:1452
row "B before, LIA" "olia-b --single" "" blue:2.551:1480 red:1.649:1452
row "B after, LIA" "olia-b" "" blue:1.983:1480 red:1.611:1480
row "B before, OLIA" "olia-b --single --congestion olia" "" blue:2.100:1480 red:2.100:1452
row "B after, OLIA" "olia-b --congestion olia" "" blue:2.060:1480 red:2.060:1480
row "C, LIA" "olia-c" "" two-path:1.296:1480 one-path:0.704:1452
row "C, LIA, C1 = 2" "olia-c --c1 2mbit" "" two-path:2.235:1480 one-path:0.765:1452
row "C, OLIA" "olia-c --congestion olia" "" two-path:1.079:1480 one-path:0.921:1452
row "torus, LIA" "torus" "" g1:12:1480 g2:12:1480
row "torus, LIA, third link 6" "torus --narrow 6mbit" "" g1:11.317:1480 g2:10.024:1480
row "torus, LIA, third link 3" "torus --narrow 3mbit" "" g1:10.964:1480 g2:9.054:1480
row "max-min" "parking-lot" \
  '--set link.l1.queue={kind="fq_codel"} --set link.l2.queue={kind="fq_codel"} --set link.l3.queue={kind="fq_codel"}' \
  through:10:1452 at-l1:10:1452 at-l2:10:1452

# Wischik et al.: a path over one link and a path over the two others.
triangle() {
  cat <<'END'
name = "triangle"
start_jitter = "1s"
END
  for n in 1 2 3; do
    a=$((n % 3 + 1)) b=$((a % 3 + 1))
    cat <<END
[[link]]
name = "l$n"
rate = "12mbit"
queue = "1bdp"
[[path]]
name = "short$n"
route = ["l$n"]
delay = "50ms"
[[path]]
name = "long$n"
route = ["l$a", "l$b"]
delay = "50ms"
[[group]]
name = "g$n"
paths = ["short$n", "long$n"]
END
  done
  printf '[connection]\ncongestion = "%s"\n' "$1"
}
original=$program
for pair in lia:9.000 ewtcp:8.485 olia:12.000; do
  triangle "${pair%:*}" > "${TMPDIR:-/tmp}/triangle.toml"
  one() { if [ "$1" = topology ]; then printf 'duration = "120s"\nwarmup = "60s"\n'; cat "${TMPDIR:-/tmp}/triangle.toml"; else "$original" "$@"; fi; }
  program=one
  row "triangle, ${pair%:*}" "" "" "g1:${pair#*:}:1480" "g2:${pair#*:}:1480" "g3:${pair#*:}:1480"
done
