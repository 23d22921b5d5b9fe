//! The modules of the library, and every import between their files.

use super::tokens::{Token, tokens};
use crate::support::source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A path from the crate's root, such as `["nostr", "relay", "Relays"]`.
type Names = Vec<String>;

/// A path named in a file.
#[derive(Clone, Debug)]
struct Named {
    /// The path from the crate's root.
    path: Names,
    /// The name used in this file, `*` for a glob import; `None` outside of `use`.
    alias: Option<String>,
    /// Whether it is a `pub use` of any form, which re-exports an item.
    is_public: bool,
    line: usize,
}

/// A file of the library.
struct Module {
    file: PathBuf,
    /// The items defined in the file.
    items: BTreeSet<String>,
    named: Vec<Named>,
}

/// An import of one file from another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import {
    /// The importing file, as a path below `src`, such as `nostr/mod.rs`.
    pub from: String,
    pub to: String,
    pub line: usize,
    /// The imported path, such as `crate::nostr::Relays`.
    pub path: String,
}

impl std::fmt::Display for Import {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [from, to] = [&self.from, &self.to].map(|file| source::from_top(file));
        write!(out, "{from}:{} has `{}` of {to}", self.line, self.path)
    }
}

/// All modules by their path.
pub struct Modules(BTreeMap<Names, Module>);

impl Modules {
    /// Reads every file of the library except `lib.rs`, `main.rs` and unit tests.
    pub fn read() -> Modules {
        let text = |file: PathBuf| {
            let code = std::fs::read_to_string(&file).unwrap();
            (source::below_src(&file), code)
        };
        Modules::parse(source::library().into_iter().map(text).collect())
    }

    /// Parses files, given by their path below `src` and their code.
    pub fn parse(files: Vec<(PathBuf, String)>) -> Modules {
        let known: BTreeSet<Names> = files.iter().filter_map(|(file, _)| module_path(file)).collect();
        let module = |(file, code): (PathBuf, String)| {
            let (path, tokens) = (module_path(&file)?, tokens(&code));
            let named = paths(&tokens, &path, &known);
            Some((path, Module { file, items: items(&tokens), named }))
        };
        Modules(files.into_iter().filter_map(module).collect())
    }

    /// Every import of one file from another. A re-exported item counts as imported from the file
    /// that defines it.
    pub fn imports(&self) -> Vec<Import> {
        let mut imports = BTreeSet::new();
        for (path, module) in &self.0 {
            for named in &module.named {
                let Some(target) = self.owner(&named.path, 0) else { continue };
                // `pub use child::Item` in the parent module is a re-export, not an import.
                let hands_on = named.is_public && target.starts_with(path) && target != path;
                if target == path || hands_on {
                    continue;
                }
                imports.insert(Import {
                    from: module.file.display().to_string(),
                    to: self.0[target].file.display().to_string(),
                    line: named.line,
                    path: format!("crate::{}", named.path.join("::")),
                });
            }
        }
        imports.into_iter().collect()
    }

    /// The module that defines the item at the end of the path. Re-exports are followed; `depth`
    /// counts them.
    fn owner(&self, path: &[String], depth: usize) -> Option<&Names> {
        let length = (1..=path.len()).rev().find(|&length| self.0.contains_key(&path[..length]))?;
        let (module, rest) = self.0.get_key_value(&path[..length])?;
        let Some(item) = path.get(length).filter(|_| depth < 8) else { return Some(module) };
        if rest.items.contains(item) {
            return Some(module);
        }
        let handed_on = |named: &&Named| named.alias.as_ref() == Some(item) && named.path != path;
        if let Some(named) = rest.named.iter().find(handed_on) {
            return self.owner(&named.path, depth + 1).or(Some(module));
        }
        // A glob re-export: `pub use child::*`
        let globs = rest.named.iter().filter(|named| named.alias.as_deref() == Some("*"));
        for glob in globs {
            if self.0.get(&glob.path).is_some_and(|target| target.items.contains(item)) {
                return self.0.get_key_value(&glob.path).map(|(path, _)| path);
            }
        }
        Some(module)
    }
}

/// The module path of a file: `["nostr", "relay"]` for `nostr/relay/mod.rs`, empty for the crate's
/// root.
fn module_path(file: &Path) -> Option<Names> {
    let mut names: Names = file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if names.last().is_some_and(|last| last == "mod") {
        names.pop();
    }
    let is_crate = names.len() == 1 && ["lib", "main"].contains(&names[0].as_str());
    (!is_crate).then_some(names)
}

/// The names of the items that a file defines.
fn items(tokens: &[Token]) -> BTreeSet<String> {
    let words = ["struct", "enum", "fn", "const", "static", "type", "trait", "union"];
    let pairs = tokens.windows(2).filter(|pair| words.contains(&pair[0].text.as_str()));
    pairs.map(|pair| pair[1].text.clone()).collect()
}

/// Every path into this crate that a file names, in `use` trees and elsewhere.
fn paths(tokens: &[Token], here: &Names, known: &BTreeSet<Names>) -> Vec<Named> {
    let (mut found, mut i) = (Vec::new(), 0);
    while i < tokens.len() {
        let text = tokens[i].text.as_str();
        // Skips `impl Trait + use<'a>`.
        let begins_tree = |next: &Token| is_name(&next.text) || ["::", "{"].contains(&next.text.as_str());
        if text == "use" && tokens.get(i + 1).is_some_and(begins_tree) {
            let before = i.checked_sub(1).map(|i| tokens[i].text.as_str());
            let is_public = matches!(before, Some("pub" | ")"));
            let mut uses = Vec::new();
            i = tree(tokens, i + 1, &mut Vec::new(), &mut uses);
            for (path, alias, line) in uses {
                if let Some(path) = absolute(&path, here, known) {
                    found.push(Named { path, alias: Some(alias), is_public, line });
                }
            }
            continue;
        }
        // Skips the end of a longer path, and visibilities such as `pub(in crate::scheduler)`.
        let follows = i.checked_sub(1).is_some_and(|i| ["::", ".", "in"].contains(&tokens[i].text.as_str()));
        if !follows && tokens.get(i + 1).is_some_and(|next| next.text == "::") && is_name(text) {
            let (mut path, line) = (vec![text.to_owned()], tokens[i].line);
            let mut end = i + 1;
            while tokens.get(end).is_some_and(|token| token.text == "::")
                && tokens.get(end + 1).is_some_and(|token| is_name(&token.text))
            {
                path.push(tokens[end + 1].text.clone());
                end += 2;
            }
            if let Some(path) = absolute(&path, here, known) {
                found.push(Named { path, alias: None, is_public: false, line });
            }
            i = end;
            continue;
        }
        i += 1;
    }
    found
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads one branch of a `use` tree. Returns the index after it.
fn tree(
    tokens: &[Token],
    mut i: usize,
    prefix: &mut Vec<String>,
    uses: &mut Vec<(Vec<String>, String, usize)>,
) -> usize {
    let depth = prefix.len();
    while let Some(token) = tokens.get(i) {
        match token.text.as_str() {
            "::" => i += 1,
            "{" => {
                i += 1;
                while tokens.get(i).is_some_and(|token| token.text != "}") {
                    let end = tree(tokens, i, prefix, uses);
                    let is_comma = tokens.get(end).is_some_and(|token| token.text == ",");
                    // Skips anything that is not a tree.
                    i = end + usize::from(is_comma || end == i);
                }
                prefix.truncate(depth);
                return i + 1;
            }
            "*" => {
                uses.push((prefix.clone(), "*".to_owned(), token.line));
                prefix.truncate(depth);
                return i + 1;
            }
            "," | ";" | "}" => break,
            "as" => {
                uses.push((prefix.clone(), tokens[i + 1].text.clone(), token.line));
                prefix.truncate(depth);
                return i + 2;
            }
            // `use a::{self}` names `a`.
            "self" if !prefix.is_empty() => i += 1,
            name => {
                prefix.push(name.to_owned());
                i += 1;
            }
        }
    }
    if let Some(last) = prefix.last() {
        uses.push((prefix.clone(), last.clone(), tokens[i.min(tokens.len()) - 1].line));
    }
    prefix.truncate(depth);
    i
}

/// Turns a path that the module `here` names into a path from the crate's root; `None` if it leads
/// to another crate.
fn absolute(path: &[String], here: &Names, known: &BTreeSet<Names>) -> Option<Names> {
    let rest = |from: usize| path[from..].iter().cloned();
    match path.first()?.as_str() {
        "crate" | "npubbot" => Some(rest(1).collect()),
        "self" => Some(here.iter().cloned().chain(rest(1)).collect()),
        "super" => {
            let ups = path.iter().take_while(|name| *name == "super").count();
            let above = here.get(..here.len().checked_sub(ups)?)?;
            Some(above.iter().cloned().chain(rest(ups)).collect())
        }
        // A child module, or another crate.
        first => {
            let child: Names = here.iter().cloned().chain([first.to_owned()]).collect();
            known.contains(&child).then(|| here.iter().cloned().chain(rest(0)).collect())
        }
    }
}
