//! Words as people spell them: letter by letter, in kana, in other scripts; and things that are no
//! words, such as keys and invoices.

use super::text::{Kind, Token, is_invisible, plain};
use super::vocabulary::{self, Class};
use crate::pattern::{ALPHABET, Pattern};
use unicode_normalization::UnicodeNormalization;

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
        let is_known = pieces.len() > 1 && token.kind == Kind::Word && !vocabulary::find(&pieces).is_empty();
        if is_known { pieces } else { vec![token.clone()] }
    };
    tokens.iter().flat_map(split).collect()
}

/// Joins words that are spelt letter by letter, as in `m zero c t`, and `hex cafe` to `hex:cafe`.
pub(super) fn join_spelt(tokens: &[Token]) -> Vec<Token> {
    let digits: Vec<Option<char>> = {
        let found = vocabulary::find(tokens);
        let digit = |at: usize| {
            found.iter().find(|found| found.class == Class::Number && found.at == [at]).and_then(|found| found.digit)
        };
        (0..tokens.len()).map(digit).collect()
    };
    let is_letter = |at: usize| tokens[at].kind == Kind::Word && tokens[at].written.chars().count() == 1;
    let is_piece = |at: usize| is_letter(at) || digits[at].is_some();
    let mut joined: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while at < tokens.len() {
        let mut end = (at..tokens.len()).take_while(|&at| is_piece(at)).count() + at;
        let pieces = end - at;
        let has_digit = (at..end).any(|at| digits[at].is_some() && tokens[at].written.len() > 1);
        let is_possible = (at..end).any(|at| !"bio1".contains(tokens[at].written.as_str()));
        let is_spelt = is_letter(at)
            && is_possible
            && ((has_digit && pieces > 1) || pieces > 3 || (pieces > 2 && pieces == tokens.len()));
        if is_spelt {
            // "m zero c tane": the rest of a dictated word.
            let is_rest = |token: &Token| {
                token.kind == Kind::Word && token.written.len() < 8 && Pattern::parse(&token.written).is_ok()
            };
            let has_rest = has_digit && end + 1 == tokens.len() && is_rest(&tokens[end]);
            end += usize::from(has_rest);
            let text: String =
                (at..end).map(|at| digits[at].map_or(tokens[at].written.clone(), String::from)).collect();
            joined.push(Token { word: text.clone(), written: text, clause: tokens[at].clause, kind: Kind::Marked });
            at = end;
            continue;
        }
        let next = tokens.get(at + 1).map(|next| next.written.as_str()).unwrap_or_default();
        let is_number = !next.is_empty() && next.chars().all(|c| c.is_ascii_digit());
        let is_hex = next.len() > 1 && next.chars().all(|c| c.is_ascii_hexdigit());
        let is_kind = match tokens[at].word.as_str() {
            "hex" => is_hex,
            "words" | "zeros" => is_number,
            _ => false,
        };
        if is_kind {
            let text = format!("{}:{next}", tokens[at].word);
            joined.push(Token { word: text.clone(), written: text, clause: tokens[at].clause, kind: Kind::Word });
            at += 2;
        } else {
            joined.push(tokens[at].clone());
            at += 1;
        }
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
