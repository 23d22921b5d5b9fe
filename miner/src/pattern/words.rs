//! Lists of words: the built-in one, and those in files. A letter that cannot occur in an npub
//! (`b`, `i`, `o`) stands for its look-alikes; all others stand for themselves.

use super::characters::{CharacterSet, look_alikes, value_of};
use super::pattern::{KeyShape, Pattern};
use thiserror::Error;

/// The built-in words, separated by spaces and line ends. Lines that begin with `#` are comments.
const BUILT_IN: [&str; 2] = [include_str!("words/english.txt"), include_str!("words/japanese.txt")];

/// Letters of the shortest and of the longest word that `words` may ask for.
pub const SHORTEST_WORD: usize = 4;
pub const LONGEST_WORD: usize = 9;

/// The most words in a file.
const MAX_WORDS: usize = 100_000;

/// Reason why a list of words cannot be searched for, with the line.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{0}")]
pub struct WordListError(String);

fn built_in() -> impl Iterator<Item = &'static str> {
    let lines = BUILT_IN.into_iter().flat_map(str::lines);
    lines.filter(|line| !line.starts_with('#')).flat_map(str::split_whitespace)
}

/// The shapes of the built-in words of at least `letters` letters, each once.
pub fn shapes_of_built_in(letters: usize) -> Vec<KeyShape> {
    let mut words: Vec<&str> = built_in().filter(|word| word.len() >= letters).collect();
    words.sort_unstable();
    words.dedup();
    let sets = |word: &str| word.chars().map(set_of).collect();
    words.into_iter().map(|word| KeyShape::starting(sets(word))).collect()
}

/// The built-in word that `spelling` stands for, such as `inner` for `jnner`.
pub fn word_spelt(spelling: &str) -> Option<&'static str> {
    let spells =
        |letter: char, word: char| value_of(word).map_or(look_alikes(word).contains(letter), |_| letter == word);
    let is_meant = |word: &&str| {
        word.len() == spelling.len() && spelling.chars().zip(word.chars()).all(|(letter, word)| spells(letter, word))
    };
    built_in().find(is_meant)
}

fn set_of(letter: char) -> CharacterSet {
    CharacterSet::from_char(letter).unwrap_or_else(|| {
        let alike = look_alikes(letter).chars().filter_map(CharacterSet::from_char);
        alike.fold(CharacterSet::NONE, CharacterSet::union)
    })
}

/// The patterns of a text with a word on each line, in upper or lower case, at most 100,000. Empty
/// lines and those that begin with `#` are skipped. A word may also be a pattern of any other kind.
///
/// Errors: [`WordListError`].
pub fn patterns_of_words(text: &str) -> Result<Vec<Pattern>, WordListError> {
    let mut patterns = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let word = line.trim().to_lowercase();
        if word.is_empty() || word.starts_with('#') {
            continue;
        }
        if patterns.len() == MAX_WORDS {
            return Err(WordListError(format!("a list has at most {MAX_WORDS} words; split it")));
        }
        let written = if word.chars().all(char::is_alphanumeric) { spelled(&word) } else { word.clone() };
        let pattern = written.parse().map_err(|error| WordListError(format!("line {}, “{word}”: {error}", at + 1)))?;
        patterns.push(pattern);
    }
    if patterns.is_empty() {
        return Err(WordListError("there is no word in it; write one on each line".to_owned()));
    }
    Ok(patterns)
}

/// A word as a pattern: `sush[jl]` for `sushi`. Letters without a look-alike stay.
fn spelled(word: &str) -> String {
    let spell = |letter: char| match (value_of(letter), set_of(letter)) {
        (None, set) if set != CharacterSet::NONE => set.to_string(),
        _ => letter.to_string(),
    };
    word.chars().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spelling_stands_for_its_word() {
        assert_eq!(word_spelt("jnner"), Some("inner"));
        assert_eq!((word_spelt("jnne"), word_spelt("xxxxx")), (None, None));
    }

    #[test]
    fn every_built_in_word_can_occur_and_has_the_letters_that_are_promised() {
        let words: Vec<&str> = built_in().collect();
        assert!(words.len() > 1000, "{}", words.len());
        for word in &words {
            assert!(word.chars().all(|c| set_of(c) != CharacterSet::NONE), "{word}");
            assert!((SHORTEST_WORD..=LONGEST_WORD).contains(&word.len()), "{word}");
        }
        assert!(!shapes_of_built_in(LONGEST_WORD).is_empty());
    }

    #[test]
    fn a_list_takes_words_with_letters_that_cannot_occur_as_look_alikes() {
        let patterns = patterns_of_words("# mine\n\nSushi\nsakura\nn?str\n").unwrap();
        assert_eq!(patterns.iter().map(Pattern::as_str).collect::<Vec<_>>(), ["sush[jl]", "sakura", "n?str"]);
        let said = |text: &str| patterns_of_words(text).unwrap_err().to_string();
        assert_eq!(said("\n#x\n"), "there is no word in it; write one on each line");
        assert!(said("cat\nsmörgas").starts_with("line 2, “smörgas”: “ö” cannot occur"));
        assert!(said(&"cat\n".repeat(MAX_WORDS + 1)).contains("at most 100000 words"));
    }
}
