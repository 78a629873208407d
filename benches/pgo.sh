#!/usr/bin/env bash
# Builds the profile `dist` with what the compiler learns from runs of its own (profile-guided optimisation).
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
    cat <<'EOF'
usage: benches/pgo.sh [OPTION OF CARGO BUILD…]

Builds an instrumented `anabranch`, runs built-in scenarios with it, and builds `target/dist` with their profile:
`benches/pgo.sh` the command, `benches/pgo.sh -p anabranch-benches` the benchmarks. Digests and results stay the same.
A profile that is there already is used again; `rm -r target/pgo` makes a new one.

Needs the component llvm-tools, and adds it where rustup may.
EOF
}

case "${1:-}" in
    -h | --help) usage; exit 0 ;;
esac

instrumented=target/pgo/build/dist/anabranch
raw=$PWD/target/pgo/raw
profile=$PWD/target/pgo/anabranch.profdata

# The benchmark's own workloads are not among them, so that it shows what other runs gain.
train() {
    local one=(--jobs 1 --repeat 1 --no-baselines)
    "$instrumented" run wifi-lte "${one[@]}" --scheduler minrtt,blest,ecf,roundrobin,redundant --congestion cubic,lia
    "$instrumented" run two-equal-paths "${one[@]}" --scheduler minrtt,minrtt+pr --congestion olia,balia,reno --duration 10s
    "$instrumented" run shared-bottleneck "${one[@]}" --duration 5s
    "$instrumented" run ack-compression "${one[@]}" --duration 10s
    "$instrumented" run tight-window "${one[@]}"
    "$instrumented" run failover "${one[@]}" --scheduler minrtt
    "$instrumented" run twenty-downloads "${one[@]}" --sweep traffic.flows=1,20,200
    "$instrumented" run web-page --jobs 1 --repeat 5
}

llvm_profdata() {
    local host tool
    host=$(rustc -vV | sed -n 's/^host: //p')
    tool=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
    # The version must be that of the compiler, which a system's own seldom is.
    [ -x "$tool" ] || rustup component add llvm-tools
    "$tool" "$@"
}

if [ ! -e "$profile" ]; then
    rm -rf "$raw"
    RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-generate=$raw" \
        cargo build --profile dist --locked --target-dir target/pgo/build -p anabranch-cli
    # Build scripts and macros are instrumented too, and have run.
    rm -rf "$raw"
    train >target/pgo/training.txt
    llvm_profdata merge --output "$profile" "$raw"
fi
RUSTFLAGS="${RUSTFLAGS:-} -Cprofile-use=$profile" cargo build --profile dist --locked "$@"
