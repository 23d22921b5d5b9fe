//! Splits text into words: folds decorated letters, and removes decoration and quotes of earlier
//! messages.

use unicode_normalization::UnicodeNormalization;

/// Words of a text in lower case, without quoted lines, punctuation around words, emoji and
/// invisible marks.
///
/// Full-width and decorated letters are folded (NFKC): `ｍ０ｃ` is `m0c`. The marks of patterns stay,
/// also at the edges: `~alice`, `[s5]at`, `=7`. So do the marks of other notations: `cafe$`.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    joined(parts(text))
}

/// Joins `hex:`, `zeros:`, `words:` and `=` with the word that follows: a space between them
/// changes nothing.
fn joined(words: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut words = words.peekable();
    std::iter::from_fn(move || {
        loop {
            let word = words.next()?;
            if is_keyword(&word) {
                return Some(word + &words.next().unwrap_or_default());
            }
            if word != "=" {
                return Some(word);
            }
            let is_number = |next: &String| next.chars().all(|c| c.is_ascii_digit());
            if let Some(number) = words.next_if(is_number) {
                return Some(word + &number);
            }
        }
    })
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "hex:" | "zeros:" | "words:")
}

fn parts(text: &str) -> impl Iterator<Item = String> {
    let is_quote = |line: &&str| line.trim_start().starts_with('>');
    // If a text has only quoted lines, they count as its author's own words.
    let is_reply = text.lines().any(|line| !is_quote(&line) && !line.trim().is_empty());
    let lines = text.lines().filter(move |line| !(is_reply && is_quote(line)));
    lines.flat_map(|line| line.split(|c: char| c.is_whitespace() || c.is_control() || separates(c))).flat_map(|word| {
        let folded: String = word.nfkc().filter(|&c| !is_invisible(c)).flat_map(char::to_lowercase).collect();
        // Japanese keyboards have this dash where others have the tilde.
        let folded = folded.replace('〜', "~");
        // Folding may have made spaces and commas.
        let parts = folded.split(|c: char| c.is_whitespace() || c.is_control() || separates(c));
        let parts = parts.flat_map(by_script).map(strip);
        parts.filter(|part| !part.is_empty()).collect::<Vec<_>>()
    })
}

/// Splits a word where its script changes from or to Japanese, which has no spaces: `m0cをください` has
/// the prefix `m0c` in it.
fn by_script(word: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let mut before: Option<bool> = None;
    for (at, c) in word.char_indices() {
        // A mark belongs to the character before it.
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
    // `**m0c**`, `_m0c_`, `~~m0c~~` are emphasis. `*m0c*` is a pattern.
    loop {
        let inner = ["**", "_", "~~"].iter().find_map(|mark| word.strip_prefix(mark)?.strip_suffix(mark));
        match inner {
            Some(inner) if !inner.is_empty() => word = inner,
            _ => break,
        }
    }
    if word == "=" {
        return word.to_owned();
    }
    let begins = |c: char| c.is_alphanumeric() || matches!(c, '*' | '$' | '?' | '^' | '_' | '/' | '~' | '=' | '[');
    let ends = |c: char| c.is_alphanumeric() || matches!(c, '*' | '$' | '?' | '^' | '_' | '/' | ']' | '@' | ':');
    let trimmed = |word| str::trim_end_matches(str::trim_start_matches(word, |c| !begins(c)), |c| !ends(c));
    let word = trimmed(word);
    if is_keyword(word) {
        return word.to_owned();
    }
    // Anything may follow the start of an npub, so `cafe?` means the same as `cafe`. After `*` a
    // pattern may fix the end, so there a final `?` stays.
    let word = if word.contains('*') { word } else { word.trim_end_matches('?') };
    let word = word.trim_end_matches(['_', '/', ':']).trim_start_matches(['^', '/']);
    let word = match word.strip_suffix('*') {
        Some(plain) if plain.chars().all(char::is_alphanumeric) => plain,
        _ => word,
    };
    let word = trimmed(word);
    if word.chars().any(char::is_alphanumeric) { word.to_owned() } else { String::new() }
}

/// Whether a word has a mark of our patterns: `?`, `[`, `*`, `~`, `=`, `:`, `@`.
pub(super) fn has_pattern_mark(word: &str) -> bool {
    word.contains(['?', '[', '*', '~', '=', ':', '@'])
}

/// Whether a word has a mark of another notation, such as an anchor or a group of a regular
/// expression.
pub(super) fn has_foreign_wildcard(word: &str) -> bool {
    word.contains(['$', '^', '_', '.', '{', '}', '(', ')', '+', '<', '>', '\\'])
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
        let cases: [(&str, &[&str]); 37] = [
            ("ｍ０ｃ", &["m0c"]),
            ("#m0c!", &["m0c"]),
            ("🚀 m0c🚀", &["m0c"]),
            ("**m0c** _m0c_", &["m0c", "m0c"]),
            ("\"m0ctane\".", &["m0ctane"]),
            ("(cat) {dad}", &["cat", "dad"]),
            ("*cafe", &["*cafe"]),
            ("*cafe*", &["*cafe*"]),
            ("*cafe*@12, =7* '~alice'", &["*cafe*@12", "=7*", "~alice"]),
            ("*cafe?", &["*cafe?"]),
            ("[s5]at0sh[l7].", &["[s5]at0sh[l7]"]),
            ("(~alice)", &["~alice"]),
            ("~~m0c~~ ~m0c~", &["m0c", "~m0c"]),
            ("?m0ct", &["?m0ct"]),
            ("¿m0ct?", &["m0ct"]),
            ("=7", &["=7"]),
            ("= 7 = x", &["=7", "x"]),
            ("hex: c0de", &["hex:c0de"]),
            ("Zeros：２０", &["zeros:20"]),
            ("words: 8!", &["words:8"]),
            ("words:", &["words:"]),
            ("prefix: m0c", &["prefix", "m0c"]),
            ("〜cat ～cat", &["~cat", "~cat"]),
            ("［s5］at＊cafe", &["[s5]at*cafe"]),
            ("~cat、m0?tane", &["~cat", "m0?tane"]),
            ("~catをください", &["~cat", "をください"]),
            ("@npub1m0c", &["npub1m0c"]),
            ("*m0c*@", &["*m0c*@"]),
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
