#!/usr/bin/env bash
# Builds what is handed out, optimised by a profile of its own runs: the command with the playground's page in it, or the Python wheel.
# Needs rustup, the wheel Python 3.11 too; takes 16 minutes of CPU time.
set -euo pipefail
# Each run of a profile is made.
export ANABRANCH_NO_CACHE=1
cd "$(dirname "$0")/.."

host=$(rustc -vV | sed -n 's/^host: //p')
profiles=$PWD/target/profiles
rustup component add llvm-tools >/dev/null 2>&1 || true
profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
[ -x "$profdata" ] || { echo "llvm-profdata is not here: rustup component add llvm-tools" >&2; exit 1; }

# What users run, and none of the workloads of benches/: scenarios, schedulers and congestion controls of each kind.
mixed=(wifi-lte handover metered web-page first-path twenty-downloads shared-bottleneck ack-compression)
schedulers=(minrtt blest ecf otias stms)
controls=(reno cubic lia balia bbr)

# The flags are for the target that is named, and not for build scripts.
build_command() { RUSTFLAGS=$1 cargo build --profile dist --locked --target "$host" -p anabranch-cli; }

train_command() {
    local command=target/$host/dist/anabranch scenario congestion
    for scenario in "${mixed[@]}"; do
        "$command" run "$scenario" --scheduler "$(IFS=,; echo "${schedulers[*]}")" --duration 10s --repeat 2 --format json
    done
    for congestion in "${controls[@]}"; do
        "$command" run two-equal-paths --scheduler roundrobin,playahead --congestion "$congestion" --duration 10s --repeat 2
    done
    "$command" run wifi-lte --sweep path.wifi.rate=5mbit,500mbit --duration 3s --out "$profiles/results"
}

build_wheel() {
    (cd python && RUSTFLAGS=$1 "$venv/bin/maturin" build --profile dist --locked --target "$host" --out ../target/wheels)
}

train_wheel() {
    "$venv/bin/pip" install --quiet --force-reinstall target/wheels/anabranch-*.whl
    "$venv/bin/python" - "${mixed[*]}" "${schedulers[*]}" "${controls[*]}" <<'EOF'
import sys
import anabranch as ab

mixed, schedulers, controls = (words.split() for words in sys.argv[1:])
for name in mixed:
    ab.run(ab.Scenario.load(name).set("duration", "10s"), schedulers=schedulers, repeat=2).runs
short = ab.Scenario.load("two-equal-paths").set("duration", "10s")
ab.run(short, schedulers=["roundrobin", "playahead"], congestion=controls, repeat=2).summary
EOF
}

rm -rf "$profiles"
case "${1:-command}" in
    command) crates/playground/build.sh ;;
    wheel)
        venv=$profiles/venv
        python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet 'maturin>=1.16,<2'
        rm -rf target/wheels
        ;;
    *) echo "usage: packaging/dist.sh [command|wheel]" >&2; exit 2 ;;
esac
made=${1:-command}
"build_$made" "-Cprofile-generate=$profiles/raw"
"train_$made" >/dev/null
"$profdata" merge --output "$profiles/merged" "$profiles/raw"
"build_$made" "-Cprofile-use=$profiles/merged"
case $made in
    command)
        mkdir -p target/dist
        cp "target/$host/dist/anabranch" target/dist/
        echo "built: target/dist/anabranch"
        ;;
    wheel) echo "built: $(echo target/wheels/*.whl)" ;;
esac
