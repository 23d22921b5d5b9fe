//! Every target of `Cargo.toml`: its name chooses the body.
#![no_main]
#[path = "../bodies.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| match env!("CARGO_BIN_NAME") {
    "request" => bodies::request(data),
    "unwrap" => bodies::unwrap(data),
    "relays_toml" => bodies::relays_toml(data),
    "hits" => bodies::hits(data),
    "split_text" => bodies::split_text(data),
    "patterns" => bodies::patterns(data),
    other => unreachable!("no target is named {other}"),
});
