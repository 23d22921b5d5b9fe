//! Prints what the bot understands of messages: `id<TAB>label`, for a file like those in
//! `tests/messages`.
//!
//!     cargo run --example understand -- tests/messages/given.tsv
//!
//! The labels are those of the bot's decisions, made by the code that the bot runs.

use npubbot::bot::testing::decisions;
use std::io::Write;

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "tests/messages/given.tsv".to_owned());
    let file = std::fs::read_to_string(path)?;
    let mut out = std::io::stdout().lock();
    for (id, label) in decisions(&file) {
        writeln!(out, "{id}\t{label}")?;
    }
    Ok(())
}
