//! How to use Anabranch's crates from Rust: `cargo run -p anabranch-examples --example scenario`, `endpoints`, `scheduler`.
