//! The source code of the library, for tests of its structure.

use std::fs;
use std::path::{Path, PathBuf};

/// The top of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below `folder` with one of these extensions, sorted. Build output and hidden folders
/// are skipped.
pub fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && name != "target" && name != "node_modules" {
                files.extend(self::files(&path, extensions));
            }
        } else if path.extension().is_some_and(|found| extensions.iter().any(|one| found == *one)) {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The folders of the library's source code: the bot's and the miner's.
const SOURCES: [&str; 2] = ["src", "miner/src"];

/// Every Rust file of the library except unit tests.
pub fn library() -> Vec<PathBuf> {
    let is_test = |file: &PathBuf| file.iter().any(|part| part == "tests" || part == "tests.rs");
    let all = SOURCES.into_iter().flat_map(|folder| files(&root().join(folder), &["rs"]));
    all.filter(|file| !is_test(file)).collect()
}

/// The path of a file of the library below its `src`, such as `key/npub.rs`.
pub fn below_src(file: &Path) -> PathBuf {
    let below = SOURCES.into_iter().find_map(|folder| file.strip_prefix(root().join(folder)).ok());
    below.unwrap_or_else(|| panic!("{} is not of the library", file.display())).to_owned()
}

/// The path from the top of the repository of a file that [`below_src`] named.
pub fn from_top(below_src: &str) -> String {
    let is_there = |folder: &&&str| root().join(folder).join(below_src).exists();
    format!("{}/{below_src}", SOURCES.iter().find(is_there).unwrap_or(&SOURCES[0]))
}

/// Code without whole-line comments and without the unit tests at its end.
pub fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}
