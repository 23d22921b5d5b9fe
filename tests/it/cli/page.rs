//! The web page has its own code for the grammar of patterns. `web/tests/patterns.json` checks it
//! against ours: keys, and what is written with what we read in it.
//! `NPUBBOT_WRITE_VECTORS=1 cargo test --test it the_page_reads` writes what we read. For a new text,
//! add a line `{"written":"…"}`.

use crate::support::harness::{Test, test};
use npubbot::key::Npub;
use npubbot::pattern::{Best, Family, Pattern, PatternSet};
use serde_json::{Value, json};
use std::path::Path;

pub const TESTS: &[Test] = &[test!(the_page_reads_patterns_as_the_bot_does)];

/// What we read in a text as people write it: one pattern, several, or a refused one.
fn patterns(written: &str, keys: &[Npub]) -> Value {
    // A blank after a colon changes nothing, as in a message.
    let joined = written.replace(": ", ":");
    let words = joined.split([' ', ',']).filter(|word| !word.is_empty() || written.is_empty());
    let patterns = match words.map(str::parse).collect::<Result<Vec<Pattern>, _>>() {
        Ok(patterns) => patterns,
        Err(error) => return json!({ "written": written, "instead": error.suggestions() }),
    };
    let difficulty = PatternSet::new(patterns.clone()).difficulty().expect("there is a pattern");
    // The order in which the difficulty is summed is not fixed and changes its last digits, so
    // they are rounded away.
    let bits = (difficulty.candidates().log2() * 1e9).round() / 1e9;
    let fits = |npub: &Npub| patterns.iter().any(|pattern| pattern.matches(npub));
    let fitting: Vec<usize> = (0..keys.len()).filter(|&at| fits(&keys[at])).collect();
    let texts: Vec<&str> = patterns.iter().map(Pattern::as_str).collect();
    let whole = patterns.iter().any(|pattern| !pattern.begins_selectively());
    let mut vector = json!({ "written": written, "texts": texts, "bits": bits, "fits": fitting, "whole": whole });
    if let [only] = patterns.as_slice() {
        vector["cheaper"] = only.cheaper().first().map(Pattern::as_str).into();
    }
    vector
}

/// What we read in a search without a target.
fn best(written: &str) -> Value {
    let Ok(best) = written.parse::<Best>() else { return json!({ "written": written }) };
    let family = match best.family {
        Family::Any => "best ",
        Family::Zeros => "best zeros ",
        Family::Words => "best words ",
    };
    json!({ "written": written, "begins": family, "seconds": best.time.as_secs() })
}

fn the_page_reads_patterns_as_the_bot_does() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("web/tests/patterns.json");
    let kept = std::fs::read_to_string(&file).unwrap();
    let vectors: Value = serde_json::from_str(&kept).unwrap();
    let npub = |text: &Value| Npub(bech32::decode(text.as_str().unwrap()).unwrap().1.try_into().unwrap());
    let keys: Vec<Npub> = vectors["npubs"].as_array().unwrap().iter().map(npub).collect();
    let list = |name: &str, read: &dyn Fn(&str) -> Value| {
        let written = vectors[name].as_array().unwrap().iter().map(|one| one["written"].as_str().unwrap());
        written.map(|written| read(written).to_string()).collect::<Vec<_>>().join(",\n")
    };
    let (patterns, best) = (list("patterns", &|written| patterns(written, &keys)), list("best", &best));
    let lines = format!("{{\"npubs\":{},\"patterns\":[\n{patterns}\n],\"best\":[\n{best}\n]}}\n", vectors["npubs"]);
    assert!(patterns.lines().count() > 200 && best.lines().count() > 15, "a list is short");
    if std::env::var_os("NPUBBOT_WRITE_VECTORS").is_some() {
        std::fs::write(&file, &lines).unwrap();
    } else {
        assert!(kept == lines, "web/tests/patterns.json is not what the grammar says; write it again and fit the page");
    }
}
