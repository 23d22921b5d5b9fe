//! Retired words (`docs/developers/words.md`) occur nowhere, and no page has gaps.

use super::imports::MENDED;
use crate::support::harness::{Test, test};
use crate::support::source;
use std::fs;
use std::path::{Path, PathBuf};

pub const TESTS: &[Test] = &[
    test!(retired_words_occur_nowhere).long(MENDED),
    test!(a_retired_word_is_found_in_every_form_and_only_as_a_word),
    test!(no_page_has_gaps),
];

/// Words without another meaning here. Matched as whole words, also within `snake_case` and `CamelCase`
/// names, in any case of letters.
const RETIRED: &[&str] = &[
    "base_id",
    "base_point",
    "base_secret",
    "billboard",
    "citizen",
    "desk",
    "harvest",
    "housekeeping",
    "openings",
    "settler",
    "sweeper",
    "treasury",
    "unasked",
    "wish",
    "wishes",
    "workbench",
];

/// Retired names whose words are plain English when they stand apart.
const RETIRED_NAMES: &[&str] =
    &["Crowd", "and_again", "keep_gaps_small", "leaves_out", "no_store", "that_tests_everything"];

/// Where they may stand: the table itself, history, and this list.
const EXEMPT: &[&str] = &[
    "docs/developers/words.md",
    "docs/decisions/",
    "docs/measurements/",
    "tests/it/architecture/words.rs",
    "tests/interop/package-lock.json",
];

/// Splits a line into lower-case words: `BasePoint`, `base_point` and `base point` are the same two.
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
    let extensions = ["rs", "md", "cu", "cuh", "cpp", "h", "hpp", "py", "mjs", "json", "sql", "sh", "toml"];
    let folders = ["src", "kernels", "tests", "docs"].map(|folder| source::root().join(folder));
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
