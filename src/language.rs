//! The languages of the conversation.

/// A language that the bot understands and answers in. Public events are in English.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub enum Language {
    /// English, unless an asker shows another one.
    #[default]
    English,
    /// Japanese.
    Japanese,
    /// Spanish.
    Spanish,
    /// Portuguese, as in Brazil.
    Portuguese,
    /// German.
    German,
    /// French.
    French,
}

impl Language {
    /// All languages. A word of several languages is read as a word of the first one.
    pub const ALL: [Language; 6] = [
        Language::English,
        Language::Japanese,
        Language::Spanish,
        Language::Portuguese,
        Language::German,
        Language::French,
    ];

    /// The language's two letters (ISO 639-1). The ledger keeps them, and askers send them, as in
    /// `lang ja`.
    pub fn code(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Japanese => "ja",
            Language::Spanish => "es",
            Language::Portuguese => "pt",
            Language::German => "de",
            Language::French => "fr",
        }
    }

    /// The language with this [`Language::code`].
    pub fn from_code(code: &str) -> Option<Language> {
        Language::ALL.into_iter().find(|language| language.code() == code)
    }
}
