//! Splits a message into tokens: words with their marks, Japanese characters, links.
//!
//! Decorated letters are folded: `ｍ０ｃ` is `m0c`. Quotes of earlier messages, signatures and
//! invisible marks are left out.

use super::vocabulary::{self, Class};
use crate::pattern::{ALPHABET, Pattern};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The most tokens that are read. Nobody asks for a key in more.
pub(super) const MAX_TOKENS: usize = 400;
/// The longest quoted or emphasised text that counts as one marked word, in characters.
const MAX_MARKED: usize = 80;

/// A word of a message, one Japanese character, or a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Token {
    /// The token as a pattern is read from it: small letters, with accents and the marks of
    /// patterns.
    pub written: String,
    /// The token as the tables have it: without accents, katakana as hiragana.
    pub word: String,
    /// The number of its clause. Commas, periods and line breaks end a clause.
    pub clause: usize,
    pub kind: TokenKind,
}

/// The kind of a [`Token`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TokenKind {
    Word,
    /// A word in quotes, in backticks or emphasised.
    Marked,
    /// One or two letters beside an apostrophe, as in `j'aime` or `don't`.
    Elision,
    /// One Japanese character.
    Japanese,
    /// The last part of a link's path; empty if the link names none.
    Link,
}

/// A message, split into tokens.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct MessageText {
    pub tokens: Vec<Token>,
    /// Whether there is a question mark.
    pub asks: bool,
    /// Whether there is an emoji or another symbol.
    pub has_symbol: bool,
    /// The message, if it is one word.
    pub only: String,
}

impl MessageText {
    /// Splits a text, in time linear in its length. Reads at most [`MAX_TOKENS`] tokens.
    pub fn read(text: &str) -> MessageText {
        let folded: Vec<String> = own_lines(text).into_iter().map(fold).collect();
        let asks = folded.iter().any(|line| line.contains('?'));
        let has_symbol = folded.iter().any(|line| line.chars().any(is_symbol));
        let only = match folded.as_slice() {
            [line] if !line.trim().contains(char::is_whitespace) => line.trim().to_owned(),
            _ => String::new(),
        };
        let mut reader = Reader::default();
        for line in &folded {
            reader.line(if folded.len() > 1 { without_list_mark(line) } else { line });
            reader.clause += 1;
        }
        MessageText { tokens: join_keywords(reader.tokens), asks, has_symbol, only }
    }
}

/// The lines that the author wrote: no quotes of earlier messages, signatures, Markdown comments or
/// code fences. If all lines are quoted, they count as the author's.
fn own_lines(text: &str) -> Vec<&str> {
    let is_quote = |line: &&str| line.trim_start().starts_with('>');
    let is_own = |line: &&str| !is_quote(line) && !line.trim().is_empty() && !line.starts_with("[//]: #");
    let has_own = text.lines().any(|line| is_own(&line));
    let signature = text.lines().position(|line| is_signature(line.trim())).filter(|&at| at > 0);
    let lines = text.lines().take(signature.or_else(|| sign_off(text)).unwrap_or(usize::MAX));
    lines.filter(|line| !has_own || is_own(line)).filter(|line| !line.trim().starts_with("```")).collect()
}

/// The line of a name under a letter, such as `Dave` after `Thanks,`.
fn sign_off(text: &str) -> Option<usize> {
    const PHRASES: &str = "thanks,thank you,cheers,regards,best,best regards,kind regards,yours,gracias,saludos,\
        un saludo,obrigado,obrigada,abraços,atenciosamente,danke,viele grüße,gruß,lg,merci,cordialement,bien à vous";
    let written: Vec<(usize, &str)> = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let [_, .., (_, before), (at, name)] = written.as_slice() else { return None };
    let phrase = before.trim().trim_end_matches([',', '!', '.']).to_lowercase();
    let is_name = name.split_whitespace().count() < 3;
    (is_name && PHRASES.split(',').any(|known| known == phrase)).then_some(*at)
}

/// A line of a list without its mark: `1. hank` is `hank`.
fn without_list_mark(line: &str) -> &str {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = rest.len() < line.len();
    rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") ")).filter(|_| is_numbered).unwrap_or(line)
}

/// Whether a line begins a signature, as mail programs add it.
fn is_signature(line: &str) -> bool {
    let line = line.to_lowercase();
    let begins = ["sent from my", "sent via", "get outlook", "enviado desde", "enviado do meu", "enviado de meu"];
    let begins = begins.into_iter().chain(["von meinem", "gesendet von", "gesendet mit", "envoyé de", "envoyé depuis"]);
    line == "--" || begins.into_iter().any(|start| line.starts_with(start)) || line.contains("から送信")
}

/// Small letters without decoration and invisible marks; `…` becomes `...`.
fn fold(line: &str) -> String {
    let folded: String = line.nfkc().filter(|&c| !is_invisible(c)).flat_map(char::to_lowercase).collect();
    folded.replace(['’', '‘', '´', '＇'], "'")
}

/// A word as the tables have it: without accents, `œ` as `oe`, katakana as hiragana.
pub(super) fn plain(word: &str) -> String {
    let mut plain = String::with_capacity(word.len());
    for c in word.nfd() {
        match c {
            'œ' => plain.push_str("oe"),
            'æ' => plain.push_str("ae"),
            'ß' => plain.push_str("ss"),
            'ø' => plain.push('o'),
            'ł' => plain.push('l'),
            // The marks of voiced kana are part of the letter.
            '\u{3099}' | '\u{309a}' => plain.push(c),
            'ァ'..='ヶ' => plain.push(char::from_u32(c as u32 - 0x60).unwrap_or(c)),
            c if is_combining_mark(c) => {}
            c => plain.push(c),
        }
    }
    plain.nfc().collect()
}

#[derive(Default)]
struct Reader {
    tokens: Vec<Token>,
    clause: usize,
}

impl Reader {
    fn push(&mut self, written: &str, kind: TokenKind) {
        if self.tokens.len() < MAX_TOKENS {
            let word = plain(written);
            self.tokens.push(Token { written: written.to_owned(), word, clause: self.clause, kind });
        }
    }

    /// Reads a folded line: first its marked words, then the rest.
    fn line(&mut self, line: &str) {
        let mut from = 0;
        let mut at = 0;
        while at < line.len() {
            let before = line[..at].chars().next_back();
            if let Some((inner, end)) = marked(&line[at..], before) {
                self.words(&line[from..at]);
                self.marked(inner);
                at += end;
                from = at;
            } else {
                at += line[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
        self.words(&line[from..]);
    }

    fn marked(&mut self, inner: &str) {
        let inner = inner.trim_matches(|c: char| ".,!".contains(c) || is_symbol(c)).trim();
        let word = strip(inner);
        let is_one = !inner.contains(|c: char| c.is_whitespace() || ends_clause(c)) && !word.is_empty();
        if is_one && inner.chars().count() <= MAX_MARKED && !is_japanese(&word) {
            let word = ellipsis(&word).map_or(word, |parts| parts.concat());
            self.push(&word, TokenKind::Marked);
        } else {
            self.words(inner);
        }
    }

    fn words(&mut self, text: &str) {
        for raw in text.split(|c: char| c.is_whitespace() || c.is_control()) {
            if let Some(path) = link(raw) {
                self.push(path, TokenKind::Link);
                continue;
            }
            // `npub1luna...paz` is one pattern; other dots end a clause.
            if let Some(parts) = ellipsis(raw.trim_matches(|c: char| "\"'()!,".contains(c))) {
                self.parts(&parts);
                continue;
            }
            for piece in raw.split_inclusive(ends_clause) {
                let ends = piece.ends_with(ends_clause);
                self.word(piece.trim_end_matches(ends_clause));
                self.clause += usize::from(ends || piece.ends_with('.') || piece.ends_with('?'));
            }
        }
    }

    /// The parts around an ellipsis: a pattern, unless one of them has Japanese letters.
    fn parts(&mut self, parts: &[String]) {
        match parts {
            [start, star, end] if star == "*" && !is_japanese(start) && !is_japanese(end) => {
                if end.is_empty() {
                    self.word(start);
                } else {
                    self.push(&format!("{}*{end}", start.trim_start_matches("npub1")), TokenKind::Word);
                }
            }
            _ => parts.iter().filter(|part| *part != "*").for_each(|part| self.word(part)),
        }
        self.clause += 1;
    }

    fn word(&mut self, word: &str) {
        for part in by_script(word) {
            if is_japanese(part) {
                let letters = part.chars().filter(|&c| is_japanese_letter(c));
                letters.for_each(|c| self.push(c.encode_utf8(&mut [0; 4]), TokenKind::Japanese));
                continue;
            }
            let part = strip(part);
            let pieces: Vec<&str> = part.split('\'').collect();
            for piece in &pieces {
                let kind =
                    if pieces.len() > 1 && piece.chars().count() <= 2 { TokenKind::Elision } else { TokenKind::Word };
                if !piece.is_empty() {
                    self.push(piece, kind);
                }
            }
        }
    }
}

/// Whether a character ends a clause: what it separates is no single pattern.
fn ends_clause(c: char) -> bool {
    matches!(c, ',' | ';' | '|' | '、' | '。' | '!' | '¡' | '¿' | '"' | '`' | '“' | '”' | '„' | '«' | '»')
}

/// The text of a pair of quotes or of an emphasis at the start of `text`, and the length of all of
/// it. `before`: the character before it.
fn marked(text: &str, before: Option<char>) -> Option<(&str, usize)> {
    if text.starts_with(|c: char| c.is_alphanumeric() || c.is_whitespace()) {
        return None;
    }
    const PAIRS: &str = "“…” „…“ „…” «…» »…« ‹…› 「…」 『…』 【…】 \"…\" ```…``` `…` **…** __…__ ~~…~~ '…'";
    PAIRS.split(' ').filter_map(|pair| pair.split_once('…')).find_map(|(open, close)| {
        let rest = text.strip_prefix(open)?;
        // A bound on the length keeps the time linear.
        let near = rest.char_indices().nth(2 * MAX_MARKED).map_or(rest, |(end, _)| &rest[..end]);
        let length = near.find(close).filter(|&length| length > 0)?;
        let inner = &rest[..length];
        let after = rest[length + close.len()..].chars().next();
        // An apostrophe is no quote.
        let is_free = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() || is_japanese_letter(c));
        let is_quote = open != "'" || (is_free(before) && is_free(after));
        (is_quote && !inner.trim().is_empty()).then_some((inner, open.len() + length + close.len()))
    })
}

/// The text around an ellipsis of two dots or more, as `[start, "*", end]`. `None` without one.
fn ellipsis(word: &str) -> Option<[String; 3]> {
    let at = word.find("..")?;
    let end = word[at..].trim_start_matches('.');
    let inner = |part: &str| strip(part.trim_matches('-'));
    Some([inner(&word[..at]), "*".to_owned(), inner(end)])
}

/// The last part of the path, if the word is a link; empty if there is none, or if it is a file.
fn link(word: &str) -> Option<&str> {
    let word = word.trim_matches(|c: char| "<>()[]\"'.,;!?".contains(c));
    let rest = word.strip_prefix("https://").or_else(|| word.strip_prefix("http://"));
    let is_bare = || word.starts_with("www.") || word.split_once('/').is_some_and(|(host, _)| is_host(host));
    let rest = rest.or_else(|| is_bare().then_some(word))?;
    let path = rest.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let last = path.split_once('/').map_or("", |(_, path)| path.rsplit('/').next().unwrap_or_default());
    Some(if last.contains('.') { "" } else { last.trim_start_matches('@') })
}

fn is_host(host: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    host.rsplit_once('.').is_some_and(|(name, top)| {
        top.len() > 1 && top.chars().all(|c| c.is_ascii_alphabetic()) && name.split('.').all(is_part)
    })
}

/// Joins `hex:`, `zeros:`, `words:` and `=` with the word that follows: a space between them
/// changes nothing.
fn join_keywords(tokens: Vec<Token>) -> Vec<Token> {
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let is_number = token.written.chars().all(|c| c.is_ascii_digit());
        match joined.last_mut() {
            Some(last) if is_keyword(&last.written) || (last.written == "=" && is_number) => {
                last.written.push_str(&token.written);
                last.word = last.written.clone();
            }
            _ => joined.push(token),
        }
    }
    joined.retain(|token| token.written != "=");
    joined
}

fn is_keyword(word: &str) -> bool {
    matches!(word, "hex:" | "zeros:" | "words:")
}

/// Splits a word where its script changes from or to Japanese, which has no spaces: `m0cをください` has
/// the prefix `m0c` in it.
fn by_script(word: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let mut before: Option<bool> = None;
    for (at, c) in word.char_indices() {
        // A mark belongs to the character before it.
        let script = if c.is_alphanumeric() || c == 'ー' { Some(is_japanese_letter(c) || c == 'ー') } else { before };
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
pub(super) fn is_japanese_letter(c: char) -> bool {
    is_kana(c) || matches!(c, '々' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Whether a character is kana, which only Japanese has.
pub(super) fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30ff}')
}

fn is_japanese(word: &str) -> bool {
    word.chars().any(is_japanese_letter)
}

/// Emoji, arrows and other pictures.
fn is_symbol(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// A word without decoration at its edges. The marks of patterns stay, also at the edges: `~alice`,
/// `[s5]at`, `=7`. So do the marks of other notations: `cafe$`.
pub(super) fn strip(word: &str) -> String {
    let mut word = word;
    // `_m0c_` is emphasis. `*m0c*` is a pattern.
    while let Some(inner) =
        word.strip_prefix('_').and_then(|word| word.strip_suffix('_')).filter(|word| !word.is_empty())
    {
        word = inner;
    }
    if word == "=" {
        return word.to_owned();
    }
    let begins =
        |c: char| c.is_alphanumeric() || matches!(c, '*' | '$' | '?' | '^' | '_' | '/' | '~' | '〜' | '=' | '[');
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

/// Zero-width characters, marks of the writing direction, variation selectors, the byte-order mark.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e007f}')
}

/// Number of bech32 characters after `nsec1`, in one piece, that count as a secret key.
const SECRET_IN_ONE: usize = 6;
/// Number of bech32 characters after `nsec1`, with gaps between them, that count as a secret key.
const SECRET_IN_PIECES: usize = 50;
/// Length of an npub.
const NPUB: usize = 63;

/// The inner part of `*steve*`.
pub(super) fn emphasised(word: &str) -> Option<&str> {
    let inner = word.strip_prefix('*')?;
    let inner = inner.strip_suffix('*').unwrap_or(inner);
    (word.ends_with('*') && inner.chars().all(char::is_alphanumeric)).then_some(inner)
}

/// Whether a token is a whole npub, another Nostr address, an invoice or a key in hex.
pub(super) fn is_foreign_thing(token: &Token) -> bool {
    let word = token.written.trim_start_matches("nostr:");
    let is_address = ["nprofile1", "note1", "nevent1", "naddr1", "lnbc", "lnurl1", "bc1q", "bc1p"];
    let is_hex = word.len() == 64 && word.chars().all(|c| c.is_ascii_hexdigit());
    (word.starts_with("npub1") && word.len() >= NPUB - 3)
        || (word.len() > 12 && is_address.iter().any(|start| word.starts_with(start)))
        || is_hex
}

/// Whether a word has letters of a script that is neither Latin nor Japanese.
pub(super) fn is_other_script(word: &str) -> bool {
    let is_other = |c: char| {
        c.is_alphabetic()
            && !matches!(c, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '々')
    };
    word.chars().any(is_other)
}

/// Splits words such as `es-tu`, if a part of them is known.
pub(super) fn split_hyphens(tokens: &[Token]) -> Vec<Token> {
    let split = |token: &Token| {
        let pieces: Vec<Token> = token
            .written
            .split('-')
            .filter(|piece| !piece.is_empty())
            .map(|piece| Token { written: piece.to_owned(), word: plain(piece), ..token.clone() })
            .collect();
        let is_known = pieces.len() > 1 && token.kind == TokenKind::Word && !vocabulary::find(&pieces).is_empty();
        if is_known { pieces } else { vec![token.clone()] }
    };
    tokens.iter().flat_map(split).collect()
}

/// Joins words that are spelt letter by letter, as in `m zero c t`, and `hex cafe` to `hex:cafe`.
pub(super) fn join_spelt(tokens: &[Token]) -> Vec<Token> {
    let found = vocabulary::find(tokens);
    let is_letter = |token: &Token| token.kind == TokenKind::Word && token.written.chars().count() == 1;
    // The letter that a token is, or the digit that it names.
    let spelt = |(at, token): (usize, &Token)| {
        let digit = found.iter().find(|found| found.class == Class::Number && found.at == [at]);
        digit
            .and_then(|found| found.digit)
            .map(String::from)
            .or_else(|| is_letter(token).then(|| token.written.clone()))
    };
    let letters: Vec<Option<String>> = tokens.iter().enumerate().map(spelt).collect();
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        let pieces: Vec<&str> = letters[at..].iter().map_while(|letter| letter.as_deref()).collect();
        let (rest, written) = (&tokens[at + pieces.len()..], &tokens[at..at + pieces.len()]);
        let has_digit = written.iter().any(|token| token.written.len() > 1 && !is_letter(token));
        let is_possible = written.iter().any(|token| !"bio1".contains(token.written.as_str()));
        let is_long =
            (has_digit && pieces.len() > 1) || pieces.len() > 3 || (pieces.len() > 2 && pieces.len() == tokens.len());
        let next = tokens.get(at + 1).map(|next| next.written.as_str()).unwrap_or_default();
        let is_number = !next.is_empty() && next.chars().all(|c| c.is_ascii_digit());
        let is_hex = next.len() > 1 && next.chars().all(|c| c.is_ascii_hexdigit());
        let (text, kind, count) = match token.word.as_str() {
            _ if is_letter(token) && is_possible && is_long => {
                // "m zero c tane": the rest of a dictated word.
                let is_rest = |token: &Token| {
                    token.kind == TokenKind::Word && token.written.len() < 8 && Pattern::parse(&token.written).is_ok()
                };
                let last =
                    Some(rest).filter(|rest| has_digit && rest.len() == 1 && is_rest(&rest[0])).unwrap_or_default();
                let text = pieces.concat() + last.first().map_or("", |token| &token.written);
                (text, TokenKind::Marked, pieces.len() + last.len())
            }
            "hex" if is_hex => (format!("hex:{next}"), TokenKind::Word, 2),
            kind @ ("words" | "zeros") if is_number => (format!("{kind}:{next}"), TokenKind::Word, 2),
            _ => {
                joined.push(token.clone());
                at += 1;
                continue;
            }
        };
        joined.push(Token { word: text.clone(), written: text, clause: token.clause, kind });
        at += count;
    }
    joined
}

/// Hiragana in Latin letters, as in Hepburn's system without long vowels' marks.
pub(super) fn romaji(kana: &str) -> Option<String> {
    const ROWS: &str = "あa いi うu えe おo かka きki くku けke こko がga ぎgi ぐgu げge ごgo さsa しshi すsu せse そso ざza じji ずzu ぜze ぞzo \
        たta ちchi つtsu てte とto だda ぢji づzu でde どdo なna にni ぬnu ねne のno はha ひhi ふfu へhe ほho ばba びbi ぶbu べbe ぼbo \
        ぱpa ぴpi ぷpu ぺpe ぽpo まma みmi むmu めme もmo やya ゆyu よyo らra りri るru れre ろro わwa をo んn ゔvu ぁa ぃi ぅu ぇe ぉo ー";
    let of = |c: char| ROWS.split_whitespace().find_map(|row| row.strip_prefix(c));
    let mut latin = String::new();
    let mut is_doubled = false;
    for c in kana.chars() {
        match c {
            'っ' => is_doubled = true,
            'ゃ' | 'ゅ' | 'ょ' => {
                latin.pop();
                let is_palatal = latin.ends_with("sh") || latin.ends_with("ch") || latin.ends_with('j');
                let vowel = match c {
                    'ゃ' => "ya",
                    'ゅ' => "yu",
                    _ => "yo",
                };
                latin.push_str(if is_palatal { &vowel[1..] } else { vowel });
            }
            _ => {
                let syllable = of(c)?;
                if std::mem::take(&mut is_doubled) {
                    latin.extend(syllable.chars().next());
                }
                latin.push_str(syllable);
            }
        }
    }
    Some(latin)
}

/// Whether a text has a secret key in it, or a large part of one: `nsec1…`, `ncryptsec1…`,
/// `nhalf1…`.
pub(super) fn has_secret_key(text: &str) -> bool {
    let folded: String = text.nfkc().filter(|&c| !is_invisible(c)).flat_map(char::to_lowercase).collect();
    ["nsec1", "ncryptsec1", "nhalf1"].into_iter().any(|kind| {
        folded.split(kind).skip(1).any(|rest| {
            let is_bech32 = |c: &char| ALPHABET.contains(&(*c as u8)) && c.is_ascii();
            let in_one = rest.chars().take_while(is_bech32).count();
            let gaps = |c: &char| !c.is_whitespace() && !c.is_control();
            let in_pieces = rest.chars().filter(gaps).take(SECRET_IN_PIECES).take_while(is_bech32).count();
            in_one >= SECRET_IN_ONE || in_pieces >= SECRET_IN_PIECES
        })
    })
}
