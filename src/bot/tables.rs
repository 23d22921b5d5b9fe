//! The tables of texts, one Fluent file a language.

use crate::language::Language;
use fluent_bundle::concurrent::FluentBundle;
use fluent_bundle::{FluentArgs, FluentResource, FluentValue};
use std::sync::LazyLock;

/// The file of each language, in the order of [`Language::ALL`].
pub(super) const FILES: [(Language, &str); 6] = [
    (Language::English, include_str!("texts/en.ftl")),
    (Language::Japanese, include_str!("texts/ja.ftl")),
    (Language::Spanish, include_str!("texts/es.ftl")),
    (Language::Portuguese, include_str!("texts/pt.ftl")),
    (Language::German, include_str!("texts/de.ftl")),
    (Language::French, include_str!("texts/fr.ftl")),
];

static TABLES: LazyLock<Vec<Table>> =
    LazyLock::new(|| FILES.into_iter().map(|(language, source)| Table::read(language, source)).collect());

/// The texts of one language.
pub(super) struct Table {
    language: Language,
    bundle: FluentBundle<FluentResource>,
}

/// A value of a text, by its name.
pub(super) type Value<'a> = (&'a str, FluentValue<'a>);

impl Table {
    pub fn language(&self) -> Language {
        self.language
    }

    /// The table of a language.
    pub fn of(language: Language) -> &'static Table {
        TABLES.iter().find(|table| table.language == language).unwrap_or(&TABLES[0])
    }

    /// Reads a file. Texts that cannot be read are left out; a test checks that there are none.
    fn read(language: Language, source: &str) -> Table {
        let resource = FluentResource::try_new(source.to_owned()).unwrap_or_else(|(readable, _)| readable);
        // The plural rules are those of this language.
        let mut bundle = FluentBundle::new_concurrent(language.code().parse().into_iter().collect());
        // Without this, invisible marks of the writing direction surround each value.
        bundle.set_use_isolating(false);
        bundle.add_resource_overriding(resource);
        Table { language, bundle }
    }

    /// The text `id` with its values; the English one if this table lacks it. A test checks that no
    /// table lacks any.
    pub fn say(&self, id: &str, values: &[Value<'_>]) -> String {
        match self.lookup(id, values) {
            Some(text) => text,
            None if self.language == Language::default() => String::new(),
            None => Table::of(Language::default()).say(id, values),
        }
    }

    /// The words of a list such as `fillers`; none if this table has no such list.
    pub fn words(&self, id: &str) -> Vec<String> {
        let list = self.lookup(id, &[]).unwrap_or_default();
        list.split_whitespace().map(str::to_owned).collect()
    }

    fn lookup(&self, id: &str, values: &[Value<'_>]) -> Option<String> {
        let pattern = self.bundle.get_message(id)?.value()?;
        let values: FluentArgs<'_> = values.iter().cloned().collect();
        let mut errors = Vec::new();
        let text = self.bundle.format_pattern(pattern, Some(&values), &mut errors);
        debug_assert!(errors.is_empty(), "{} in {}: {errors:?}", id, self.language.code());
        Some(text.into_owned())
    }
}

/// The text of an id with its values: `say!(table, "late", job = job.to_string())`.
macro_rules! say {
    ($table:expr, $id:literal $(, $name:ident = $value:expr)* $(,)?) => {
        $table.say($id, &[$((stringify!($name), fluent_bundle::FluentValue::from($value))),*])
    };
}
pub(super) use say;
