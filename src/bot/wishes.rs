//! The patterns in a message that may be meant, and whether they are searched for or shown.

use super::message::Message;
use super::request::{Intent, OfferReason, RequestedKeys};
use super::text::{Token, TokenKind, emphasised, plain};
use super::vocabulary::{Class, PhraseMatch};
use crate::pattern::{Best, Effort, Pattern, PatternError};
use std::cmp::Reverse;
use std::collections::HashSet;

/// How much easier than all others one pattern of a request may be.
const UNEVEN: f64 = 1000.0;

/// A word of a message that may be meant as a pattern.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub at: usize,
    pub wish: Wish,
    /// Whether it is marked: in quotes, with `npub1`, or after `starts with`.
    pub is_strong: bool,
    /// Whether it follows `my name is`.
    pub is_name: bool,
}

#[derive(Default, Debug)]
pub(super) struct Wishes {
    pub all: Vec<Candidate>,
    /// Words that are neither known nor patterns.
    pub unread: usize,
    pub links: usize,
    pub of_links: Vec<Pattern>,
}

impl Message<'_> {
    /// The patterns that may be meant, with how sure that is.
    pub fn wishes(&self, effort: &mut Effort) -> Wishes {
        let mut wishes = Wishes::default();
        let begin_after = self.places_after(Class::Begin);
        let name_after = self.places_after(Class::Name);
        let has_around = self.known.iter().any(|known| *known);
        for (at, token) in self.tokens.iter().enumerate() {
            if token.kind == TokenKind::Link {
                wishes.links += 1;
                let named = Some(token).filter(|token| !token.written.is_empty());
                wishes.of_links.extend(named.and_then(|token| wish(token, effort)).map(|wish| wish.pattern));
            }
            if !matches!(token.kind, TokenKind::Word | TokenKind::Marked) {
                continue;
            }
            let is_npub = token.written.trim_start_matches("nostr:").starts_with("npub1") && token.written.len() > 5;
            let has_mark = token.written.contains(['?', '[', '*', '~', '=', ':']);
            let is_number = token.written.chars().all(|c| c.is_ascii_digit());
            let is_too_short = token.written.len() < 2 || (token.written.len() < 3 && is_number);
            let is_strong = token.kind == TokenKind::Marked || is_npub || (has_mark && !self.known[at]);
            let is_next = || self.of(Class::Begin).any(|found| found.last() + 1 == at);
            let is_placed =
                begin_after.contains(&at) && (!self.known[at] || (at + 1 == self.tokens.len() && is_next()));
            if self.known[at] && !is_strong && !is_placed {
                continue;
            }
            if is_too_short
                && has_around
                && !is_strong
                && !is_placed
                && !self.has(Class::End)
                && !self.has(Class::AtEnd)
            {
                continue;
            }
            let Some(mut wish) = wish(token, effort) else {
                wishes.unread += 1;
                continue;
            };
            // In a sentence `*steve*` is emphasis.
            if let Some(inner) = emphasised(&token.written).filter(|_| has_around)
                && let Ok(pattern) = Pattern::parse(inner)
            {
                wish.pattern = pattern;
            }
            wishes.all.push(Candidate {
                at,
                is_strong: is_strong || is_placed,
                is_name: name_after.contains(&at),
                wish,
            });
        }
        wishes
    }

    /// The places right behind the phrases of a class, past articles and other fillers.
    pub fn places_after(&self, class: Class) -> Vec<usize> {
        let next = |found: &PhraseMatch| {
            let mut at = found.last() + 1;
            let clause = self.tokens[found.last()].clause;
            while at + 1 < self.tokens.len() && self.known[at] && self.tokens[at + 1].clause == clause {
                at += 1;
            }
            at
        };
        self.of(class).map(next).collect()
    }

    /// Chooses what is meant: a command or a topic, or the wishes.
    pub fn choose(&self, mut wishes: Wishes) -> Intent {
        let any_strong = wishes.all.iter().any(|candidate| candidate.is_strong);
        if any_strong {
            let all = wishes.all.clone();
            wishes.all.retain(|candidate| candidate.is_strong || self.is_beside_strong(candidate, &all));
        } else if let Some(named) = wishes.all.iter().position(|candidate| candidate.is_name) {
            wishes.all.drain(..named);
        }
        if let Some(intent) = self.command(&wishes, any_strong) {
            return intent;
        }
        if wishes.all.is_empty() {
            return self.without_wish(&wishes);
        }
        self.wanted(wishes, any_strong)
    }

    /// Whether a word is listed with a strong one: `npub1cat dad`, `"hank" or gull`.
    pub fn is_beside_strong(&self, candidate: &Candidate, all: &[Candidate]) -> bool {
        if self.known.iter().all(|known| !*known) {
            return true;
        }
        let is_near = |other: &Candidate| {
            let (low, high) = (candidate.at.min(other.at), candidate.at.max(other.at));
            other.is_strong
                && (low + 1..high)
                    .all(|at| self.is_of(Class::And, at) || self.is_of(Class::End, at) || self.is_of(Class::AtEnd, at))
        };
        let has_end = self.has(Class::End) || self.has(Class::AtEnd) || self.has(Class::AtBegin);
        has_end || all.iter().any(is_near)
    }

    /// Decides between a search and an offer of the wishes.
    pub fn wanted(&self, wishes: Wishes, any_strong: bool) -> Intent {
        let mut candidates = wishes.all;
        let ends = self.ends(&mut candidates);
        let has_known =
            (0..self.tokens.len()).any(|at| self.known[at] && !candidates.iter().any(|candidate| candidate.at == at));
        // The same word again, as in "my dog is rex, can you do rex?".
        let mut seen: HashSet<Pattern> = HashSet::new();
        candidates.retain(|candidate| seen.insert(candidate.wish.pattern.clone()));
        if !wishes.of_links.is_empty() || wishes.links > 0 {
            return Intent::Say("chat-answer");
        }
        let all_possible = candidates.iter().all(|candidate| candidate.wish.reason.is_none());
        let patterns: Vec<Pattern> = candidates.iter().map(|candidate| candidate.wish.pattern.clone()).collect();
        let with = self.places_after(Class::With);
        let is_asked = self.has(Class::Find)
            || candidates.iter().any(|candidate| with.contains(&candidate.at))
            || self.has(Class::Begin)
            || self.has(Class::AtBegin)
            || ends
            || any_strong;
        let is_polite = (0..self.tokens.len()).all(|at| {
            candidates.iter().any(|candidate| candidate.at == at)
                || self.is_of(Class::Polite, at)
                || self.is_of(Class::And, at)
        });
        let is_name = candidates.iter().any(|candidate| candidate.is_name) || self.has(Class::Name);
        // A sentence: words that are neither known nor patterns, or several that are not listed.
        if has_known && wishes.unread > 0 && !any_strong {
            return self.sentence();
        }
        if !has_known && candidates.len() + wishes.unread > 3 && (wishes.unread > 0 || !all_possible) {
            return if self.tokens.len() > 3 { Intent::ForeignLanguage } else { Intent::Say("chat-answer") };
        }
        if let Some((job, _)) = self.context.open.last().filter(|_| self.has(Class::Change)) {
            return Intent::Offer(patterns, OfferReason::Change(*job));
        }
        let is_listed = !has_known || any_strong || is_polite || self.are_listed(&candidates);
        if candidates.len() > 1 && !is_listed {
            return match is_name && !self.has(Class::Find) {
                true => Intent::Offer(joined(&candidates).into_iter().chain(patterns).collect(), OfferReason::Unsure),
                false => self.sentence(),
            };
        }
        if !all_possible {
            let is_short = self.tokens.len() < 4 && !self.text.asks && !self.has(Class::Is);
            let is_meant = !has_known || is_asked || is_name || is_polite || is_short;
            let wishes: Vec<Wish> = candidates.into_iter().map(|candidate| candidate.wish).collect();
            return if is_meant { offer(wishes) } else { self.sentence() };
        }
        if is_name && !self.has(Class::Find) && !any_strong {
            return Intent::Offer(patterns, OfferReason::Unsure);
        }
        let is_stated = |candidate: &Candidate| {
            let clause = self.tokens[candidate.at].clause;
            self.of(Class::Is).any(|found| self.tokens[found.first()].clause == clause)
        };
        if !self.text.asks && !is_asked && !is_name && candidates.iter().all(is_stated) {
            return self.sentence();
        }
        if let Some(uneven) = uneven(&patterns) {
            return uneven;
        }
        let is_short = self.tokens.len() <= 4 && !self.text.asks && !self.has(Class::Asks);
        let is_clause = |candidate: &Candidate| {
            let clause = self.tokens[candidate.at].clause;
            self.tokens.iter().filter(|token| token.clause == clause).count() == 1
        };
        let is_certain = candidates.iter().all(is_clause)
            || !has_known
            || is_asked
            || is_polite
            || is_short
            || ends
            || candidates.len() > 1;
        match is_certain {
            true => Intent::search(patterns),
            false if candidates.len() == 1 && !self.has(Class::Asks) => Intent::Offer(patterns, OfferReason::Unsure),
            false => self.sentence(),
        }
    }

    /// Whether each candidate is parted from the one before by a comma or a word such as `or`.
    pub fn are_listed(&self, candidates: &[Candidate]) -> bool {
        candidates.windows(2).all(|two| {
            let (one, other) = (two[0].at, two[1].at);
            let has_and = (one + 1..other).any(|at| self.is_of(Class::And, at));
            has_and || self.tokens[one].clause != self.tokens[other].clause || one + 1 == other && two[1].is_strong
        })
    }

    /// Puts endings where the text says so, and joins a start with its end. Whether there was one.
    pub fn ends(&self, candidates: &mut Vec<Candidate>) -> bool {
        let classes = [Class::End, Class::AtEnd, Class::Begin, Class::AtBegin];
        let mut all: Vec<&PhraseMatch> = classes.into_iter().flat_map(|class| self.of(class)).collect();
        // Of phrases that overlap, the longest counts.
        all.sort_by_key(|mark| Reverse(mark.last() - mark.first()));
        let mut marks: Vec<&PhraseMatch> = Vec::new();
        for mark in all {
            if marks.iter().all(|other| mark.last() < other.first() || other.last() < mark.first()) {
                marks.push(mark);
            }
        }
        marks.sort_by_key(|mark| mark.first());
        let is_end = |mark: &&PhraseMatch| matches!(mark.class, Class::End | Class::AtEnd);
        if !marks.iter().any(is_end) || candidates.is_empty() {
            let is_inside = self.weight(Class::Middle) > 0
                && candidates.len() == 1
                && candidates[0].wish.pattern.prefix().is_some();
            let anywhere = candidates.first().map(|candidate| format!("*{}*", candidate.wish.pattern));
            if let Some(Ok(pattern)) = anywhere.filter(|_| is_inside).map(|text| text.parse()) {
                candidates[0].wish.pattern = pattern;
                return true;
            }
            return false;
        }
        let clause = |at: usize| self.tokens[at].clause;
        let owner = |candidate: &Candidate| {
            let distance = |mark: &&&PhraseMatch| {
                let (first, last) = (mark.first(), mark.last());
                let is_before = last < candidate.at;
                let gap = if is_before { candidate.at - last } else { first.saturating_sub(candidate.at) };
                // `ends with` stands before its ending, `at the end` rather behind.
                let prefers = matches!(mark.class, Class::End | Class::Begin) == is_before;
                (clause(first) != clause(candidate.at), !prefers, gap)
            };
            marks.iter().min_by_key(distance).is_some_and(is_end)
        };
        let is_japanese = marks.iter().any(|mark| self.tokens[mark.first()].kind == TokenKind::Japanese);
        let owners: Vec<bool> = if candidates.len() == marks.len() {
            marks.iter().map(is_end).collect()
        } else if candidates.len() == 1 {
            vec![true]
        } else if is_japanese {
            let next =
                |candidate: &Candidate| marks.iter().find(|mark| mark.first() > candidate.at).is_some_and(is_end);
            candidates.iter().map(next).collect()
        } else {
            candidates.iter().map(owner).collect()
        };
        let text = |candidate: &Candidate| candidate.wish.pattern.as_str().to_owned();
        let parts: Vec<(bool, String)> = owners.into_iter().zip(candidates.iter().map(text)).collect();
        let at_end = |text: &str| format!("*{}", text.trim_start_matches('*'));
        let combined = match parts.as_slice() {
            [(false, start), (true, end)] | [(true, end), (false, start)] => Some(format!("{}{}", start, at_end(end))),
            _ => None,
        };
        if let Some(Ok(pattern)) = combined.map(|text| text.parse()) {
            candidates.truncate(1);
            candidates[0].wish.pattern = pattern;
            return true;
        }
        for (candidate, (is_end, text)) in candidates.iter_mut().zip(parts) {
            if let (true, Ok(pattern)) = (is_end, at_end(&text).parse()) {
                candidate.wish.pattern = pattern;
            }
        }
        true
    }
}

pub(super) fn patterns_of(wishes: impl IntoIterator<Item = Wish>) -> Vec<Pattern> {
    let mut seen = HashSet::new();
    wishes.into_iter().map(|wish| wish.pattern).filter(|pattern| seen.insert(pattern.clone())).collect()
}

/// Shows wishes of which at least one is impossible as written.
pub(super) fn offer(wishes: Vec<Wish>) -> Intent {
    let reason = wishes.iter().find_map(|wish| wish.reason.clone());
    Intent::Offer(patterns_of(wishes), reason.unwrap_or(OfferReason::Unsure))
}

/// The harder patterns, if one is much easier than all others.
fn uneven(patterns: &[Pattern]) -> Option<Intent> {
    let easiest = patterns
        .iter()
        .min_by(|one, other| one.difficulty().candidates().total_cmp(&other.difficulty().candidates()))?;
    let harder: Vec<Pattern> = patterns.iter().filter(|pattern| *pattern != easiest).cloned().collect();
    let least = harder.iter().map(|pattern| pattern.difficulty().candidates()).min_by(f64::total_cmp)?;
    (least > UNEVEN * easiest.difficulty().candidates())
        .then(|| Intent::Offer(harder, OfferReason::Uneven(easiest.clone())))
}

/// The words of a full name as one pattern.
fn joined(candidates: &[Candidate]) -> Option<Pattern> {
    let text: String =
        candidates.iter().map(|candidate| candidate.wish.pattern.as_str().trim_start_matches('~')).collect();
    text.parse().or_else(|_| format!("~{text}").parse()).ok()
}

/// Longest text of a pattern, in bytes; a whole key in hex has 69. Without a limit, classes could
/// make a pattern longer than a message.
const LONGEST: usize = 80;

/// Letters of other scripts, each with the Latin letter that it looks like.
const OTHER_SCRIPTS: &str =
    "аa сc еe оo рp хx уy ѕs іi јj ԁd һh ԛq ԝw вb мm нh тt кk αa εe οo ρp υu νv χx κk ιi τt ηn γy ωw βb";

/// A pattern that a word may mean.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Wish {
    pub pattern: Pattern,
    /// The difference from the word as written; `None` without one.
    pub reason: Option<OfferReason>,
}

/// The pattern that a word means: the word itself, or the cheapest that looks like it.
pub(super) fn wish(token: &Token, effort: &mut Effort) -> Option<Wish> {
    let written = token.written.as_str();
    if written.len() > LONGEST {
        return None;
    }
    if let Some(end) = written.strip_prefix('〜') {
        let pattern = Pattern::read_within(&format!("*{end}"), effort).ok()?;
        return Some(Wish { pattern, reason: Some(OfferReason::Unsure) });
    }
    let error = match read(written, effort) {
        Ok(pattern) => return Some(Wish { pattern, reason: None }),
        Err(error) => error,
    };
    let bare = written.trim_start_matches("nostr:").trim_start_matches("npub1");
    // An address such as dave@example.com.
    let bare = bare
        .split_once('@')
        .filter(|(name, host)| !name.is_empty() && host.contains('.'))
        .map_or(bare, |(name, _)| name);
    let (latin, other) = latin(bare);
    if other.is_some() && !bare.contains(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let letters: String = plain(&latin).chars().filter(|c| !matches!(c, '.' | '-' | '_' | '@' | '\'' | '/')).collect();
    if letters.chars().count() < 2 || !letters.chars().all(|c| c.is_ascii_alphanumeric()) {
        return None;
    }
    let reason = match () {
        () if other.is_some() => other.map(|(from, to)| OfferReason::OtherScript(from, to)),
        () if letters.len() < latin.chars().count() => Some(OfferReason::Unsure),
        () => Some(OfferReason::Accent),
    };
    if let Ok(pattern) = Pattern::parse(&letters) {
        return Some(Wish { pattern, reason });
    }
    let forbidden = match error {
        PatternError::Forbidden { character, .. } => character,
        _ => letters.chars().find(|c| "bio1".contains(*c))?,
    };
    let forbidden =
        if forbidden.is_ascii_alphanumeric() { forbidden } else { letters.chars().find(|c| "bio1".contains(*c))? };
    let pattern = Pattern::read_within(&format!("~{letters}"), effort).ok()?;
    Some(Wish { pattern, reason: Some(OfferReason::Impossible(forbidden)) })
}

/// The word with letters of other scripts replaced, and the first of them with its Latin letter. A
/// word that has others, too, is left alone.
fn latin(word: &str) -> (String, Option<(char, char)>) {
    let of = |c: char| OTHER_SCRIPTS.split(' ').find_map(|pair| pair.strip_prefix(c)).and_then(|to| to.chars().next());
    let replaced = word.chars().map(|c| of(c).unwrap_or(c)).collect();
    (replaced, word.chars().find_map(|c| Some((c, of(c)?))))
}

/// Reads words that are all meant as patterns, as after `find`.
pub(super) fn literal(words: &[&str], effort: &mut Effort) -> Intent {
    match Best::read(words) {
        Some(Ok(best)) => return Intent::Search(RequestedKeys::Best(best), None),
        Some(Err(error)) => return Intent::BadWords(vec![(words.join(" "), error)]),
        None => {}
    }
    let mut patterns: Vec<Pattern> = Vec::new();
    let mut bad: Vec<(String, PatternError)> = Vec::new();
    for word in words {
        match read(word, effort) {
            Ok(pattern) if !patterns.contains(&pattern) => patterns.push(pattern),
            Ok(_) => {}
            Err(_) if has_foreign_wildcard(word) => return Intent::Unsupported(nearest_to_foreign(word)),
            Err(error) => bad.push(((*word).to_owned(), error)),
        }
    }
    if bad.is_empty() {
        return Intent::search(patterns);
    }
    bad.truncate(3);
    Intent::BadWords(bad)
}

/// Reads one word.
pub(super) fn read(word: &str, effort: &mut Effort) -> Result<Pattern, PatternError> {
    let has_mark = word.contains(['?', '[', '*', '~', '=', ':', '@']);
    if word.len() > LONGEST && has_mark {
        return Err(PatternError::TooIntricate);
    }
    Pattern::read_within(word, effort)
}

/// Whether a word has a mark of another notation, such as an anchor or a group of a regular
/// expression.
pub(super) fn has_foreign_wildcard(word: &str) -> bool {
    word.contains(['$', '^', '{', '}', '(', ')', '+', '<', '>', '\\'])
}

/// The pattern nearest to one in another notation: its first run of two characters or more, placed
/// at the end of the key if the word ends with `$`.
fn nearest_to_foreign(word: &str) -> Option<Pattern> {
    let inner = word.trim_start_matches("nostr:").trim_start_matches("npub1");
    let mut runs = inner.split(|c: char| !c.is_alphanumeric()).filter(|run| run.len() > 1);
    let prefix = runs.find_map(|run| Pattern::parse(run).ok())?;
    if word.ends_with('$') { format!("*{prefix}").parse().ok() } else { Some(prefix) }
}
