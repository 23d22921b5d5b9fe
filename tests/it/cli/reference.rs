//! Texts that must agree with the code: the page `relays-toml.md` with the types of `src/config`, the
//! pages of troubleshooting and of patterns with what the program says, and the web page's reading of
//! patterns (`web/tests/patterns.json`) with ours.
//! `NPUBBOT_WRITE_REFERENCE=1 cargo test --test it the_reference` writes the page, and
//! `NPUBBOT_WRITE_VECTORS=1 cargo test --test it the_page_reads` what we read. For a new text, add a
//! line `{"written":"…"}`.

use crate::support::harness::{Test, test};
use crate::support::source;
use npubbot::key::Npub;
use npubbot::pattern::{Best, Family, Pattern, PatternSet};
use serde_json::{Value, json};
use std::fmt::Write;
use std::fs;
use std::path::Path;

pub const TESTS: &[Test] = &[
    test!(the_reference_of_the_configuration_is_complete),
    test!(every_message_of_the_troubleshooting_page_is_said_by_the_program),
    test!(the_table_of_patterns_has_their_difficulties),
    test!(the_page_reads_patterns_as_the_bot_does),
];

/// The tables of the configuration file: the type that reads each, its name in the file, and its
/// heading on the page.
const TABLES: [(&str, &str, &str); 10] = [
    ("Config", "", "At the top of the file"),
    ("RelayTable", "relays", "`[[relays]]`, once for each relay"),
    ("BotConfig", "bot", "`[bot]`"),
    ("Limits", "limits", "`[limits]`"),
    ("SearchTable", "search", "`[search]`"),
    ("CapsTable", "search.caps", "`[[search.caps]]`, once for each device that has caps of its own"),
    ("FleetConfig", "fleet", "`[fleet]`"),
    ("WebConfig", "web", "`[web]`"),
    ("NetworkConfig", "network", "`[network]`"),
    ("VaultConfig", "vault", "`[vault]`"),
];

/// The fields of a type, each with its comment in one line.
fn fields(code: &str, name: &str) -> Vec<(String, String)> {
    let body = code.split_once(&format!("struct {name} {{\n")).unwrap().1.split_once("\n}\n").unwrap().0;
    let (mut fields, mut comment) = (Vec::new(), Vec::new());
    for line in body.lines().map(str::trim) {
        match (line.strip_prefix("/// "), line.split_once(": ")) {
            (Some(text), _) => comment.push(text),
            (None, Some((field, _))) => {
                let (field, comment) = (field.trim_start_matches("pub "), std::mem::take(&mut comment).join(" "));
                assert!(!comment.is_empty(), "`{field}` has no comment");
                // A field that is a table of its own has its own entry in `TABLES`.
                if !TABLES.iter().any(|(_, table, _)| field == *table && field != "relays") {
                    fields.push((field.to_owned(), comment));
                }
            }
            (None, None) => {}
        }
    }
    fields
}

fn the_reference_of_the_configuration_is_complete() {
    let read = |path: &str| fs::read_to_string(source::root().join(path)).unwrap();
    let code = read("src/config/mod.rs") + &read("src/config/search.rs");
    let text = read("relays.toml");
    let shipped: toml::Table = text.parse().unwrap();
    let mut page = "# relays.toml\n\nEvery key may be left out. A wrong key or value stops the start, with the line and the allowed\n\
                    values. Spans of time are a whole number and `s`, `min`, `h` or `days`.\n"
        .to_owned();
    let mut keys = 0;
    for (name, table, title) in TABLES {
        write!(page, "\n## {title}\n\n| key | default | meaning |\n| --- | --- | --- |\n").unwrap();
        let defaults =
            if table.is_empty() { Some(&shipped) } else { shipped.get(table).and_then(|table| table.as_table()) };
        for (field, comment) in fields(&code, name) {
            keys += 1;
            // It may stand in a comment.
            assert!(text.contains(&field), "relays.toml explains {field}");
            let default = defaults.and_then(|table| table.get(&field)).filter(|value| !value.is_array());
            let default = default.map_or(String::new(), |value| format!("`{value}`"));
            writeln!(page, "| `{field}` | {default} | {comment} |").unwrap();
        }
    }
    assert!(keys > 25, "{keys} keys");
    let file = source::root().join("docs/operators/relays-toml.md");
    if std::env::var_os("NPUBBOT_WRITE_REFERENCE").is_some() {
        fs::write(&file, &page).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == page, "docs/operators/relays-toml.md is not what the types say; write it again");
}

/// The page has its messages between backquotes in the first column, with `…` for variable parts.
fn every_message_of_the_troubleshooting_page_is_said_by_the_program() {
    let page = fs::read_to_string(source::root().join("docs/operators/troubleshooting.md")).unwrap();
    let mut said = String::new();
    for file in source::library() {
        // A string literal may continue on the next line.
        let code = fs::read_to_string(&file).unwrap();
        said.extend(code.split("\\\n").map(str::trim_start));
    }
    let mut messages = 0;
    for row in page.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split(" | ").next().unwrap();
        for message in cell.split('`').skip(1).step_by(2) {
            messages += 1;
            // `unknown field` is a text of the library that reads the file.
            for part in message
                .split('…')
                .filter(|part| *part != "unknown field")
                .map(str::trim)
                .filter(|part| !part.is_empty())
            {
                assert!(said.contains(part), "nothing says `{part}` of `{message}`");
            }
        }
    }
    assert!(messages > 30, "{messages} messages");
}

/// The page has patterns in the first column and their difficulties in the third, in the same
/// order.
fn the_table_of_patterns_has_their_difficulties() {
    let page = fs::read_to_string(source::root().join("docs/askers/patterns.md")).unwrap();
    let table = page.split_once("| pattern | means | 1 key in |").unwrap().1.split_once("\n\n").unwrap().0;
    let mut compared = 0;
    for row in table.lines().filter(|row| row.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let patterns = cells[0].split('`').skip(1).step_by(2);
        // Some rows send the reader to `explain` instead.
        for (pattern, shown) in patterns.zip(cells[2].split(", ")).filter(|(_, shown)| !shown.contains("explain")) {
            let difficulty = pattern.parse::<Pattern>().unwrap().difficulty();
            assert_eq!(shown, difficulty.to_string(), "{pattern}");
            compared += 1;
        }
    }
    assert!(compared > 12, "{compared} patterns");
}

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
