//! The tables of texts: complete, and the same in every language.

use crate::bot::tables::FILES;
use fluent_syntax::ast::{CallArguments, Entry, Expression, InlineExpression, Pattern, PatternElement};
use fluent_syntax::parser;
use std::collections::{BTreeMap, BTreeSet};

/// Sources that look texts up by their names.
const SAYING: [&str; 7] = [
    include_str!("../wording.rs"),
    include_str!("../meanings.rs"),
    include_str!("../phrases.rs"),
    include_str!("../numbers.rs"),
    include_str!("../notices.rs"),
    include_str!("../tables.rs"),
    include_str!("../vocabulary.rs"),
];

/// The variables of one message, and the messages it refers to.
#[derive(Default, PartialEq, Eq, Debug)]
struct Used {
    /// Variables that a reader sees.
    shown: BTreeSet<String>,
    /// Variables by which one of several forms is chosen.
    choosing: BTreeSet<String>,
    messages: BTreeSet<String>,
    terms: BTreeSet<String>,
}

impl Used {
    fn pattern(&mut self, pattern: &Pattern<&str>) {
        for element in &pattern.elements {
            let PatternElement::Placeable { expression } = element else { continue };
            self.expression(expression);
        }
    }

    fn expression(&mut self, expression: &Expression<&str>) {
        match expression {
            Expression::Inline(inline) => self.inline(inline, true),
            Expression::Select { selector, variants } => {
                self.inline(selector, false);
                variants.iter().for_each(|variant| self.pattern(&variant.value));
            }
        }
    }

    fn inline(&mut self, inline: &InlineExpression<&str>, is_shown: bool) {
        match inline {
            InlineExpression::VariableReference { id } => {
                let place = if is_shown { &mut self.shown } else { &mut self.choosing };
                place.insert(id.name.to_owned());
            }
            InlineExpression::MessageReference { id, .. } => _ = self.messages.insert(id.name.to_owned()),
            InlineExpression::TermReference { id, arguments, .. } => {
                assert!(arguments.as_ref().is_none_or(|CallArguments { positional, .. }| positional.is_empty()));
                self.terms.insert(id.name.to_owned());
            }
            InlineExpression::Placeable { expression } => self.expression(expression),
            InlineExpression::FunctionReference { id, .. } => panic!("{}: no functions", id.name),
            InlineExpression::StringLiteral { .. } | InlineExpression::NumberLiteral { .. } => {}
        }
    }
}

/// The messages of a file, each with what it uses. Panics if something cannot be read.
fn messages(code: &str, file: &str) -> BTreeMap<String, Used> {
    let resource = parser::parse(file).unwrap_or_else(|(_, errors)| panic!("{code}: {errors:?}"));
    let (mut messages, mut terms) = (BTreeMap::new(), BTreeSet::new());
    for entry in &resource.body {
        match entry {
            Entry::Message(message) => {
                let mut used = Used::default();
                used.pattern(message.value.as_ref().expect("a message has a text"));
                let before = messages.insert(message.id.name.to_owned(), used);
                assert!(before.is_none(), "{code}: two messages {}", message.id.name);
            }
            Entry::Term(term) => _ = terms.insert(term.id.name.to_owned()),
            Entry::Comment(_) | Entry::GroupComment(_) | Entry::ResourceComment(_) => {}
            Entry::Junk { content } => panic!("{code}: {content}"),
        }
    }
    for (id, used) in &messages {
        assert!(used.messages.iter().all(|other| messages.contains_key(other)), "{code}: {id} refers to nothing");
        assert!(used.terms.is_subset(&terms), "{code}: {id} refers to no term");
        assert!(!terms.contains(id), "{code}: a term has the name of the message {id}");
    }
    messages
}

/// Lists that a language may have or not.
fn is_optional(id: &str) -> bool {
    id.starts_with("also-")
}

#[test]
fn every_language_has_every_text_with_the_same_values() {
    let english = messages("en", FILES[0].1);
    for (language, file) in FILES {
        let code = language.code();
        let own = messages(code, file);
        for (id, expected) in english.iter().filter(|(id, _)| !is_optional(id)) {
            let used = own.get(id).unwrap_or_else(|| panic!("{code}: {id} is missing"));
            assert_eq!(used.shown, expected.shown, "{code}: the values shown by {id}");
            // A language may choose its forms by fewer variables, but not by others.
            let known: BTreeSet<_> = expected.shown.union(&expected.choosing).cloned().collect();
            assert!(used.choosing.is_subset(&known), "{code}: {id} chooses by {:?}", used.choosing);
        }
        let superfluous: Vec<_> = own.keys().filter(|id| !is_optional(id) && !english.contains_key(*id)).collect();
        assert!(superfluous.is_empty(), "{code}: {superfluous:?} are superfluous");
    }
}

#[test]
fn every_text_is_said_somewhere() {
    for (language, file) in FILES {
        let own = messages(language.code(), file);
        let referred: BTreeSet<&String> = own.values().flat_map(|used| &used.messages).collect();
        for id in own.keys() {
            let is_said = SAYING.iter().any(|source| source.contains(&format!("\"{id}\"")));
            assert!(is_said || referred.contains(id), "{}: nobody says {id}", language.code());
        }
    }
}
