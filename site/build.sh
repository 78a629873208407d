#!/usr/bin/env bash
# Builds the documentation as a static site in target/site, and checks its links. Needs Rust and Python 3.11 or later with the module venv.
set -euo pipefail
# A file that the caller names is in the caller's folder.
[ -z "${ANABRANCH:-}" ] || ANABRANCH=$(realpath "$ANABRANCH")
cd "$(dirname "$0")/.."

venv=target/site-venv
"${PYTHON:-python3}" -m venv "$venv"
"$venv/bin/pip" install --quiet --requirement site/requirements.txt
if [ -z "${ANABRANCH:-}" ]; then
    cargo build --quiet -p anabranch-cli
    ANABRANCH=${CARGO_TARGET_DIR:-target}/debug/anabranch
fi
export ANABRANCH

rm -rf target/site docs/reference
# Anew each time: a page that did not change would not be warned of a second time, and would keep its figures with or without WebAssembly.
"$venv/bin/sphinx-build" --quiet --fresh-env --jobs auto --fail-on-warning --keep-going \
    --doctree-dir target/site-doctrees --conf-dir site . target/site
rm -rf target/site/.buildinfo target/site/_sources
if [ -e crates/playground/site/engine.wasm ]; then
    "$ANABRANCH" playground --out target/site/playground >/dev/null
fi
cp site/index.html target/site/index.html
"$venv/bin/python" -m unittest discover --quiet --start-directory site
"$venv/bin/python" site/check.py target/site
echo "the site is target/site/index.html: $(du -sh target/site | cut -f1), $(find target/site -name '*.html' | wc -l) pages"
