#!/usr/bin/env bash
# Builds the playground's WebAssembly module and puts it beside the page, where the next build of the command finds it.
set -euo pipefail
cd "$(dirname "$0")/../.."
rustup target add wasm32-unknown-unknown >/dev/null 2>&1 || true
cargo build --profile web --target wasm32-unknown-unknown -p anabranch-playground "$@"
made="${CARGO_TARGET_DIR:-target}/wasm32-unknown-unknown/web/anabranch_playground.wasm"
embedded=crates/playground/site/engine.wasm
# An unchanged module keeps its time, and the command is not built again.
cmp -s "$made" "$embedded" || cp "$made" "$embedded"
