//! A message with the phrases that were found in it: its language, and the commands and frequent
//! questions in it.

use super::policy::effort;
use super::request::{ChatContext, Intent, OfferReason, RequestedKeys};
use super::text::{MessageText, Token, TokenKind, is_kana, is_other_script, join_spelt, plain, romaji, split_hyphens};
use super::vocabulary::{self, Class, PhraseMatch};
use super::wishes::{Candidate, Wishes, patterns_of, wish};
use crate::job::JobId;
use crate::language::Language;
use crate::pattern::Pattern;

/// A message with the phrases that were found in it.
pub(super) struct Message<'a> {
    pub tokens: Vec<Token>,
    pub text: MessageText,
    pub context: &'a ChatContext,
    /// Phrases of the languages that the message may be in.
    pub found: Vec<PhraseMatch>,
    /// Whether each token belongs to a phrase.
    pub known: Vec<bool>,
    /// Number of tokens that each language knows, in the order of [`Language::ALL`].
    scores: [usize; Language::ALL.len()],
    /// The language of the message, if it shows one.
    pub spoken: Option<Language>,
}

impl Message<'_> {
    pub fn new(text: MessageText, context: &ChatContext) -> Message<'_> {
        let tokens = join_spelt(&split_hyphens(&text.tokens));
        let all = vocabulary::find(&tokens);
        // The tokens that each language knows.
        let covered = Language::ALL.map(|language| {
            let mut covered = vec![false; tokens.len()];
            let is_own = |class: Class| !matches!(class, Class::Foreign | Class::Neutral);
            let own = all.iter().filter(|found| found.language == language && is_own(found.class));
            own.flat_map(|found| &found.at).for_each(|&at| covered[at] = true);
            covered
        });
        let has_kana =
            tokens.iter().any(|token| token.kind == TokenKind::Japanese && token.written.chars().all(is_kana));
        let scores = Language::ALL.map(|language| {
            let score = covered[language as usize].iter().filter(|covered| **covered).count();
            if language == Language::Japanese && has_kana { score + 100 } else { score }
        });
        let best = scores.into_iter().max().unwrap_or_default();
        let has_command = |language: Language| {
            all.iter().any(|found| found.language == language && found.is_shown && found.first() == 0)
        };
        let shows = |language: Language| {
            let known = || (0..tokens.len()).filter(|&at| covered[language as usize][at]);
            (language != Language::English && has_command(language))
                || known().count() > 1
                || known().any(|at| Pattern::parse(&tokens[at].written).is_err())
        };
        let spoken = [context.language]
            .into_iter()
            .chain(Language::ALL)
            .find(|&language| best > 0 && scores[language as usize] == best && shows(language));
        let is_active = |language: Language| {
            let score = scores[language as usize];
            let is_default =
                if language == Language::English { spoken.is_none() } else { language == context.language };
            is_default || spoken == Some(language) || (score > 1 && score + 1 >= best) || has_command(language)
        };
        let mut found: Vec<PhraseMatch> = all
            .iter()
            .filter(|found| {
                is_active(found.language) || matches!(found.class, Class::Names | Class::Neutral | Class::And)
            })
            .cloned()
            .collect();
        let neutral = found.iter_mut().filter(|found| found.class == Class::Neutral);
        neutral.for_each(|found| found.class = Class::Polite);
        let mut known: Vec<bool> =
            tokens.iter().map(|token| matches!(token.kind, TokenKind::Elision | TokenKind::Japanese)).collect();
        found.iter().flat_map(|found| &found.at).for_each(|&at| known[at] = true);
        let found = without_parts(found);
        Message { tokens, text, context, found, known, scores, spoken }
    }

    /// The language of the message, if it clearly is another one than that of the chat.
    pub fn answer_language(&self) -> Language {
        let of = |language: Language| self.scores[language as usize];
        let chat = self.context.language;
        let is_english = self.spoken == Some(Language::English);
        // Every manual has the English commands, so a message that is one tells no language.
        let is_command = |found: &PhraseMatch| found.is_shown && found.language == Language::English;
        if self.only_word().is_some() && self.found.iter().any(is_command) {
            return chat;
        }
        let least = usize::from(is_english);
        self.spoken.filter(|&spoken| of(spoken) > of(chat) && of(spoken) > least).unwrap_or(chat)
    }

    pub fn only_word(&self) -> Option<&Token> {
        match self.tokens.as_slice() {
            [only] if matches!(only.kind, TokenKind::Word | TokenKind::Marked) => Some(only),
            _ => None,
        }
    }

    pub fn of(&self, class: Class) -> impl Iterator<Item = &PhraseMatch> {
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
    pub fn is_doubtful(&self, found: &PhraseMatch) -> bool {
        let is_same = |other: &PhraseMatch| {
            other.class == Class::Filler && other.language == found.language && other.at == found.at
        };
        let is_late = self.tokens.len() > 2 && !(0..found.first()).all(|at| self.is_of(Class::Polite, at));
        let is_order = matches!(found.class, Class::Cancel | Class::Stop);
        let is_among_others = self.tokens.len() > 3 || is_late || is_order && self.known.contains(&false);
        found.at.len() == 1 && is_among_others && self.found.iter().any(is_same)
    }

    pub fn weight_of(&self, found: &PhraseMatch) -> usize {
        let japanese = found.at.iter().filter(|&&at| self.tokens[at].kind == TokenKind::Japanese).count();
        found.at.len() - japanese + japanese.div_ceil(2)
    }

    pub fn has_job(&self) -> bool {
        !self.context.open.is_empty()
    }

    /// Whether a token only stands around others: politeness, fillers.
    pub fn is_around(&self, at: usize) -> bool {
        let is_light =
            |found: &&PhraseMatch| matches!(found.class, Class::Polite | Class::Filler | Class::Find | Class::Object);
        self.tokens[at].kind != TokenKind::Marked
            && (self.tokens[at].kind == TokenKind::Elision
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
        let phrases: Vec<&PhraseMatch> = self.of(class).collect();
        let is_before =
            |found: &&PhraseMatch, not: &PhraseMatch| not.last() < found.first() && found.first() - not.last() < 3;
        let is_after = |found: &&PhraseMatch, not: &PhraseMatch| {
            let is_japanese = self.tokens[not.first()].kind == TokenKind::Japanese;
            is_japanese && not.first() > found.first() && not.first() <= found.last() + 2
        };
        let is_own = |not: &PhraseMatch| phrases.iter().any(|found| not.at.iter().any(|at| found.at.contains(at)));
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
        let japanese = self.tokens.iter().filter(|token| token.kind == TokenKind::Japanese).count();
        let has_kana = self.tokens.iter().any(|token| token.written.chars().any(is_kana));
        japanese > 1 && !has_kana && self.context.language != Language::Japanese && !self.has(Class::Find)
    }
}

/// The phrases that are not a part of a longer one of their language.
fn without_parts(found: Vec<PhraseMatch>) -> Vec<PhraseMatch> {
    let is_part = |one: &PhraseMatch| {
        let is_whole = |other: &PhraseMatch| {
            let is_longer = other.at.len() > one.at.len() && other.language == one.language;
            let stays = one.class == Class::Find
                || (matches!(one.class, Class::Thanks | Class::Greeting) && other.class == Class::Polite);
            is_longer && !stays && one.at.iter().all(|at| other.at.contains(at))
        };
        found.iter().any(is_whole)
    };
    found.iter().filter(|one| !is_part(one)).cloned().collect()
}

/// The meaning of a command or a question by itself.
pub(super) fn intent_of(class: Class) -> Option<Intent> {
    Some(match class {
        Class::Help => Intent::Help,
        Class::Status => Intent::Status,
        Class::Cancel => Intent::Cancel(None),
        Class::Resend => Intent::Resend(None),
        Class::Stop => Intent::Stop,
        Class::Start => Intent::Start,
        Class::Delete => Intent::Delete,
        Class::Split => Intent::SplitHelp,
        Class::Greeting => Intent::Greeting,
        Class::Thanks => Intent::Say("thanks-answer"),
        Class::Chat => Intent::Say("chat-answer"),
        Class::Another => Intent::Say("which-next"),
        Class::Who => Intent::Say("answer-who"),
        Class::Price => Intent::Say("answer-price"),
        Class::Safety => Intent::Say("answer-safety"),
        Class::Import => Intent::Say("answer-import"),
        _ => return None,
    })
}

/// The most characters of a name in kana.
const MAX_KANA_NAME: usize = 6;

impl Message<'_> {
    /// Reads a command or a topic; `None` if the message is about something else.
    pub fn command(&self, wishes: &Wishes, any_strong: bool) -> Option<Intent> {
        let has_wish = !wishes.all.is_empty();
        let is_certain = |candidate: &Candidate| candidate.is_strong || candidate.wish.reason.is_none();
        let weak = if wishes.all.iter().any(is_certain) { 2 } else { 1 };
        let is_named = wishes.all.iter().any(|candidate| candidate.is_name);
        let cancel = self.weight(Class::Cancel);
        // Consent is always honoured. One word of it among others may mean something else.
        let stop = self.weight(Class::Stop);
        let is_stop = stop > 1 || (stop == 1 && !has_wish && wishes.unread == 0);
        let is_about_search = cancel > stop && self.has_job();
        if is_stop && !any_strong && !is_about_search {
            return Some(if self.is_negated(Class::Stop) { Intent::Status } else { Intent::Stop });
        }
        if stop == 1
            && has_wish
            && !any_strong
            && self.tokens.len() < 4
            && self.of(Class::Stop).any(|found| found.is_shown)
        {
            return Some(Intent::Say("show-stop"));
        }
        if let Some(language) = self.language_wanted(any_strong) {
            return Some(Intent::Language(language));
        }
        if self.has(Class::Languages) && !any_strong {
            return Some(Intent::Languages);
        }
        if self.is_seed() && !any_strong {
            return Some(Intent::Say("seed-answer"));
        }
        let explain = self.weight(Class::Explain);
        if explain > 0 && has_wish && !wishes.all.iter().any(|candidate| candidate.is_name) {
            let is_question =
                explain > 1 || self.found.iter().any(|found| found.class == Class::Explain && found.is_shown);
            if is_question {
                let named = wishes.all.iter().map(|candidate| candidate.wish.clone());
                return Some(Intent::Explain(RequestedKeys::Patterns(patterns_of(named))));
            }
        }
        if any_strong && self.weight(Class::Cancel).max(self.weight(Class::Delete)) == 0 {
            return None;
        }
        // The heaviest phrase wins; of equals, the first in this order.
        let order = [
            Class::Resend,
            Class::Delete,
            Class::Import,
            Class::Safety,
            Class::Cancel,
            Class::Who,
            Class::Price,
            Class::Split,
            Class::Shorter,
            Class::Longer,
            Class::Status,
            Class::Help,
            Class::Start,
        ];
        let heaviest =
            order.into_iter().map(|class| (self.weight(class), class)).rev().max_by_key(|(weight, _)| *weight);
        let (weight, class) = heaviest.filter(|(weight, _)| *weight > 0)?;
        let class = if class == Class::Status && cancel > 0 { Class::Cancel } else { class };
        let is_wish = self.has(Class::Find) || self.has(Class::Begin) || self.has(Class::Change);
        match class {
            Class::Cancel if !self.has_job() && self.has_stop_word() => Some(Intent::Stop),
            Class::Cancel => Some(self.cancel(wishes)),
            Class::Delete if self.is_negated(Class::Delete) => Some(Intent::Help),
            // Nothing is deleted before the asker has read what that means.
            Class::Delete => (!has_wish || weight > 1).then_some(Intent::Say("show-delete")),
            _ if any_strong => None,
            Class::Help | Class::Who | Class::Status if is_named => None,
            Class::Status | Class::Resend | Class::Help | Class::Start if weight < weak => None,
            _ if weight < weak
                || (has_wish && is_wish && weight < 3 && class != Class::Import && class != Class::Safety) =>
            {
                None
            }
            Class::Resend if self.context.delivered || !self.has_job() || weight > 1 || self.number().is_some() => {
                Some(Intent::Resend(self.number()))
            }
            Class::Resend => Some(Intent::Status),
            Class::Shorter | Class::Longer if has_wish || !self.has_job() => None,
            Class::Shorter => Some(self.shorter()),
            Class::Longer => Some(Intent::Say("which-next")),
            class => intent_of(class),
        }
    }

    pub fn cancel(&self, wishes: &Wishes) -> Intent {
        if self.is_negated(Class::Cancel) {
            return Intent::Status;
        }
        // A word of a question that is no part of the command itself.
        let is_own =
            |asks: &PhraseMatch| self.of(Class::Cancel).any(|cancel| asks.at.iter().all(|at| cancel.at.contains(at)));
        if self.of(Class::Asks).any(|asks| !is_own(asks)) {
            return Intent::Help;
        }
        let is_all = |text: &str| wishes.all.iter().all(|candidate| candidate.wish.pattern.as_str() == text);
        match self.number() {
            Some(number) if is_all(&number.0.to_string()) => Intent::Cancel(Some(number)),
            None if wishes.all.is_empty() && wishes.unread == 0 && !self.has_number() => Intent::Cancel(None),
            _ => Intent::ShowCancel,
        }
    }

    /// The language that the asker wants to be answered in.
    pub fn language_wanted(&self, any_strong: bool) -> Option<Language> {
        let name = self.of(Class::Names).last()?;
        let is_asked = self.of(Class::Language).any(|asked| !asked.at.iter().any(|at| name.at.contains(at)));
        let others = (0..self.tokens.len()).filter(|at| !name.at.contains(at));
        let is_rest_known = others.into_iter().all(|at| self.known[at]);
        (is_asked && !any_strong && is_rest_known).then_some(name.language)
    }

    pub fn is_seed(&self) -> bool {
        let is_certain =
            |found: &PhraseMatch| found.at.len() > 1 || Pattern::parse(&self.tokens[found.first()].written).is_err();
        self.of(Class::Seed).any(|found| is_certain(found) || self.tokens.len() == 1)
    }

    /// The last job's pattern without its last character.
    pub fn shorter(&self) -> Intent {
        let shorter = |pattern: &Pattern| {
            let mut text = pattern.prefix()?.to_owned();
            text.pop();
            text.parse().ok()
        };
        let last = self.context.open.last();
        match last.and_then(|(job, patterns)| Some((*job, shorter(patterns.first()?)?))) {
            Some((job, pattern)) => Intent::Offer(vec![pattern], OfferReason::Change(job)),
            None => Intent::Help,
        }
    }

    /// Reads a message without a pattern.
    pub fn without_wish(&self, wishes: &Wishes) -> Intent {
        if !wishes.of_links.is_empty() {
            return Intent::Offer(wishes.of_links.clone(), OfferReason::Unsure);
        }
        if wishes.links > 0 {
            return Intent::Say("chat-answer");
        }
        if let Some(intent) = self.kana_name() {
            return intent;
        }
        let is_follow_up = self.has_job() || self.context.delivered;
        let is = |class: Class| self.has(class);
        let is_foreign = is(Class::Foreign) || self.tokens.iter().any(|token| is_other_script(&token.written));
        match () {
            () if is(Class::Longer) && self.has_job() => Intent::Say("which-next"),
            () if is(Class::Another) && is_follow_up && !is(Class::Thanks) => Intent::Say("which-next"),
            () if self.has_job() && is(Class::Explain) => Intent::Status,
            () if self.context.delivered && is(Class::Thanks) => Intent::Say("thanks-answer"),
            () if is(Class::Greeting) && !is(Class::Find) => Intent::Greeting,
            () if is(Class::Thanks) && !is(Class::Find) => Intent::Say("thanks-answer"),
            () if self.has_job() && self.text.asks => Intent::Status,
            () if is_foreign || self.is_unknown_language() => Intent::ForeignLanguage,
            () if is(Class::Find) || is(Class::Name) || is(Class::Begin) => Intent::Help,
            () => Intent::Say("chat-answer"),
        }
    }

    /// A name in hiragana or katakana, in Latin letters.
    pub fn kana_name(&self) -> Option<Intent> {
        let mut is_free: Vec<bool> = self.tokens.iter().map(|token| token.kind == TokenKind::Japanese).collect();
        // One kana may be a part of a name.
        let is_whole =
            |found: &&PhraseMatch| found.at.len() > 1 || !self.tokens[found.first()].word.chars().all(is_kana);
        let phrases = self.found.iter().filter(|found| found.language == Language::Japanese).filter(is_whole);
        phrases.flat_map(|found| &found.at).for_each(|&at| is_free[at] = false);
        let letters = self.tokens.iter().zip(is_free);
        let text: String = letters.map(|(token, is_free)| if is_free { token.written.as_str() } else { " " }).collect();
        let is_all = !text.contains(' ');
        let without_particles = |run| match str::trim_end_matches(run, |c| "のをはがにでとへ".contains(c)) {
            _ if is_all && run.chars().count() < 3 => run,
            run if is_all => run,
            run => run.trim_start_matches(['を', 'は', 'が']),
        };
        let names: Vec<&str> =
            text.split(' ').map(without_particles).filter(|run| !run.is_empty() && *run != "ー").collect();
        let is_wish =
            self.has(Class::Find) || self.has(Class::Begin) || self.has(Class::AtBegin) || self.has(Class::Name);
        let [name] = names.as_slice() else { return None };
        let length = name.chars().count();
        let is_alone = is_all && length > 1;
        if !(is_wish || is_alone) || length > MAX_KANA_NAME || self.has(Class::Change) && !is_alone {
            return None;
        }
        let kana = plain(name);
        if !kana.chars().all(is_kana) {
            let has_kanji_only = !kana.chars().any(is_kana) || length < 4;
            let is_chinese = self.is_unknown_language() || self.has(Class::Foreign);
            return (has_kanji_only && is_wish && !is_chinese && !self.has(Class::Explain))
                .then_some(Intent::Say("latin-letters"));
        }
        let latin = romaji(&kana).filter(|_| length > 1)?;
        let wish =
            wish(&Token { written: latin.clone(), word: latin, clause: 0, kind: TokenKind::Word }, &mut effort())?;
        Some(Intent::Offer(vec![wish.pattern], OfferReason::Unsure))
    }

    pub fn sentence(&self) -> Intent {
        match () {
            () if self.context.delivered && self.has(Class::Thanks) => Intent::Say("thanks-answer"),
            () if self.has(Class::Foreign) => Intent::ForeignLanguage,
            () => Intent::Say("chat-answer"),
        }
    }
}
