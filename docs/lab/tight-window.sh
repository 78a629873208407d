#!/bin/sh
# The figures of docs/lab/tight-window.md. Usage: docs/lab/tight-window.sh ANABRANCH [REPEAT] [JOBS]
# Needs root; with ten repeats, three at a time, about a minute and a half.
set -eu
bin=$1 repeat=${2:-10} jobs=${3:-3}
for window in 128KiB 256KiB; do
    for receiver in engine linux; do
        echo "### $window, receiver: $receiver"
        echo
        echo '```text'
        "$bin" run scenarios/tight-window.toml --no-baselines --no-preflight --scheduler minrtt+pr,blest --seed 101 \
            --repeat "$repeat" --jobs "$jobs" --receiver "$receiver" --set connection.recv_buffer="$window" | sed 1,2d
        echo '```'
        echo
    done
done
