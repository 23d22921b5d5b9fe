//! MessageReading: texts that people write, and their meanings.

use super::*;

#[test]
fn a_request_is_understood_however_it_is_written() {
    let cases =
        ["m0ctane", "M0CTANE", " npub1m0ctane\n", "nostr:npub1m0ctane", "/m0ctane", "\"m0ctane\".", "find m0ctane"];
    for text in cases.into_iter().chain(["\u{200b}m0ct\u{200d}ane\u{202c}", "m0ctane m0ctane", "prefix: m0ctane"]) {
        assert_eq!(requested(text), ["m0ctane"], "{text:?}");
    }
    assert_eq!(requested("cat, dad\nham"), ["cat", "dad", "ham"]);
    assert_eq!(requested("find status"), ["status"]);
    assert_eq!(requested("get"), ["get"], "alone a filler is a prefix like any other");
    for text in [
        "ｍ０ｃ",
        "Ｎｐｕｂ１ｍ０ｃ",
        "#m0c",
        "@npub1m0c",
        "m0c 🚀",
        "🚀m0c",
        "**m0c**",
        "> Send only the prefix\n> m0ctane\nm0c",
        "I would like npub1m0c please",
        "hi! can I have a key which starts with m0c?",
        "^m0c",
        "m0c*",
    ] {
        assert_eq!(requested(text), ["m0c"], "{text:?}");
    }
    assert_eq!(requested("npub1cat dad"), ["cat", "dad"]);
}

#[test]
fn a_word_in_another_notation_is_never_searched() {
    for (text, nearest) in [("cafe$", "*cafe"), ("$cafe", "cafe"), ("npub1m0c(a|e)t", "m0c")] {
        let reply = refused(text);
        assert!(reply.topic == "unsupported" && reply.text.ends_with(&format!("find {nearest}")), "{text}: {reply:?}");
    }
    for text in ["gm", "thanks", "thank you", "test", "yes", "ok", "gm 🌞"] {
        let reply = refused(text);
        assert!(["hello", "thanks-answer", "chat-answer"].contains(&reply.topic), "{text:?}: {reply:?}");
    }
    assert_eq!(requested("find gm"), ["gm"]);
}

#[test]
fn nothing_of_a_secret_key_is_repeated() {
    let key = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
    let spaced: String = key.chars().map(|c| format!("{c} ")).collect::<String>().replacen("n s e c 1", "nsec1", 1);
    for text in [
        key.to_owned(),
        key.to_uppercase(),
        format!("my key is {key}, is it good?"),
        format!("find {key}"),
        format!("split {key} cat"),
        key[..24].to_owned(),
        spaced,
        format!("nhalf1{}", &key[5..]),
    ] {
        assert_eq!(refused(&text).topic, "secret-key", "{text:?}");
    }
    let answer = say(key, &nobody());
    assert!(!key.as_bytes().windows(6).any(|part| answer.as_bytes().windows(6).any(|said| said == part)), "{answer}");
}
