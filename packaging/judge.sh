#!/usr/bin/env bash
# Judges the files of a release by other programs: `packaging/judge.sh DIR`. Debian, as root; installs debootstrap, lintian and systemd.
set -euo pipefail
cd "$(dirname "$0")/.."
release=$(realpath "$1")
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

said() { printf '%-34s %s\n' "$1" "$2"; }
need() { # PROGRAM PACKAGE
    command -v "$1" >/dev/null || (apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$2") >/dev/null 2>&1 ||
        { said "$1" "SKIPPED: not here"; return 1; }
}

(cd "$release" && sha256sum --check --quiet SHA256SUMS)
said sha256sum "all files agree"

archive=$(echo "$release"/anabranch-"$version"-*-linux.tar.gz)
tar -xzf "$archive" -C "$work"
tree=$work/$(basename "$archive" .tar.gz)
# Of a static program that may lie anywhere in memory, ldd says so and succeeds; of any other static one it fails.
linked=$(ldd "$tree/anabranch" 2>&1 || true)
[[ $linked = *"statically linked"* || $linked = *"not a dynamic executable"* ]] || { echo "$linked" >&2; exit 1; }
said ldd "statically linked"

# As in the container: the program, and nothing else.
mkdir "$work/scratch"
cp "$tree/anabranch" "$work/scratch/"
begun=$EPOCHREALTIME
chroot "$work/scratch" /anabranch demo >"$work/demo"
grep -q 'single:3g' "$work/demo"
said "demo in an empty root" "$(echo "$EPOCHREALTIME - $begun" | bc) s"

for shell in bash zsh fish; do
    ! command -v "$shell" >/dev/null || "$shell" -n "$tree/completions/anabranch.$shell"
done
PATH=$tree:$PATH bash -c '
    source "$0/completions/anabranch.bash"
    for words in "run --scheduler ble" "run wifi-l" "reproduce ble" "run wifi-lte --set conn"; do
        COMP_WORDS=(anabranch $words) COMP_CWORD=$(wc -w <<<"$words") COMP_TYPE=9 COMPREPLY=()
        _clap_complete_anabranch
        [ ${#COMPREPLY[@]} -gt 0 ] || { echo "no completion of $words" >&2; exit 1; }
    done' "$tree"
said completions "schedulers, scenarios, papers, keys"

if need man man-db; then
    for page in "$tree"/man/*.1; do
        [ -z "$(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)" ] || { echo "man warns of $page" >&2; exit 1; }
    done
    said man "$(find "$tree/man" -name '*.1' | wc -l) pages without warnings"
fi

# Figures in a paper of two columns.
if need pdflatex texlive-latex-base; then
    (
        cd "$work"
        "$tree/anabranch" run tight-window --scheduler minrtt,blest --repeat 5 --duration 3s --out paper >/dev/null
        cd paper
        names=$("$tree/anabranch" figure .)
        {
            printf '%s\n' '\documentclass[twocolumn]{article}' '\usepackage{graphicx,booktabs}' '\begin{document}'
            for name in $names; do
                "$tree/anabranch" figure . "$name" --out "$name.pdf" >/dev/null
                printf '\\begin{figure}\\includegraphics[width=\\linewidth,height=0.8\\textheight,keepaspectratio]{%s.pdf}\\end{figure}\\clearpage\n' "$name"
            done
            for table in tables/*.tex; do printf '\\input{%s}\\clearpage\n' "$table"; done
            echo '\end{document}'
        } >paper.tex
        pdflatex -interaction=nonstopmode -halt-on-error paper.tex >paper.out || { tail -30 paper.out >&2; exit 1; }
    )
    said "LaTeX" "$("$tree/anabranch" figure "$work/paper" | wc -l) figures and all tables in a paper"
fi

deb=$(echo "$release"/anabranch_"$version"_*.deb)
if need lintian lintian; then
    lintian --fail-on error --allow-root "$deb"
    said lintian "no errors"
fi
if need systemd-analyze systemd; then
    mkdir -p "$work/unpacked"
    dpkg-deb -x "$deb" "$work/unpacked"
    install -D "$work/unpacked/usr/bin/anabranch" "$work/root/usr/bin/anabranch"
    for unit in "$work"/unpacked/usr/lib/systemd/system/*.service; do
        # Verified with the programs of the package, wherever it lies.
        sed "s|/usr/bin/anabranch|$work/root/usr/bin/anabranch|" "$unit" >"$work/$(basename "$unit")"
        systemd-analyze verify --man=no "$work/$(basename "$unit")"
    done
    said "systemd-analyze verify" "both units"
fi
if need debootstrap debootstrap; then
    # The archive that apt uses. Only one of the two kinds of lists is there.
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{sources,list} 2>/dev/null |
        sed -n 's/^URIs: *//p; s/^deb \(\[.*\] \)\?\(http[^ ]*\).*/\2/p' | head -1) || true
    debootstrap --variant=minbase bookworm "$work/debian" "$mirror" >"$work/debootstrap.log"
    cp "$deb" "$work/debian/tmp/anabranch.deb"
    begun=$EPOCHREALTIME
    chroot "$work/debian" dpkg -i /tmp/anabranch.deb >/dev/null
    chroot "$work/debian" anabranch demo >"$work/demo"
    took=$(echo "$EPOCHREALTIME - $begun" | bc)
    [ "$(echo "$took <= 60" | bc)" = 1 ]
    said "Debian 12 without Rust" "dpkg -i and demo: $took s"
    chroot "$work/debian" dpkg --purge anabranch >/dev/null
fi

wheel=$(echo "$release"/anabranch-"$version"-*.whl)
if [ -e "$wheel" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet twine auditwheel
    "$work/venv/bin/twine" check --strict "$release"/*.whl "$release"/anabranch-"$version".tar.gz >"$work/twine" || { cat "$work/twine"; exit 1; }
    said "twine check" "wheel and source distribution"
    "$work/venv/bin/auditwheel" show "$wheel" | grep -o 'manylinux_[0-9_]*' | head -1 | xargs -I{} printf '%-34s %s\n' auditwheel {}
    for python in ${PYTHONS:-python3}; do
        rm -rf "$work/alone"
        "$python" -m venv "$work/alone"
        "$work/alone/bin/pip" install --quiet numpy "$wheel"
        (cd "$work" && alone/bin/python -c 'import anabranch as ab; print(ab.run("wifi-lte", schedulers=["minrtt", "blest"], repeat=2))' >/dev/null)
        said "wheel with numpy alone" "$("$python" --version)"
    done
    python3 packaging/extras.py "$wheel"
fi
