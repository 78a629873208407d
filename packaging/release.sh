#!/usr/bin/env bash
# Makes a release from a clean clone of HEAD: archive, Debian package, wheel, source distribution, container file, bill of materials, SHA-256.
# Needs rustup, git and Python 3.11; installs maturin and cargo-cyclonedx into target/.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

usage() {
    cat <<'EOF'
usage: packaging/release.sh [--out DIR] [--profile PROFILE] [--twice] [PART…]

  PART       archive, deb, wheel, sdist, sbom; all of them unless given
  --out      where the files go; target/release-VERSION unless given
  --profile  Cargo's profile; dist unless given
  --twice    makes it again in other folders, and lists the files that differ
EOF
}

out='' profile=dist twice=false parts=()
while [ $# -gt 0 ]; do
    case $1 in
        --out) out=$2; shift ;;
        --profile) profile=$2; shift ;;
        --twice) twice=true ;;
        archive | deb | wheel | sdist | sbom) parts+=("$1") ;;
        -h | --help) usage; exit 0 ;;
        *) usage >&2; exit 2 ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(archive deb wheel sdist sbom)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
out=$(mkdir -p "${out:-target/release-$version}" && cd "${out:-target/release-$version}" && pwd)
# The second build shares no folder with the first.
work=${RELEASE_WORK:-$root/target/release-work}
mkdir -p "$work"

host=$(rustc -vV | sed -n 's/^host: //p')
machine=${host%%-*}
case $host in
    *-linux-gnu) system=linux linked='-C target-feature=+crt-static' ;;
    *-apple-*) system=macos linked='' ;;
    *) echo "no release is made on $host" >&2; exit 1 ;;
esac
name=anabranch-$version-$machine-$system
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$work/target

source=$work/source
rm -rf "$source"
git clone --quiet --no-hardlinks "$root" "$source"
git -C "$source" checkout --quiet "$(git rev-parse HEAD)"
cd "$source"
cargo_home=${CARGO_HOME:-$HOME/.cargo}
remapped="--remap-path-prefix=$source=/anabranch --remap-path-prefix=$CARGO_TARGET_DIR=/target --remap-path-prefix=$cargo_home=/cargo"
export CFLAGS="-ffile-prefix-map=$CARGO_TARGET_DIR=/target -ffile-prefix-map=$cargo_home=/cargo"
# Cargo drops a `strip` given here for a crate with settings of its own, which the command has: rustc gets it below.
bare=(--config "profile.$profile.debug=false")

has() { [[ " ${parts[*]} " = *" $1 "* ]]; }

# The same bytes for the same files.
packed() { # ARCHIVE FOLDER
    local tar=tar
    ! command -v gtar >/dev/null || tar=gtar
    "$tar" --create --sort=name --format=ustar --mtime="@$SOURCE_DATE_EPOCH" --mode=go-w --owner=0 --group=0 --numeric-owner \
        -C "$(dirname "$2")" "$(basename "$2")" | gzip --no-name -9 >"$1"
}

tool() { # PACKAGE: a Python tool of this name
    local venv=$work/venv
    [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet "$@"
}

# The command with the playground in it, and what belongs beside it.
command_tree() {
    RUSTFLAGS=$remapped crates/playground/build.sh --locked --quiet
    RUSTFLAGS="$linked -C strip=symbols $remapped" cargo build --quiet --locked --profile "$profile" --target "$host" "${bare[@]}" -p anabranch-cli
    tree=$work/$name
    rm -rf "$tree"
    mkdir -p "$tree"/{completions,systemd}
    cp "$CARGO_TARGET_DIR/$host/$profile/anabranch" "$tree/"
    "$tree/anabranch" man "$tree/man" >/dev/null
    local shell
    for shell in bash zsh fish elvish powershell; do
        "$tree/anabranch" completions "$shell" >"$tree/completions/anabranch.$shell"
    done
    "$tree/anabranch" licences >"$tree/LICENCES.txt"
    cp README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE "$tree/"
    [ ! -e CITATION.cff ] || cp CITATION.cff "$tree/"
    cp packaging/*.service "$tree/systemd/"
    cp packaging/Containerfile "$tree/"
}

debian_package() {
    local deb=$work/deb architecture
    architecture=$(echo "$machine" | sed 's/x86_64/amd64/; s/aarch64/arm64/')
    rm -rf "$deb"
    mkdir -p "$deb"/{DEBIAN,usr/bin,usr/lib/systemd/system,usr/share/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d,doc/anabranch,lintian/overrides}}
    cp "$tree/anabranch" "$deb/usr/bin/"
    for page in "$tree"/man/*.1; do gzip --no-name -9 <"$page" >"$deb/usr/share/man/man1/$(basename "$page").gz"; done
    cp "$tree/completions/anabranch.bash" "$deb/usr/share/bash-completion/completions/anabranch"
    cp "$tree/completions/anabranch.zsh" "$deb/usr/share/zsh/vendor-completions/_anabranch"
    cp "$tree/completions/anabranch.fish" "$deb/usr/share/fish/vendor_completions.d/anabranch.fish"
    local unit
    for unit in packaging/*.service; do
        # The comments name files of an installation by hand.
        sed '/^#/d; s|/usr/local/bin/anabranch|/usr/bin/anabranch|' "$unit" >"$deb/usr/lib/systemd/system/$(basename "$unit")"
    done
    local doc=$deb/usr/share/doc/anabranch
    cp packaging/deb/copyright "$doc/"
    gzip --no-name -9 <"$tree/LICENCES.txt" >"$doc/LICENCES.gz"
    cp packaging/deb/overrides "$deb/usr/share/lintian/overrides/anabranch"
    sed "s/VERSION/$version/; s/DATE/$(LC_ALL=C date --utc --date="@$SOURCE_DATE_EPOCH" -R)/" packaging/deb/changelog | gzip --no-name -9 >"$doc/changelog.gz"
    local size
    size=$(du --apparent-size --summarize --block-size=1024 "$deb/usr" | cut -f1)
    sed "s/VERSION/$version/; s/ARCHITECTURE/$architecture/; s/SIZE/$size/" packaging/deb/control >"$deb/DEBIAN/control"
    (cd "$deb" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
    find "$deb" -type d -exec chmod 755 {} +
    find "$deb" -type f -exec chmod 644 {} +
    chmod 755 "$deb/usr/bin/anabranch"
    dpkg-deb --root-owner-group -Zxz --build "$deb" "$out/anabranch_${version}_$architecture.deb" >/dev/null
}

# zig links against glibc 2.17, which every distribution since 2014 has. The wheel's crate is a workspace of its own: the names that Cargo gives
# to the libraries outside depend on where they lie, so it is built in one place, wherever the clone is.
wheel() {
    tool 'maturin>=1.16,<2' 'ziglang>=0.13,<0.16'
    local zig=()
    [ $system != linux ] || zig=(--zig --compatibility manylinux_2_17)
    local place=/tmp/anabranch-$version-wheel
    mkdir "$place" 2>/dev/null || { echo "$place is there already: another release is being made, or was ended" >&2; exit 1; }
    rm -rf "$work/wheels"
    git archive HEAD | tar --extract --directory "$place"
    # zig's own flags: the C compiler's stay out.
    (cd "$place/python" && env -u CFLAGS PATH="$work/venv/bin:$PATH" RUSTFLAGS="--remap-path-prefix=$place=/anabranch $remapped" maturin build --quiet --locked --profile "$profile" \
        --target "$host" "${zig[@]}" --out "$work/wheels") || { rm -rf "$place"; exit 1; }
    rm -rf "$place"
    cp "$work"/wheels/*.whl "$out/"
}

sdist() {
    tool 'maturin>=1.16,<2'
    rm -rf "$work/sdist"
    (cd python && "$work/venv/bin/maturin" sdist --out "$work/sdist")
    cp "$work"/sdist/*.tar.gz "$out/"
}

# CycloneDX, of all that the command links on this system.
bill_of_materials() {
    if ! [ -x "$root/target/tools/bin/cargo-cyclonedx" ]; then
        (cd / && CARGO_TARGET_DIR=$root/target/tools/build cargo install --quiet --locked --root "$root/target/tools" cargo-cyclonedx)
    fi
    "$root/target/tools/bin/cargo-cyclonedx" cyclonedx --quiet --format json --target "$host" --no-build-deps \
        --manifest-path crates/cli/Cargo.toml --override-filename "$name.cdx"
    # Names of files are the clone's.
    sed "s|$source|/anabranch|g" "crates/cli/$name.cdx.json" >"$out/$name.cdx.json"
}

rm -f "$out"/*
if has archive || has deb; then command_tree; fi
if has archive; then
    packed "$out/$name.tar.gz" "$tree"
    cp packaging/Containerfile "$out/"
fi
if has deb; then debian_package; fi
if has wheel; then wheel; fi
if has sdist; then sdist; fi
if has sbom; then bill_of_materials; fi
(cd "$out" && sha256sum -- * >"$work/SHA256SUMS" && mv "$work/SHA256SUMS" .)
echo "made: $out"
(cd "$out" && du --apparent-size --human-readable -- *)

if $twice; then
    again=$root/target/release-again
    rm -rf "$again"
    RELEASE_WORK=$again/elsewhere/work "$root/packaging/release.sh" --profile "$profile" --out "$again/out" "${parts[@]}" >/dev/null
    if diff -r "$out" "$again/out"; then
        echo "made twice: the same bytes"
    else
        echo "made twice: the files above differ" >&2
        exit 1
    fi
fi
