#!/bin/sh
# Mutates a sample of a crate and runs the crate's tests against each mutant: docs/lab/mutants.sh CRATE [N [OPTIONS…]]
#
# The sample: the first N names in an order that is random but always the same. The order comes from the names without
# their lines and columns, so that a change of one place leaves the sample elsewhere as it is.
# OPTIONS go to cargo-mutants: `--cargo-arg=--lib` builds and runs the unit tests alone, `--iterate` leaves out what was caught
# before. TIMEOUT, in seconds, bounds the tests of each mutant (120). What came of it: docs/lab/mutants.md.
set -eu
cd "$(dirname "$0")/../.."
crate=$1
count=${2:-300}
[ $# -gt 2 ] && shift 2 || shift $#

names=$(mktemp)
seed=$(mktemp)
trap 'rm -f "$names" "$seed"' EXIT
echo 'The first sample of mutants.' >"$seed"
cargo mutants --list -p "anabranch-$crate" |
    awk '{ name = $0; sub(/:[0-9]+:[0-9]+:/, ":", name); print name " " ++seen[name] "\t" $0 }' |
    LC_ALL=C sort -t "$(printf '\t')" -R -k1,1 --random-source="$seed" |
    head -n "$count" | cut -f2 | sed 's/[][\.*^$()+?{}|]/\\&/g; s/.*/^&$/' >"$names"

export CARGO_INCREMENTAL=1 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_TEST_DEBUG=0
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_TEST_OPT_LEVEL=0
mkdir -p target
while read -r name; do
    set -- --re "$name" "$@"
done <"$names"
cargo mutants -p "anabranch-$crate" --baseline skip --timeout "${TIMEOUT:-120}" --output "target/mutants-$crate" "$@"
