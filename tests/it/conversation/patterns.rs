//! Patterns of every kind, asked for through a relay.

use crate::support::asker::Asker;
use crate::support::bot::{Met, met};
use crate::support::harness::{Test, test};
use crate::support::wait_for;
use npubbot::pattern::ALPHABET;

pub const TESTS: &[Test] =
    &[test!(a_key_of_every_kind_is_delivered_with_what_was_met), test!(a_pattern_of_a_whole_key_in_hex_has_an_answer)];

/// Whether a key fits a kind of pattern. Arguments: the characters after `npub1`, and the key in
/// hex. The comparisons are plain ones of strings, without the grammar.
type Fits = fn(&str, &str) -> bool;

const KINDS: [(&str, Fits); 17] = [
    ("c4t", |text, _| text.starts_with("c4t")),
    ("~cat", |text, _| text.starts_with('c') && at(text, 1, "a4") && at(text, 2, "t7")),
    ("c?t4", |text, _| text.starts_with('c') && at(text, 2, "t") && at(text, 3, "4")),
    ("[cd]a[ty]", |text, _| at(text, 0, "cd") && at(text, 1, "a") && at(text, 2, "ty")),
    ("=4", |text, _| text[..4].chars().all(|c| text.starts_with(c))),
    ("hex:c0d", |_, hex| hex.starts_with("c0d")),
    ("zeros:13", |_, hex| hex.starts_with("000") && u8::from_str_radix(&hex[3..4], 16).unwrap() < 8),
    ("*ca7*@5", |text, _| text[..5].contains("ca7")),
    ("??cat", |text, _| text[2..].starts_with("cat")),
    ("cat*", |text, _| text.starts_with("cat")),
    ("*c4t", |text, _| text.ends_with("c4t")),
    ("ca*7e", |text, _| text.starts_with("ca") && text.ends_with("7e")),
    ("c*a*7e", |text, _| text.starts_with('c') && text[1..56].contains('a') && text.ends_with("7e")),
    ("*c4t7*", |text, _| text.contains("c4t7")),
    ("=5*", |text, _| ALPHABET.iter().any(|&c| text.contains(&char::from(c).to_string().repeat(5)))),
    ("hex:*c0d", |_, hex| hex.ends_with("c0d")),
    ("words", |text, _| begins_with_a_word(text, 4)),
];

/// The lists of words. In a word, `b`, `i` and `o` stand for characters that look like them.
const WORDS: [&str; 2] = [
    include_str!("../../../miner/src/pattern/words/english.txt"),
    include_str!("../../../miner/src/pattern/words/japanese.txt"),
];

fn begins_with_a_word(text: &str, letters: usize) -> bool {
    let lines = WORDS.iter().flat_map(|words| words.lines()).filter(|line| !line.starts_with('#'));
    let mut words = lines.flat_map(str::split_whitespace).filter(|word| word.len() >= letters);
    let is_like = |(letter, character): (char, char)| match letter {
        'b' => "86".contains(character),
        'i' => "lj".contains(character),
        'o' => character == '0',
        letter => letter == character,
    };
    words.any(|word| word.chars().zip(text.chars()).all(is_like))
}

fn at(text: &str, place: usize, of: &str) -> bool {
    of.contains(&text[place..=place])
}

fn assert_fits(npub: &str, fits: Fits, kind: &str) {
    let (_, bytes) = bech32::decode(npub).unwrap();
    assert!(fits(&npub["npub1".len()..], &hex::encode(&bytes)), "{npub} for {kind}");
}

async fn a_key_of_every_kind_is_delivered_with_what_was_met() {
    let Met { relay, home: _home, bot: running, mut asker } = met("[limits]\njobs_per_day = 40\n").await;
    // Two other askers search without a target meanwhile.
    let mut without_target = Vec::new();
    for text in ["surprise", "best words 2s"] {
        let mut asker = Asker::connect(&relay.url(), running.public_key).await;
        let acceptance = asker.ask(text).await;
        assert!(acceptance.contains("Job #"), "{text}: {acceptance}");
        without_target.push(asker);
    }
    for (kind, fits) in KINDS {
        let acceptance = asker.ask(kind).await;
        assert!(acceptance.contains("Job #"), "{kind}: {acceptance}");
        let result = asker.next_result().await;
        let key = crate::support::asker::DeliveredKey::read(&result).unwrap();
        assert_fits(&key.npub, fits, kind);
        let told = |before: &str| result.split(before).nth(1).and_then(|rest| rest.split(',').next());
        let met = told("This npub has ").or_else(|| told("This npub starts with ").filter(|_| kind == "words"));
        if let Some(met) = met {
            assert!(met.split('…').all(|part| key.npub.contains(part)), "{kind}: {result}");
        }
        let has_spellings = kind.contains(['~', '?', '[', '=']) || kind == "words";
        assert!(met.is_some() || !has_spellings, "{kind}: {result}");
    }
    // Several kinds in one message: the first one found ends the job.
    let acceptance = asker.ask("~dad, d?d hex:dad").await;
    for part in ["~dad", "npub1d?d", "hex:dad", "looks like", "any character"] {
        assert!(acceptance.contains(part), "{part}: {acceptance}");
    }
    let npub = asker.next_key().await.npub;
    let any: Fits = |text, hex| text.starts_with('d') && at(text, 2, "d") || hex.starts_with("dad");
    assert_fits(&npub, any, "any of them");
    // The job is over: only the searches without a target are left.
    wait_for("the job leaves the pool", || running.service.totals().unwrap().accepted <= 2).await;
    for mut asker in without_target {
        let result = asker.next_result().await;
        let npub = crate::support::asker::DeliveredKey::read(&result).unwrap().npub;
        assert_fits(&npub, |text, _| begins_with_a_word(text, 4), &result);
        assert!(result.contains("this is the rarest key I saw"), "{result}");
    }
}

/// The vault seals no text with 64 hexadecimal digits, so no answer may repeat them.
async fn a_pattern_of_a_whole_key_in_hex_has_an_answer() {
    let Met { relay: _relay, home: _home, bot: running, mut asker } = met("").await;
    let digits = running.public_key.to_hex();
    for text in ["hex:", "explain hex:", "explain hex:*", "hex:*", "explain ~", "split ", ""] {
        let answer = asker.ask(&format!("{text}{digits}")).await;
        assert!(!answer.contains("went wrong"), "{text}: {answer}");
    }
}
