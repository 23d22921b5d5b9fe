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

/// The folders of the library's source code, each with the room that it is: the bot's and the miner's
/// rooms, and the vault.
const SOURCES: [(&str, &str); 3] = [("src", ""), ("miner/src", ""), ("vault/src", "vault")];

/// Every Rust file of the library except unit tests.
pub fn library() -> Vec<PathBuf> {
    let is_test = |file: &PathBuf| below_src(file).iter().any(|part| part == "tests" || part == "tests.rs");
    let all = SOURCES.into_iter().flat_map(|(folder, _)| files(&root().join(folder), &["rs"]));
    all.filter(|file| !is_test(file)).collect()
}

/// The path of a file of the library from its room on, such as `key/npub.rs`.
pub fn below_src(file: &Path) -> PathBuf {
    let below = |(folder, room): (&str, &str)| Some(Path::new(room).join(file.strip_prefix(root().join(folder)).ok()?));
    SOURCES.into_iter().find_map(below).unwrap_or_else(|| panic!("{} is not of the library", file.display()))
}

/// Code without whole-line comments and without the unit tests at its end.
pub fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap();
    let begins = |module| text.find(&format!("#[cfg(test)]\n{module} {{"));
    let end = ["mod tests", "pub(super) mod tests", "pub(crate) mod tests"].into_iter().filter_map(begins).min();
    let code = &text[..end.unwrap_or(text.len())];
    code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}
