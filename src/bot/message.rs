//! A message with the phrases that were found in it, and what it says about its language.

use super::intent::Context;
use super::spelling::{join_spelt, split_hyphens};
use super::text::{Kind, Text, Token, is_kana};
use super::vocabulary::{self, Class, Match};
use crate::job::JobId;
use crate::language::Language;
use crate::pattern::Pattern;

/// A message with the phrases that were found in it.
pub(super) struct Message<'a> {
    pub tokens: Vec<Token>,
    pub text: Text,
    pub context: &'a Context,
    /// Phrases of the languages that the message may be in.
    pub found: Vec<Match>,
    /// Whether each token belongs to a phrase.
    pub known: Vec<bool>,
    /// Number of tokens that each language knows.
    pub scores: Vec<(Language, usize)>,
    /// The language of the message, if it shows one.
    pub spoken: Option<Language>,
}

impl Message<'_> {
    pub fn new(text: Text, context: &Context) -> Message<'_> {
        let tokens = join_spelt(&split_hyphens(&text.tokens));
        let all = vocabulary::find(&tokens);
        let covered = |language: Language| -> Vec<bool> {
            let mut covered = vec![false; tokens.len()];
            let own = all
                .iter()
                .filter(|found| found.language == language && !matches!(found.class, Class::Foreign | Class::Neutral));
            own.flat_map(|found| &found.at).for_each(|&at| covered[at] = true);
            covered
        };
        let has_kana = tokens.iter().any(|token| token.kind == Kind::Japanese && token.written.chars().all(is_kana));
        let scores: Vec<(Language, usize)> = Language::ALL
            .into_iter()
            .map(|language| {
                let score = covered(language).into_iter().filter(|covered| *covered).count();
                (language, if language == Language::Japanese && has_kana { score + 100 } else { score })
            })
            .collect();
        let of = |language| scores.iter().find(|(other, _)| *other == language).map_or(0, |(_, score)| *score);
        let best = scores.iter().map(|(_, score)| *score).max().unwrap_or_default();
        let shows = |language: Language| {
            let covered = covered(language);
            let is_impossible = |at: usize| Pattern::parse(&tokens[at].written).is_err();
            let words = covered.iter().filter(|covered| **covered).count();
            let is_command = |found: &Match| found.language == language && found.is_shown && found.first() == 0;
            let is_foreign_command = language != Language::English && all.iter().any(is_command);
            is_foreign_command || words > 1 || (0..tokens.len()).any(|at| covered[at] && is_impossible(at))
        };
        let spoken = [context.language]
            .into_iter()
            .chain(Language::ALL)
            .find(|&language| best > 0 && of(language) == best && shows(language));
        let is_active = |language: Language| {
            let is_command = |found: &Match| found.language == language && found.is_shown && found.first() == 0;
            let near = of(language) > 1 && of(language) + 1 >= best;
            let is_default = language == Language::English && spoken.is_none();
            let is_of_chat = language == context.language && (language != Language::English || spoken.is_none());
            is_default || is_of_chat || spoken == Some(language) || near || all.iter().any(is_command)
        };
        let mut found: Vec<Match> = all
            .iter()
            .filter(|found| {
                is_active(found.language) || matches!(found.class, Class::Names | Class::Neutral | Class::And)
            })
            .cloned()
            .collect();
        let neutral = found.iter_mut().filter(|found| found.class == Class::Neutral);
        neutral.for_each(|found| found.class = Class::Polite);
        let mut known: Vec<bool> =
            tokens.iter().map(|token| matches!(token.kind, Kind::Elision | Kind::Japanese)).collect();
        found.iter().flat_map(|found| &found.at).for_each(|&at| known[at] = true);
        let found = without_parts(found);
        Message { tokens, text, context, found, known, scores, spoken }
    }

    /// The language of the message, if it clearly is another one than that of the chat.
    pub fn answer_language(&self) -> Language {
        let of = |language| self.scores.iter().find(|(other, _)| *other == language).map_or(0, |(_, score)| *score);
        let chat = self.context.language;
        let is_english = self.spoken == Some(Language::English);
        // Every manual has the English commands, so a message that is one tells no language.
        let is_command = |found: &Match| found.is_shown && found.language == Language::English;
        if self.only_word().is_some() && self.found.iter().any(is_command) {
            return chat;
        }
        let least = usize::from(is_english);
        self.spoken.filter(|&spoken| of(spoken) > of(chat) && of(spoken) > least).unwrap_or(chat)
    }

    pub fn only_word(&self) -> Option<&Token> {
        match self.tokens.as_slice() {
            [only] if matches!(only.kind, Kind::Word | Kind::Marked) => Some(only),
            _ => None,
        }
    }

    pub fn of(&self, class: Class) -> impl Iterator<Item = &Match> {
        self.found.iter().filter(move |found| found.class == class)
    }

    pub fn has(&self, class: Class) -> bool {
        self.of(class).next().is_some()
    }

    /// The weight of the best phrase of a class: its words, or half of its Japanese characters.
    pub fn weight(&self, class: Class) -> usize {
        let certain = self.of(class).filter(|found| !self.is_doubtful(found));
        certain.map(|found| self.weight_of(found)).max().unwrap_or_default()
    }

    /// Whether a phrase is one word that means nothing in particular in longer messages, such as
    /// `para`.
    pub fn is_doubtful(&self, found: &Match) -> bool {
        let is_same =
            |other: &Match| other.class == Class::Filler && other.language == found.language && other.at == found.at;
        found.at.len() == 1 && self.tokens.len() > 3 && self.found.iter().any(is_same)
    }

    pub fn weight_of(&self, found: &Match) -> usize {
        let japanese = found.at.iter().filter(|&&at| self.tokens[at].kind == Kind::Japanese).count();
        found.at.len() - japanese + japanese.div_ceil(2)
    }

    pub fn has_job(&self) -> bool {
        !self.context.open.is_empty()
    }

    /// Whether a token only stands around others: politeness, fillers.
    pub fn is_around(&self, at: usize) -> bool {
        let is_light =
            |found: &&Match| matches!(found.class, Class::Polite | Class::Filler | Class::Find | Class::Object);
        self.tokens[at].kind != Kind::Marked
            && (self.tokens[at].kind == Kind::Elision
                || self.found.iter().filter(is_light).any(|found| found.at.contains(&at)))
    }

    pub fn is_of(&self, class: Class, at: usize) -> bool {
        self.of(class).any(|found| found.at.contains(&at))
    }

    /// The number in the message, if there is exactly one.
    pub fn number(&self) -> Option<JobId> {
        let numbers: Vec<i64> =
            self.tokens.iter().filter_map(|token| token.written.trim_start_matches('#').parse().ok()).collect();
        match numbers.as_slice() {
            [only] if *only > 0 => Some(JobId(*only)),
            _ => None,
        }
    }

    pub fn has_number(&self) -> bool {
        self.tokens.iter().any(|token| token.written.trim_start_matches('#').chars().all(|c| c.is_ascii_digit()))
    }

    /// Whether `not` stands right before the phrases of a class, and is no part of them.
    pub fn is_negated(&self, class: Class) -> bool {
        let phrases: Vec<&Match> = self.of(class).collect();
        let is_before = |found: &&Match, not: &Match| not.last() < found.first() && found.first() - not.last() < 3;
        let is_after = |found: &&Match, not: &Match| {
            let is_japanese = self.tokens[not.first()].kind == Kind::Japanese;
            is_japanese && not.first() > found.first() && not.first() <= found.last() + 2
        };
        let is_own = |not: &Match| phrases.iter().any(|found| not.at.iter().any(|at| found.at.contains(at)));
        let mut nots = self.of(Class::Not).filter(|not| !is_own(not));
        nots.any(|not| phrases.iter().any(|found| is_before(found, not) || is_after(found, not)))
    }

    /// Whether a phrase for cancelling has the word `stop` in it: without a job it is meant for the
    /// bot.
    pub fn has_stop_word(&self) -> bool {
        let is_stop = |at: &usize| {
            vocabulary::find(&self.tokens[*at..=*at]).iter().any(|found| found.class == Class::Stop && found.is_shown)
        };
        self.of(Class::Cancel).flat_map(|found| &found.at).any(is_stop)
    }

    /// Whether hardly a word of the message is known.
    pub fn is_unknown_language(&self) -> bool {
        let japanese = self.tokens.iter().filter(|token| token.kind == Kind::Japanese).count();
        let has_kana = self.tokens.iter().any(|token| token.written.chars().any(is_kana));
        japanese > 1 && !has_kana && self.context.language != Language::Japanese && !self.has(Class::Find)
    }
}

/// The phrases that are not a part of a longer one of their language.
fn without_parts(found: Vec<Match>) -> Vec<Match> {
    let is_part = |one: &Match| {
        let is_whole = |other: &Match| {
            let is_longer = other.at.len() > one.at.len() && other.language == one.language;
            let stays = one.class == Class::Find
                || (matches!(one.class, Class::Thanks | Class::Greeting) && other.class == Class::Polite);
            is_longer && !stays && one.at.iter().all(|at| other.at.contains(at))
        };
        found.iter().any(is_whole)
    };
    found.iter().filter(|one| !is_part(one)).cloned().collect()
}
