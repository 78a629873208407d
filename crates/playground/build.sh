#!/usr/bin/env bash
# Builds the playground's WebAssembly module and puts it beside the page, where the next build of the command finds it.
set -euo pipefail
cd "$(dirname "$0")/../.."
rustup target add wasm32-unknown-unknown >/dev/null 2>&1 || true
cargo build --profile web --target wasm32-unknown-unknown -p anabranch-playground "$@"
cp "${CARGO_TARGET_DIR:-target}/wasm32-unknown-unknown/web/anabranch_playground.wasm" crates/playground/site/engine.wasm
