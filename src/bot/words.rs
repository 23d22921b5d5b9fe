//! Splits text into words: folds decorated letters, and removes decoration and quotes of earlier
//! messages.

use unicode_normalization::UnicodeNormalization;

/// Words of a text in lower case, without quoted lines, punctuation around words, emoji and
/// invisible marks.
///
/// Full-width and decorated letters are folded (NFKC): `ｍ０ｃ` is `m0c`. Marks inside a word stay, so
/// that `m0?tane` is not read as two prefixes; so do marks at its edges that patterns have
/// elsewhere: `*cafe`, `cafe$`.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let is_quote = |line: &&str| line.trim_start().starts_with('>');
    // If a text has only quoted lines, they are what its author wants to say.
    let is_reply = text.lines().any(|line| !is_quote(&line) && !line.trim().is_empty());
    let lines = text.lines().filter(move |line| !(is_reply && is_quote(line)));
    lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || c.is_control() || separates(c))).flat_map(|word| {
        let folded: String = word.nfkc().filter(|&c| !is_invisible(c)).flat_map(char::to_lowercase).collect();
        // Folding may have made spaces and commas.
        let parts = folded.split(|c: char| c.is_whitespace() || c.is_control() || separates(c));
        let parts = parts.flat_map(by_script).map(strip);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>()
    })
}

/// Parts a word where its script changes from or to Japanese, which has no spaces: `m0cをください` has
/// the prefix `m0c` in it.
fn by_script(word: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let mut before: Option<bool> = None;
    for (at, c) in word.char_indices() {
        // Marks belong to what they follow.
        let script = if c.is_alphanumeric() { Some(is_japanese_letter(c)) } else { before };
        if before.is_some() && script != before {
            parts.push(&word[start..at]);
            start = at;
        }
        before = script;
    }
    parts.push(&word[start..]);
    parts
}

/// Hiragana, katakana, and the ideographs that Japanese and Chinese share.
fn is_japanese_letter(c: char) -> bool {
    is_kana(c) || matches!(c, '々' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}')
}

/// Whether a word is in Japanese script. No prefix is.
pub(super) fn is_japanese(word: &str) -> bool {
    word.chars().any(is_japanese_letter)
}

/// Whether a word has kana, which only Japanese has.
pub(super) fn has_kana(word: &str) -> bool {
    word.chars().any(is_kana)
}

/// Characters that always separate words.
fn separates(c: char) -> bool {
    matches!(c, ',' | ';' | '|' | '"' | '`' | '…' | '、' | '。' | '!' | '“' | '”' | '„' | '«' | '»')
}

/// A word without decoration at its edges.
fn strip(word: &str) -> String {
    let mut word = word;
    // `**m0c**`, `_m0c_`, `~~m0c~~` are emphasis. `*cafe` is not, and `*cafe*` may be either.
    loop {
        let inner = ["**", "_", "~"].iter().find_map(|mark| word.strip_prefix(mark)?.strip_suffix(mark));
        match inner {
            Some(inner) if !inner.is_empty() => word = inner,
            _ => break,
        }
    }
    let is_edge = |c: char| !c.is_alphanumeric() && !matches!(c, '*' | '$' | '?' | '^' | '_' | '/');
    let word = word.trim_matches(is_edge);
    // Anything may follow the start of an npub, so `cafe*` means the same as `cafe`.
    let word = word.trim_end_matches(['*', '?', '_', '/', ':']).trim_start_matches(['^', '?', '/']);
    let word = word.trim_matches(is_edge);
    if word.chars().any(char::is_alphanumeric) { word.to_owned() } else { String::new() }
}

/// Whether a word has a character that patterns use elsewhere: wildcards, classes, anchors.
pub(super) fn has_wildcard(word: &str) -> bool {
    word.contains(['*', '?', '$', '^', '_', '.', '[', ']', '{', '}', '(', ')', '+', '~', '<', '>', '\\'])
}

/// Zero-width characters, marks of the writing direction, variation selectors, the byte-order mark.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoration_goes_and_wildcards_stay() {
        let cases: [(&str, &[&str]); 18] = [
            ("ｍ０ｃ", &["m0c"]),
            ("#m0c!", &["m0c"]),
            ("🚀 m0c🚀", &["m0c"]),
            ("**m0c** _m0c_", &["m0c", "m0c"]),
            ("\"m0ctane\".", &["m0ctane"]),
            ("[cat] (dad)", &["cat", "dad"]),
            ("*cafe", &["*cafe"]),
            ("*cafe*", &["*cafe"]),
            ("*cafe*", &["*cafe"]),
            ("cafe$", &["cafe$"]),
            ("m0?tane", &["m0?tane"]),
            ("cafe* cafe?", &["cafe", "cafe"]),
            ("^cafe", &["cafe"]),
            ("> npub1dad\nm0c", &["m0c"]),
            ("> m0c", &["m0c"]),
            ("m0c、cat　dad", &["m0c", "cat", "dad"]),
            ("npub1m0cをください。", &["npub1m0c", "をください"]),
            ("ｷｬﾝｾﾙ#12", &["キャンセル", "12"]),
        ];
        for (text, expected) in cases {
            assert_eq!(words(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }
}
