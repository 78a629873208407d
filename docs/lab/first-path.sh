#!/bin/sh
# The figures of docs/lab/first-path.md. Usage: docs/lab/first-path.sh ANABRANCH [REPEAT] [linux]
# In virtual time about a minute with 20 repeats. With `linux` the server is this machine's kernel, by the clock: root, and ten
# minutes with five repeats.
set -eu
bin=$1 repeat=${2:-20} sender=${3:-engine}
grid=$(dirname "$0")/../../scenarios/frontier

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The path sets of the frontier, with the path of the longest delay first: where a connection should not open.
for name in 03-delay-5 04-delay-10 05-delay-20 09-fast-near 10-fast-far 12-satellite 19-3g-wlan 25-three-delays; do
    case $name in
    10-*) cp "$grid/$name.toml" "$work" ;;
    *)
        awk -v RS= -v ORS='\n\n' '
            /^\[\[path\]\]/ { path[++n] = $0; next }
            n && !done { for (; n; n--) print path[n]; done = 1 }
            { print }' "$grid/$name.toml" > "$work/$name.toml"
        ;;
    esac
done

# run FILE PATH|race DELAY METRIC: mean ± half-width of the 95 % interval in ms (n; SYNs per run)
run() {
    file=$1 first=$2 delay=$3 metric=$4
    hosts="--scheduler minrtt"
    [ "$sender" = engine ] || hosts="--sender linux --scheduler linux-default"
    # shellcheck disable=SC2086
    "$bin" run "$file" --no-baselines --no-preflight --repeat "$repeat" --seed 801 --congestion cubic $hosts \
        --set connection.first_path="$first" --set connection.race_delay="$delay" --format json |
        tr ',{}' '\n\n\n' | awk -v metric="\"$metric\":" '
        { gsub(/^[ \t]+/, "") }
        /^"summary"/ { exit }
        index($0, metric) == 1 { x[++n] = $2 }
        index($0, "\"syns_sent\":") == 1 { syns += $2; runs++ }
        END {
            for (i = 1; i <= n; i++) mean += x[i] / n
            for (i = 1; i <= n; i++) square += (x[i] - mean) ^ 2
            # Student: two-sided, 95 %
            t = n == 5 ? 2.776 : n == 10 ? 2.262 : n == 20 ? 2.093 : 1.984
            printf "%.0f ± %.0f (%d; %.1f)", mean * 1e3, t * sqrt(square / (n - 1) / n) * 1e3, n, syns / runs
        }'
}

application() {
    echo "### $1"
    echo
    metric=$2 traffic=$3
    echo '| path set | far | near | race, 250 ms | race, 50 ms | race, at once |'
    echo '|---|---|---|---|---|---|'
    for file in "$work"/*.toml; do
        printf '| `%s`' "$(basename "$file" .toml)"
        case $file in
        *10-fast-far*) far=a near=b ;;
        *25-three*) far=c near=a ;;
        *) far=b near=a ;;
        esac
        for way in "$far 250ms" "$near 250ms" "race 250ms" "race 50ms" "race 0s"; do
            { cat "$file"; printf '\n[[traffic]]\n%b\n' "$traffic"; } > "$work/now"
            # shellcheck disable=SC2086
            printf ' | %s' "$(run "$work/now" $way "$metric")"
        done
        echo ' |'
    done
    echo
}

application 'A web page of 12 objects, 100 KiB together, over six connections' completion_s \
    'kind = "web"\nsize = "100KiB"\nobjects = 12\nsizes = "lognormal"'
application 'A request of 100 bytes, a response of 16 KiB' completion_s \
    'kind = "request"\nsize = "16KiB"\ninterval = "0s"\ncount = 1'
application 'A download of 1 MiB' completion_s 'kind = "bulk"\nsize = "1MiB"'
