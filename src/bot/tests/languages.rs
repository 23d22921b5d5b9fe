//! The conversation in other languages than English.

use super::manners::{Filling, answers, notices};
use super::patterns::KINDS;
use super::*;
use crate::bot::meaning::Meaning;
use crate::bot::request::{Reading, read_text};
use crate::bot::tables::{FILES, Table};
use crate::bot::vocabulary::{self, Command};
use crate::bot::words::words;
use crate::language::Language::{self, French, German, Japanese, Portuguese, Spanish};
use crate::pattern::ALPHABET;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// All words of a language that are understood, by the lists of its table.
fn lists(language: Language) -> BTreeMap<String, Vec<String>> {
    let (_, file) = FILES.into_iter().find(|(other, _)| *other == language).unwrap();
    let ids = file.lines().filter_map(|line| line.split_once(" =").map(|(id, _)| id));
    let is_list = |id: &&str| {
        let lists = ["names", "fillers", "small-talk", "seed", "seed-words", "elsewhere"];
        id.starts_with("command-") || id.starts_with("also-") || lists.contains(id)
    };
    ids.filter(is_list).map(|id| (id.to_owned(), Table::of(language).words(id))).collect()
}

/// The meaning of a text, and its language for an asker whose last one was `current`.
fn read_for(text: &str, current: Language) -> (Meaning, Language) {
    let request = read(&rumor(text));
    (request.meaning.clone(), request.language(current))
}

#[test]
fn every_listed_word_can_be_written() {
    for language in Language::ALL {
        for (id, list) in lists(language) {
            assert!(!list.is_empty(), "{language:?}: {id} is empty");
            for word in list {
                assert_eq!(words(&word).collect::<Vec<_>>(), [word.as_str()], "{language:?}: {id}");
            }
        }
    }
}

/// The listed words that could be prefixes and are read as something else if sent alone. Each is a
/// command or small talk of some language.
fn words_read_otherwise() -> BTreeSet<String> {
    let listed = Language::ALL.into_iter().flat_map(|language| lists(language).into_values().flatten());
    let could_be_prefixes = listed.filter(|word| Pattern::parse(word).is_ok());
    could_be_prefixes.filter(|word| !is_requested(word)).collect()
}

/// Whether a text, sent alone, requests itself as a prefix.
fn is_requested(text: &str) -> bool {
    read_text(text).meaning == Meaning::Find(vec![Pattern::parse(text).unwrap()])
}

#[test]
fn the_words_that_could_be_prefixes_and_are_read_otherwise_are_few() {
    insta::assert_snapshot!(words_read_otherwise().into_iter().collect::<Vec<_>>().join(" "));
}

static READ_OTHERWISE: LazyLock<BTreeSet<String>> = LazyLock::new(words_read_otherwise);

#[test]
fn every_other_prefix_of_up_to_three_characters_is_a_request() {
    let longer = |texts: &[String]| -> Vec<String> {
        texts.iter().flat_map(|text| ALPHABET.iter().map(move |&letter| format!("{text}{}", letter as char))).collect()
    };
    let mut texts = vec![String::new()];
    for _ in 0..3 {
        texts = longer(&texts);
        for text in texts.iter().filter(|text| !READ_OTHERWISE.contains(*text)) {
            assert!(is_requested(text), "{text:?}: {:?}", read_text(text).meaning);
        }
    }
    assert_eq!(texts.len(), 32 * 32 * 32);
}

proptest! {
    #[test]
    fn every_other_prefix_is_a_request(text in "[qpzry9x8gf2tvdw0s3jn54khce6mua7l]{4,8}") {
        prop_assert!(READ_OTHERWISE.contains(&text) || requested(&text) == [text]);
    }
}

/// Commands of other languages must not hide prefixes. The exceptions are words that are commands
/// in English too, and four others, whose answer tells how to search for them.
#[test]
fn a_command_that_could_be_a_prefix_is_harmless_and_says_how_to_search_for_it() {
    let mut shadowed = BTreeSet::new();
    for language in Language::ALL.into_iter().skip(1) {
        for (id, list) in lists(language) {
            let is_command = id.starts_with("command-") || id.starts_with("also-");
            for word in list.into_iter().filter(|word| is_command && Pattern::parse(word).is_ok()) {
                let english = vocabulary::command(&word).is_some_and(|(_, of)| of.contains(&English));
                let Reading { meaning, .. } = read_text(&word);
                if !english && meaning != Meaning::Find(vec![Pattern::parse(&word).unwrap()]) {
                    shadowed.insert(word);
                }
            }
        }
    }
    assert_eq!(shadowed.into_iter().collect::<Vec<_>>(), ["ajuda", "annuler", "ayuda", "cancelar"]);
    for word in ["ajuda", "annuler", "ayuda", "cancelar"] {
        let answer = say(word, &nobody());
        assert!(answer.contains(&format!("find {word}")), "{answer}");
        assert_eq!(requested(&format!("find {word}")), [word]);
    }
    for word in ["lang", "language", "deutsch", "basta cafe", "danke sehr cafe"] {
        assert!(!matches!(read_text(word).meaning, Meaning::Stop | Meaning::Language(_)), "{word}");
    }
    assert_eq!(requested("lang"), ["lang"]);
    assert_eq!(requested("una clave"), ["una", "clave"], "words that could be prefixes, and nothing else");
}

#[test]
fn the_commands_that_a_language_shows_are_understood() {
    for language in Language::ALL {
        let shown = |id: &str| Table::of(language).words(id).concat();
        let reads = |text: String, meaning: Meaning| {
            assert_eq!(read_text(&text).meaning, meaning, "{language:?}: {text}");
            assert_eq!(read_text(&text.to_uppercase()).meaning, meaning, "{language:?}: {text}");
        };
        let (cancel, resend) = (shown("command-cancel"), shown("command-resend"));
        let (help, find) = (shown("command-help"), shown("command-find"));
        reads(help.clone(), Meaning::Help);
        reads(format!("{help} {}", shown("command-split")), Meaning::SplitHelp);
        reads(shown("command-status"), Meaning::Status);
        reads(cancel.clone(), Meaning::Cancel(None));
        reads(format!("{cancel} 12"), Meaning::Cancel(Some(JobId(12))));
        reads(resend.clone(), Meaning::Resend(None));
        reads(format!("{resend} #12"), Meaning::Resend(Some(JobId(12))));
        reads(shown("command-stop"), Meaning::Stop);
        reads(shown("command-start"), Meaning::Start);
        reads(shown("command-delete"), Meaning::Delete);
        reads(format!("{find} gm"), Meaning::Find(vec![Pattern::parse("gm").unwrap()]));
        let explain = shown("command-explain");
        reads(explain.clone(), Meaning::Kinds);
        reads(format!("{explain} ~cat, m0?t"), Meaning::Explain(["~cat", "m0?t"].map(|p| p.parse().unwrap()).to_vec()));
        reads(format!("{} {}", shown("command-language"), language.code()), Meaning::Language(language));
        reads(format!("lang {}", language.code()), Meaning::Language(language));
        for word in Table::of(language).words("also-all") {
            reads(format!("{cancel} {word}"), Meaning::Cancel(None));
        }
    }
}

#[test]
fn a_word_is_one_command_in_all_languages() {
    let mut commands: BTreeMap<String, Command> = BTreeMap::new();
    for language in Language::ALL {
        for (id, list) in lists(language) {
            for word in list {
                let Some((command, of)) = vocabulary::command(&word) else { continue };
                if id.starts_with("command-") || (id.starts_with("also-") && id != "also-all") {
                    assert!(of.contains(&language), "{language:?}: {word} is another command elsewhere");
                }
                assert_eq!(*commands.entry(word).or_insert(command), command);
            }
        }
    }
    assert!(commands.len() > 60, "{}", commands.len());
}

#[test]
fn an_asker_is_answered_in_the_language_they_last_showed() {
    let cases = [
        ("ヘルプ", Meaning::Help, Japanese),
        ("ﾍﾙﾌﾟ!", Meaning::Help, Japanese),
        ("使い方を教えてください。", Meaning::Help, Japanese),
        ("状態", Meaning::Status, Japanese),
        ("キャンセル12", Meaning::Cancel(Some(JobId(12))), Japanese),
        ("こんにちは", Meaning::SmallTalk(None), Japanese),
        ("ayuda", Meaning::Help, Spanish),
        ("¡Hola! Ayuda, por favor", Meaning::Help, Spanish),
        ("ajuda", Meaning::Help, Portuguese),
        ("Hilfe", Meaning::Help, German),
        ("aide", Meaning::Help, French),
        ("état", Meaning::Status, French),
        ("estado", Meaning::Status, Spanish),
        ("basta", Meaning::Stop, Spanish),
        ("löschen", Meaning::Delete, German),
        ("lang pt", Meaning::Language(Portuguese), Portuguese),
        ("言語 日本語", Meaning::Language(Japanese), Japanese),
        ("Français", Meaning::Language(French), French),
        ("lang de (Deutsch)", Meaning::Language(German), German),
        ("idioma", Meaning::Languages, Spanish),
        ("12 palabras", Meaning::SeedWords, Spanish),
    ];
    for (text, meaning, language) in cases {
        assert_eq!(read_for(text, English), (meaning, language), "{text:?}");
    }
    assert_eq!(read_for("danke", English).1, German);
    // A word of several languages keeps the asker's language if it is one of them.
    assert_eq!(read_for("estado", Portuguese).1, Portuguese);
    // English commands, prefixes and keys tell nothing about the language.
    for text in ["status", "help", "cancel 12", "find cafe", "m0ctane", "cat dad", "una clave", "thanks", "🚀", "no"]
    {
        assert_eq!(read_for(text, German).1, German, "{text:?}");
        assert_eq!(read_for(text, English).1, English, "{text:?}");
    }
    assert_eq!(read_for("lang en", German), (Meaning::Language(English), English));
    assert_eq!(read_for("english", Japanese).1, English);
    assert_eq!(read_for("你好", English).1, English, "no kana: this may be Chinese");
}

#[test]
fn a_prefix_in_a_sentence_of_any_language_is_found() {
    for (text, language) in [
        ("quiero npub1m0c", Spanish),
        ("Quiero una clave que empiece con m0c, por favor", Spanish),
        ("Hola, ¿me puedes dar npub1m0c?", Spanish),
        ("gostaria de npub1m0c por favor", Portuguese),
        ("Quero uma chave que comece com m0c", Portuguese),
        ("Ich hätte gern npub1m0c, bitte", German),
        ("Ich möchte einen npub, der mit m0c beginnt", German),
        ("je voudrais npub1m0c s'il vous plaît", French),
        ("Bonjour ! Je voudrais une clé qui commence par m0c, merci", French),
        ("npub1m0c ください", Japanese),
        ("npub1m0cをください。", Japanese),
        ("「ｍ０ｃ」でお願いします", Japanese),
        ("m0cで始まる鍵が欲しい", Japanese),
        ("検索 m0c", Japanese),
        ("buscar m0c", Spanish),
    ] {
        let (meaning, read) = read_for(text, English);
        assert_eq!((meaning, read), (Meaning::Find(vec![Pattern::parse("m0c").unwrap()]), language), "{text:?}");
        let alike = text.replace("npub1m0c", "m0c").replace("ｍ０ｃ", "m0c").replace("m0c", "~m0c");
        assert_eq!(read_for(&alike, English).0, Meaning::Find(vec!["~m0c".parse().unwrap()]), "{alike:?}");
    }
    for text in ["quiero una clave", "Ich möchte cat oder dad", "catとdadが欲しい"] {
        assert!(matches!(read_text(text).meaning, Meaning::Sentence(_)), "{text:?}");
    }
    for text in ["cafeで終わる鍵", "una clave que termina en cafe", "un npub qui finit par cafe", "cafeを含む"]
    {
        assert!(matches!(read_text(text).meaning, Meaning::Unsupported(_) | Meaning::BadWords(_)), "{text:?}");
    }
}

/// Every text, as askers of each language read it.
#[test]
fn every_text_in_every_language() {
    let filling = |yes: bool| Filling {
        patterns: if yes {
            ["m0ctane", "cats"].into_iter().chain(KINDS).map(|text| text.parse().unwrap()).collect()
        } else {
            vec![Pattern::parse("m0ctane").unwrap()]
        },
        jobs: if yes { (12..22).map(JobId).collect() } else { vec![JobId(12)] },
        text: "b0b töm".to_owned(),
        count: if yes { 3 } else { 1 },
        seconds: if yes { 12_000 } else { 1 },
        rate: yes.then_some(Rate(80e6)),
        part: 0.7,
        yes,
    };
    for language in Language::ALL {
        let mut texts: Vec<String> = Vec::new();
        for filling in [filling(true), filling(false)] {
            texts.extend(answers(&filling).iter().map(|reply| reply.text(language)));
            texts.extend(notices(&filling, language));
        }
        let mut seen = BTreeSet::new();
        texts.retain(|text| seen.insert(text.clone()));
        insta::assert_snapshot!(format!("every_text_{}", language.code()), texts.join("\n---\n"));
    }
}
