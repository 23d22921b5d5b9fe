//! Imports point down only, and no files import each other in a circle.

use super::modules::{Import, Modules};
use crate::support::harness::{Test, test};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub const TESTS: &[Test] = &[
    test!(imports_point_down_only),
    test!(no_circle_of_files),
    test!(inbox_outbox_and_presence_do_not_use_each_other),
    test!(every_form_of_import_is_read),
];

/// The rooms from the bottom up. A room may import from itself and from the storeys below.
const STOREYS: &[&[&str]] = &[
    &["clock", "duration", "fault", "hours", "language", "memory", "os", "shutdown", "token_bucket", "key"],
    &["pattern"],
    &["job"],
    &["message"],
    &["progress", "ledger", "vault", "search"],
    &["config", "remote", "calibration_file"],
    &["bot", "fleet", "nostr", "scheduler", "web", "control"],
    &["service", "backup"],
    &["cli"],
];

fn storey(room: &str) -> usize {
    STOREYS
        .iter()
        .position(|rooms| rooms.contains(&room))
        .unwrap_or_else(|| panic!("`{room}` stands on no storey: give it one in tests/it/architecture/imports.rs"))
}

/// The room of a file: the first part of its path below `src`.
fn room_of(file: &str) -> &str {
    file.split('/').next().unwrap_or(file).trim_end_matches(".rs")
}

fn lines<T: std::fmt::Display>(imports: impl IntoIterator<Item = T>) -> String {
    imports.into_iter().map(|import| format!("    {import}\n")).collect()
}

fn imports() -> Vec<Import> {
    let imports = Modules::read().imports();
    assert!(imports.len() > 200, "only {} imports were recognised", imports.len());
    imports
}

fn upward(imports: &[Import]) -> Vec<&Import> {
    let is_upward = |import: &&Import| {
        let (from, to) = (room_of(&import.from), room_of(&import.to));
        from != to && storey(to) >= storey(from)
    };
    imports.iter().filter(is_upward).collect()
}

fn imports_point_down_only() {
    let imports = imports();
    let upward = upward(&imports);
    assert!(upward.is_empty(), "{} imports that point up or sideways:\n{}", upward.len(), lines(upward));
}

fn inbox_outbox_and_presence_do_not_use_each_other() {
    let part = |file: &str| {
        let part = file.strip_prefix("nostr/")?.split('/').next()?.trim_end_matches(".rs").to_owned();
        ["inbox", "outbox", "presence"].contains(&part.as_str()).then_some(part)
    };
    let imports = imports();
    let is_across = |import: &&Import| {
        let Some(to) = part(&import.to) else { return false };
        // `inbox`, `outbox` and `presence` may use `relay`, but `relay` may use none of them.
        import.from.starts_with("nostr/relay/") || part(&import.from).is_some_and(|from| from != to)
    };
    let across: Vec<&Import> = imports.iter().filter(is_across).collect();
    assert!(across.is_empty(), "{} imports across:\n{}", across.len(), lines(across));
}

/// All circles, each once, as the imports that form it.
fn circles(imports: &[Import]) -> Vec<Vec<&Import>> {
    let mut next: BTreeMap<&str, Vec<&Import>> = BTreeMap::new();
    for import in imports {
        next.entry(&import.from).or_default().push(import);
    }
    let mut circles = BTreeMap::new();
    for file in next.keys() {
        if let Some(circle) = shortest_way_back(file, &next) {
            // The same circle is found once for each of its files.
            let files: BTreeSet<&str> = circle.iter().map(|import| import.from.as_str()).collect();
            circles.entry(files).or_insert(circle);
        }
    }
    circles.into_values().collect()
}

fn no_circle_of_files() {
    let imports = imports();
    let circles = circles(&imports);
    let text: String = circles.iter().map(|circle| lines(circle) + "\n").collect();
    assert!(circles.is_empty(), "{} circles of files:\n{text}", circles.len());
}

/// The shortest chain of imports that leads from a file back to itself.
fn shortest_way_back<'a>(file: &str, next: &BTreeMap<&str, Vec<&'a Import>>) -> Option<Vec<&'a Import>> {
    let mut queue = VecDeque::from([Vec::new()]);
    let mut seen = BTreeSet::new();
    while let Some(way) = queue.pop_front() {
        let last: &str = way.last().map_or(file, |import: &&Import| &import.to);
        for import in next.get(last).into_iter().flatten() {
            let mut longer = way.clone();
            longer.push(*import);
            if import.to == file {
                return Some(longer);
            }
            if seen.insert(&import.to) {
                queue.push_back(longer);
            }
        }
    }
    None
}

/// Every form of import is recognised in made-up files.
fn every_form_of_import_is_read() {
    let files = [
        ("key/mod.rs", "mod point;\npub use point::Point;\npub use self::offset::*;\nmod offset;"),
        ("key/point.rs", "pub struct Point;\n// use crate::service;\n#[cfg(test)]\nuse crate::cli::Cli;"),
        ("key/offset.rs", "use super::point;\npub struct Offset(point::Point);"),
        (
            "search/mod.rs",
            "use crate::{key::{Point, Offset as Step}, clock};\nfn f() { crate::service::stop(\"crate::cli\") }",
        ),
        ("clock.rs", "pub fn now<'a>() -> &'a str { r#\"crate::search\"# }"),
        ("service/mod.rs", "mod part;\npub const FEW: u8 = 1;\npub fn stop() { part::run() }"),
        ("service/part.rs", "use super::FEW;\npub(in crate::cli) fn run() {}"),
    ];
    let files = files.map(|(file, code)| (file.into(), code.to_owned())).to_vec();
    let imports = Modules::parse(files).imports();
    let pairs: Vec<(&str, &str)> = imports.iter().map(|import| (import.from.as_str(), import.to.as_str())).collect();
    let expected = [
        ("key/offset.rs", "key/point.rs"),
        ("search/mod.rs", "clock.rs"),
        ("search/mod.rs", "key/offset.rs"),
        ("search/mod.rs", "key/point.rs"),
        ("search/mod.rs", "service/mod.rs"),
        ("service/mod.rs", "service/part.rs"),
        ("service/part.rs", "service/mod.rs"),
    ];
    for pair in expected {
        assert!(pairs.contains(&pair), "{pair:?} is missing in\n{}", lines(&imports));
    }
    assert!(pairs.iter().all(|pair| expected.contains(pair)), "more than there is:\n{}", lines(&imports));
    let upward: Vec<String> = upward(&imports).into_iter().map(Import::to_string).collect();
    assert_eq!(upward, ["miner/src/search/mod.rs:2 has `crate::service::stop` of src/service/mod.rs"]);
    assert_eq!(circles(&imports).len(), 1);
}
