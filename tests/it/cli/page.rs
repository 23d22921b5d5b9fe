//! The web page has its own code for the grammar of patterns. `web/tests/patterns.json` checks it
//! against ours; `NPUBBOT_WRITE_VECTORS=1 cargo test --test it the_page_reads` writes the file.

use crate::support::harness::{Test, test};
use npubbot::key::Npub;
use npubbot::pattern::{Best, Family, Pattern, PatternSet};
use serde_json::{Value, json};
use std::path::Path;

pub const TESTS: &[Test] = &[test!(the_page_reads_patterns_as_the_bot_does)];

/// Texts as people write them: single patterns, several, and refused ones.
const WRITTEN: [&str; 113] = [
    "m0ctane",
    "NPUB1Cat",
    "nostr:npub1dad",
    "cat ca",
    "cat, dad",
    "q",
    "l",
    "m0?tane",
    "?m0ct",
    "m0ct??",
    "[s5]at0sh[l7]",
    "[cat]",
    "[qpzry9x8gf2tvdw0s3jn54khce6mua7l]at",
    "[s]at",
    "ca?t ?at",
    "~alice",
    "~Bitcoin",
    "~cat ca",
    "~m0?t",
    "~b8",
    "=7",
    "=2",
    "=51",
    "=3 qqqq",
    "hex:c0de",
    "HEX:0000",
    "hex:f",
    "hex: c0de",
    "zeros:1",
    "zeros:40",
    "zeros:255",
    "zeros:256",
    "words",
    "words:4",
    "words:9",
    "words:5 cat",
    "words:10",
    "*ca*@4",
    "~*ca*@4",
    "*ca*@5",
    "c*a*@4",
    "*cafe",
    "*al7ce*",
    "m0ct*cafe",
    "~m0ct*alice*cafe",
    "=7*",
    "hex:*beef",
    "hex:*c0ffee",
    "*cafe *caf m0ct*e",
    "*al7ce* *ca* cat",
    "=3* *qq zeros:5",
    "*a?[ql]7*@20 =2*",
    "m*a*t*[cd]*e",
    "*qpzry9x8gf2tvdw0s3jn54khce6mua7lqpzry9x8gf2tv*",
    "*sat0shl*",
    "m0c*cafe",
    "*satu",
    "*a*e*",
    "*???????????a*",
    "?????m0ct",
    "ca?????t",
    "caf?s??t",
    "cafe????t",
    "m0ct*e",
    "*csafecat",
    "*caafecat",
    "m0ct*caafecat",
    "~*caafecat",
    "*ca[al]fecat",
    "b0b",
    "*b*",
    "*alice*@12",
    "*b0bcats",
    "m0ct*b0bcats",
    "*b0b*caafecat",
    "*ab*cd*@3",
    "[bt]?1",
    "*bö*",
    "~bö",
    "lllllllllllllllllllllllllllllllllllllllllllllllllllb",
    "?",
    "??*",
    "",
    "[st",
    "s]t",
    "[]t",
    "=1",
    "zeros:0",
    "hex:xyz",
    "zeros:300",
    "zeros:30000000000000000000000000000000000000000",
    "zeros: +4",
    "zeros:04",
    "zeros:-4",
    "words:many",
    "=60",
    "=13*",
    "=x*",
    "hex:0xdead",
    "hex:*Coffee",
    "hex:de:ad-be_ef*",
    "hex:*0xdead",
    "hex:0x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "hex:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0",
    "hex:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "llllllllllllllllllllllllllllllllllllllllllllllllll",
    "*allce*@4",
    "*alice*@4",
    "m0*ca*@60",
    "~*ca*@07",
    "m0**@3",
    "best",
    "*ca*@",
];

/// Searches without a target as people write them, and texts that are refused.
const BEST: [&str; 18] = [
    "best 10m",
    "Best Zeros 10 min",
    "best words 90s",
    "best 1 h 30 min",
    "BEST ZEROS 2H",
    "surprise",
    "best 3 days",
    "best zeros 72h",
    "best 1d 2hours 3mins 4 secs",
    "best 3650 days",
    "best 3651 days",
    "best",
    "best 10",
    "best 0s",
    "best zeros",
    "best cat 10m",
    "best 10m cat",
    "surprise cat",
];

/// The keys from which `patterns_of` makes patterns.
fn keys() -> Vec<Npub> {
    let mut keys = vec![Npub([0; 32]), Npub(std::array::from_fn(|at| if at < 4 { 0 } else { 0xa5 }))];
    for seed in 1..=8u8 {
        // A fixed sequence: any numbers do.
        keys.push(Npub(std::array::from_fn(|at| (at as u8).wrapping_mul(89).wrapping_add(seed.wrapping_mul(57)))));
    }
    keys
}

/// Patterns of each kind that match this key.
fn patterns_of(npub: &Npub) -> Vec<String> {
    let text = npub.to_string()[5..].to_owned();
    let hex = crate::support::hex::encode(npub.0);
    vec![
        text[..4].to_owned(),
        text[..52].to_owned(),
        format!("{}?{}", &text[..2], &text[3..5]),
        format!("~{}", &text[..3]),
        format!("[q{}]{}", &text[..1], &text[1..3]),
        format!("*{}", &text[54..]),
        format!("*{}", &text[50..]),
        format!("*{}*", &text[20..23]),
        format!("{}*{}*{}", &text[..2], &text[30..32], &text[56..]),
        format!("*{}*@9", &text[6..9]),
        format!("*{}*@8", &text[6..9]),
        format!("*{}*{}*", &text[10..12], &text[12..14]),
        format!("hex:{}", &hex[..5]),
        format!("hex:{hex}"),
        format!("hex:*{}", &hex[61..]),
    ]
}

fn vectors() -> Value {
    let keys = keys();
    let own = keys.iter().flat_map(patterns_of);
    let one = |written: String| {
        // A blank after a colon changes nothing, as in a message.
        let joined = written.replace(": ", ":");
        let read: Result<Vec<Pattern>, _> =
            joined.split([' ', ',']).filter(|word| !word.is_empty() || written.is_empty()).map(str::parse).collect();
        let patterns = match read {
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
    };
    let npubs: Vec<String> = keys.iter().map(ToString::to_string).collect();
    let patterns: Vec<Value> = WRITTEN.map(str::to_owned).into_iter().chain(own).map(one).collect();
    let best: Vec<Value> = BEST.map(best).into();
    json!({ "npubs": npubs, "patterns": patterns, "best": best })
}

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
    let mut lines = String::from("{\"npubs\":");
    let vectors = vectors();
    lines += &vectors["npubs"].to_string();
    lines += ",\"patterns\":[\n";
    let list = |name: &str| {
        let texts: Vec<String> = vectors[name].as_array().unwrap().iter().map(Value::to_string).collect();
        texts.join(",\n")
    };
    lines += &list("patterns");
    lines += "\n],\"best\":[\n";
    lines += &list("best");
    lines += "\n]}\n";
    if std::env::var_os("NPUBBOT_WRITE_VECTORS").is_some() {
        std::fs::write(&file, &lines).unwrap();
    }
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept == lines, "web/tests/patterns.json is not what the grammar says; write it again and fit the page");
}
