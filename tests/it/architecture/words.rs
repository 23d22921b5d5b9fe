//! Retired words and phrases (`docs/developers/words.md`) occur nowhere, and no page has
//! placeholders.

use crate::support::harness::{Test, test};
use crate::support::source;
use std::fs;
use std::path::{Path, PathBuf};

pub const TESTS: &[Test] = &[
    test!(retired_words_occur_nowhere),
    test!(a_retired_word_is_found_in_every_form_and_only_as_a_word),
    test!(doc_comments_and_test_names_begin_with_a_noun_or_verb),
    test!(a_riddle_is_recognised_and_a_plain_line_is_not),
    test!(no_page_has_gaps),
];

/// Retired words and phrases that have no other meaning here. Matched as whole words, also within
/// `snake_case` and `CamelCase` names, in upper and lower case.
const RETIRED: &[&str] = &[
    "base_id",
    "base_point",
    "base_secret",
    "billboard",
    "candidates_a_start_point",
    "citizen",
    "crowd",
    "crowded",
    "desk",
    "harvest",
    "hits_a_start",
    "housekeeping",
    "keeper",
    "likewise",
    "openings",
    "settler",
    "stands_in_for_a",
    "sweeper",
    "swept",
    "treasury",
    "unasked",
    "whatever_else",
    "wish",
    "wishes",
    "workbench",
];

/// Retired names, matched only as whole names: their words, written apart, are plain English.
const RETIRED_NAMES: &[&str] = &["and_again", "keep_gaps_small", "leaves_out", "no_store", "that_tests_everything"];

/// Files that may have retired words: the table itself, history, and this list.
const EXEMPT: &[&str] = &[
    "docs/developers/words.md",
    "docs/decisions/",
    "tests/it/architecture/words.rs",
    // It lists words that askers write.
    "src/bot/texts/en.ftl",
    "tests/interop/package-lock.json",
];

/// Splits a line into lower-case words. `BasePoint`, `base_point` and `base point` give the same
/// two words.
fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in line.chars() {
        let begins = c.is_alphanumeric() && (!before.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase()));
        if begins {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("a word has begun").extend(c.to_lowercase());
        }
        before = c;
    }
    words
}

/// The retired words in a line.
fn retired(line: &str) -> Vec<&'static str> {
    let words = words(line);
    let occurs = |retired: &&&str| {
        let parts: Vec<&str> = retired.split('_').collect();
        words.windows(parts.len()).any(|window| window == parts)
    };
    let names: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let is_name = |retired: &&&str| names.contains(*retired);
    RETIRED.iter().filter(occurs).chain(RETIRED_NAMES.iter().filter(is_name)).copied().collect()
}

fn texts() -> Vec<PathBuf> {
    let extensions = ["rs", "md", "cu", "cuh", "cpp", "h", "hpp", "py", "mjs", "json", "sql", "sh", "toml", "ftl"];
    let folders = ["src", "miner", "tests", "docs"].map(|folder| source::root().join(folder));
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| source::files(folder, &extensions)).collect();
    files.push(source::root().join("README.md"));
    files
}

fn retired_words_occur_nowhere() {
    let files = texts();
    assert!(files.len() > 150, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let name = file.strip_prefix(source::root()).unwrap().display().to_string();
        if EXEMPT.iter().any(|exempt| name.starts_with(exempt)) {
            continue;
        }
        for (number, line) in fs::read_to_string(&file).unwrap_or_default().lines().enumerate() {
            for word in retired(line) {
                found.push(format!("{name}:{}: {word}: {}", number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{} retired words (docs/developers/words.md):\n{}", found.len(), found.join("\n"));
}

fn a_retired_word_is_found_in_every_form_and_only_as_a_word() {
    for line in ["BasePoint::new()", "a base point", "base_point", "BASE_POINT", "the BasePoint's"] {
        assert_eq!(retired(line), ["base_point"], "{line}");
    }
    for line in ["basepoints", "database point", "desktop", "a point, base", "again and again", "it leaves out"] {
        assert_eq!(retired(line), [""; 0], "{line}");
    }
}

/// Whether a line of Rust is a riddle by `docs/developers/words.md`: a doc comment that begins with
/// a relative clause ("What a …"), or a function named by one. Section headings of the help, and
/// questions, are not riddles.
fn is_riddle(line: &str) -> bool {
    const OPENINGS: [&str; 6] = ["what", "whatever", "who", "whoever", "whom", "whose"];
    let line = line.trim_start();
    let doc = ["/// ", "//! "].iter().find_map(|mark| line.strip_prefix(mark)).filter(|doc| !doc.contains('?'));
    let name = line.split_once("fn ").map(|(_, name)| name).filter(|_| !line.starts_with("//"));
    let first = |text: &str, end: char| text.split(end).next().unwrap_or_default().to_owned();
    doc.is_some_and(|doc| {
        doc.starts_with(char::is_uppercase) && OPENINGS.contains(&first(doc, ' ').to_lowercase().as_str())
    }) || name.is_some_and(|name| name.contains('_') && OPENINGS.contains(&first(name, '_').as_str()))
}

fn doc_comments_and_test_names_begin_with_a_noun_or_verb() {
    let folders = ["src", "miner", "tests", "benches"].map(|folder| source::root().join(folder));
    let mut riddles = Vec::new();
    for file in folders.iter().flat_map(|folder| source::files(folder, &["rs"])) {
        let text = fs::read_to_string(&file).unwrap();
        let mut before = "";
        for (number, line) in text.lines().enumerate() {
            let continues = ["///", "//!"].iter().any(|mark| before.trim_start().starts_with(mark));
            if is_riddle(line) && (!continues || line.contains("fn ")) {
                riddles.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
            before = line;
        }
    }
    assert!(riddles.is_empty(), "{} riddles (docs/developers/words.md):\n{}", riddles.len(), riddles.join("\n"));
}

fn a_riddle_is_recognised_and_a_plain_line_is_not() {
    for line in ["/// What a start point gives.", "    //! Whoever asks first.", "fn\u{20}who_waits() {"] {
        assert!(is_riddle(line), "{line}");
    }
    for line in
        ["/// Whether it is open.", "/// The relay. What it says is logged.", "/// What is a seal?", "fn whole() {"]
    {
        assert!(!is_riddle(line), "{line}");
    }
}

/// A published page has no placeholders.
fn no_page_has_gaps() {
    let mut pages = source::files(&source::root().join("docs"), &["md"]);
    let top = fs::read_dir(source::root()).unwrap().map(|entry| entry.unwrap().path());
    pages.extend(top.filter(|path| path.extension().is_some_and(|end| end == "md")));
    assert!(pages.len() > 8);
    let has_gap = |page: &Path, gap: &str| fs::read_to_string(page).unwrap().contains(gap);
    for page in pages {
        for gap in ["@@", "TODO", "TBD", "FIXME"] {
            assert!(!has_gap(&page, gap), "{} has `{gap}`", page.display());
        }
    }
}
