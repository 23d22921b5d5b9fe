//! Commands and languages: what the texts show is understood, and prefixes stay prefixes.

use super::*;
use crate::bot::phrases::{FILES, TextTable};
use crate::bot::reading::read_text;
use crate::bot::request::{ChatContext, Intent, RequestedKeys};
use crate::language::Language::{self, French, German, Japanese, Portuguese, Spanish};
use crate::pattern::ALPHABET;
use std::collections::HashSet;

/// The meaning of a text, and the language of its answer, for an asker whose language is `current`.
fn read_for(text: &str, current: Language) -> (Intent, Language) {
    let reading = read_text(text, &ChatContext { language: current, ..ChatContext::default() });
    (reading.intent, reading.language)
}

/// Words that could be prefixes and are read as something else if sent alone to a bot that has
/// never heard of their sender.
const READ_OTHERWISE: [&str; 20] = [
    "aye", "ajuda", "annuler", "ayuda", "cancel", "cancelar", "delete", "gn", "ha", "hey", "k", "kk", "ok", "re",
    "sure", "test", "thanks", "ty", "ya", "yes",
];

/// All of one and two characters; of three those in the tables, and every sixteenth.
#[test]
fn other_prefixes_of_up_to_three_characters_are_requests() {
    let tables: HashSet<&str> =
        FILES.iter().flat_map(|(.., file)| file.split(|c: char| !c.is_alphanumeric())).collect();
    let longer = |texts: &[String]| -> Vec<String> {
        texts.iter().flat_map(|text| ALPHABET.iter().map(move |&letter| format!("{text}{}", letter as char))).collect()
    };
    let (mut texts, mut otherwise) = (vec![String::new()], Vec::new());
    for _ in 0..3 {
        texts = longer(&texts);
        let tried = texts
            .iter()
            .enumerate()
            .filter(|(at, text)| text.len() < 3 || at % 16 == 0 || tables.contains(text.as_str()));
        let is_requested =
            |text: &&String| read_for(text, English).0 == Intent::search(vec![Pattern::parse(text).unwrap()]);
        otherwise.extend(tried.map(|(_, text)| text).filter(|text| !is_requested(text)).cloned());
    }
    insta::assert_snapshot!(otherwise.join(" "));
}

proptest! {
    #[test]
    fn a_random_prefix_is_a_request(text in "[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{5,8}") {
        prop_assert!(READ_OTHERWISE.contains(&text.as_str()) || requested(&text) == [text]);
    }
}

#[test]
fn a_command_that_could_be_a_prefix_says_how_to_search_for_it() {
    for word in ["ajuda", "annuler", "ayuda", "cancelar"] {
        let answer = say(word, &nobody());
        let last = answer.lines().last().unwrap();
        assert!(last.ends_with(&format!(" {word}")), "{answer}");
        assert_eq!(requested(last), [word]);
    }
    for word in ["lang", "deutsch"] {
        assert_eq!(requested(word), [word]);
    }
}

#[test]
fn the_commands_that_a_language_shows_are_understood() {
    for language in Language::ALL {
        let shown = |id: &str| TextTable::of(language).words(id).concat();
        let reads = |text: String, intent: Intent| {
            assert_eq!(read_for(&text, language).0, intent, "{language:?}: {text}");
            assert_eq!(read_for(&text.to_uppercase(), language).0, intent, "{language:?}: {text}");
            assert_eq!(read_for(&text, English).0, intent, "{language:?}: {text}");
        };
        let (cancel, resend) = (shown("command-cancel"), shown("command-resend"));
        let (help, find) = (shown("command-help"), shown("command-find"));
        reads(help.clone(), Intent::Help);
        reads(format!("{help} {}", shown("command-split")), Intent::SplitHelp);
        reads(shown("command-status"), Intent::Status);
        reads(cancel.clone(), Intent::Cancel(None));
        reads(format!("{cancel} 12"), Intent::Cancel(Some(JobId(12))));
        reads(resend.clone(), Intent::Resend(None));
        reads(format!("{resend} #12"), Intent::Resend(Some(JobId(12))));
        reads(shown("command-stop"), Intent::Stop);
        reads(shown("command-start"), Intent::Start);
        reads(shown("command-delete"), Intent::Delete);
        reads(format!("{find} gm"), Intent::search(vec![Pattern::parse("gm").unwrap()]));
        let explain = shown("command-explain");
        reads(explain.clone(), Intent::Say("kinds"));
        let two = ["~cat", "m0?t"].map(|pattern| pattern.parse().unwrap()).to_vec();
        reads(format!("{explain} ~cat, m0?t"), Intent::Explain(RequestedKeys::Patterns(two)));
        reads(format!("{} {}", shown("command-language"), language.code()), Intent::Language(language));
        reads(format!("lang {}", language.code()), Intent::Language(language));
        reads(format!("lang {} ({})", language.code(), shown("language-name")), Intent::Language(language));
    }
}

#[test]
fn an_asker_is_answered_in_the_language_of_the_message() {
    let cases = [
        ("ヘルプ", Intent::Help, Japanese),
        ("ﾍﾙﾌﾟ!", Intent::Help, Japanese),
        ("使い方を教えてください。", Intent::Help, Japanese),
        ("キャンセル12", Intent::Cancel(Some(JobId(12))), Japanese),
        ("ayuda", Intent::Help, Spanish),
        ("¡Hola! Ayuda, por favor", Intent::Help, Spanish),
        ("Hilfe", Intent::Help, German),
        ("aide", Intent::Help, French),
        ("état", Intent::Status, French),
        ("basta", Intent::Stop, Spanish),
        ("löschen", Intent::Delete, German),
        ("lang pt", Intent::Language(Portuguese), Portuguese),
        ("言語 日本語", Intent::Language(Japanese), Japanese),
        ("Français", Intent::Language(French), French),
        ("你好，你是谁", Intent::ForeignLanguage, English),
        ("Привет, как дела", Intent::ForeignLanguage, English),
    ];
    for (text, intent, language) in cases {
        assert_eq!(read_for(text, English), (intent, language), "{text:?}");
    }
    // English commands, prefixes and keys tell nothing about the language.
    for text in ["status", "help", "cancel 12", "find cafe", "m0ctane", "cat dad", "🚀"] {
        assert_eq!(read_for(text, German).1, German, "{text:?}");
    }
    assert_eq!(read_for("estado", Portuguese).1, Portuguese);
    assert_eq!(read_for("lang en", German), (Intent::Language(English), English));
}
