//! Commands and frequent questions in a message.

use super::accepted::effort;
use super::intent::{Intent, OfferReason, Question, Shown};
use super::message::Message;
use super::patterns::wish;
use super::spelling::{is_other_script, romaji};
use super::text::{Kind, Token, is_kana, plain};
use super::vocabulary::{Class, Match};
use super::wishes::{Candidate, Wishes, patterns_of};
use crate::language::Language;
use crate::pattern::Pattern;

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
            return Some(Intent::Show(Shown::Stop));
        }
        if let Some(language) = self.language_wanted(any_strong) {
            return Some(Intent::Language(language));
        }
        if self.is_seed() && !any_strong {
            return Some(Intent::Ask(Question::Seed));
        }
        let explain = self.weight(Class::Explain);
        if explain > 0 && has_wish && !wishes.all.iter().any(|candidate| candidate.is_name) {
            let is_question =
                explain > 1 || self.found.iter().any(|found| found.class == Class::Explain && found.is_shown);
            if is_question {
                return Some(Intent::Explain(patterns_of(wishes.all.iter().map(|candidate| candidate.wish.clone()))));
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
        let is_change = self.has_job() && self.has(Class::Change) && has_wish;
        let is_wish = self.has(Class::Find) || self.has(Class::Begin) || self.has(Class::Change);
        match class {
            _ if is_change && class != Class::Delete => None,
            Class::Cancel if !self.has_job() && self.has_stop_word() => Some(Intent::Stop),
            Class::Cancel => Some(self.cancel(wishes)),
            Class::Delete => self.delete(wishes),
            _ if any_strong => None,
            Class::Help | Class::Who | Class::Status if is_named => None,
            Class::Status if has_wish && weight < 3 && !self.has_job() => None,
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
            Class::Longer => Some(Intent::WhichNext),
            Class::Import => Some(Intent::Ask(Question::Import)),
            Class::Safety => Some(Intent::Ask(Question::Safety)),
            Class::Who => Some(Intent::Ask(Question::Who)),
            Class::Price => Some(Intent::Ask(Question::Price)),
            Class::Split => Some(Intent::SplitHelp),
            Class::Status if self.context.delivered && self.has(Class::Thanks) => Some(Intent::Thanks),
            Class::Status => Some(Intent::Status),
            Class::Start => Some(Intent::Start),
            _ => Some(Intent::Help),
        }
    }

    pub fn cancel(&self, wishes: &Wishes) -> Intent {
        if self.is_negated(Class::Cancel) {
            return Intent::Status;
        }
        let is_own =
            |found: &Match| self.of(Class::Cancel).any(|cancel| found.at.iter().all(|at| cancel.at.contains(at)));
        if self.of(Class::Asks).any(|asks| !is_own(asks)) {
            return Intent::Help;
        }
        let number = self.number();
        let named: Vec<&Pattern> = wishes.all.iter().map(|candidate| &candidate.wish.pattern).collect();
        let is_named = |patterns: &[Pattern]| named.iter().all(|name| patterns.contains(name)) && !named.is_empty();
        let job = self.context.open.iter().find(|(_, patterns)| is_named(patterns)).map(|(id, _)| *id);
        match (job, number) {
            (Some(job), None) => Intent::Cancel(Some(job)),
            (None, Some(number))
                if wishes.all.iter().all(|candidate| candidate.wish.pattern.as_str() == number.0.to_string()) =>
            {
                Intent::Cancel(Some(number))
            }
            (None, None) if named.is_empty() && wishes.unread == 0 && !self.has_number() => Intent::Cancel(None),
            _ => Intent::Show(Shown::Cancel),
        }
    }

    pub fn delete(&self, wishes: &Wishes) -> Option<Intent> {
        if self.is_negated(Class::Delete) {
            return Some(Intent::Help);
        }
        let is_own =
            |found: &Match| self.of(Class::Delete).any(|delete| found.at.iter().all(|at| delete.at.contains(at)));
        if self.of(Class::Asks).any(|asks| !is_own(asks)) {
            return Some(Intent::Ask(Question::Safety));
        }
        if self.weight(Class::Delete) == 1 && self.has_job() && self.has(Class::Object) {
            return Some(Intent::Show(Shown::Cancel));
        }
        let is_certain = wishes.all.is_empty() || self.weight(Class::Delete) > 1;
        is_certain.then_some(Intent::Show(Shown::Delete))
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
            |found: &Match| found.at.len() > 1 || Pattern::parse(&self.tokens[found.first()].written).is_err();
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
            return Intent::Chat;
        }
        if let Some(intent) = self.kana_name() {
            return intent;
        }
        let is_follow_up = self.has_job() || self.context.delivered;
        let is = |class: Class| self.has(class);
        let is_foreign = is(Class::Foreign) || self.tokens.iter().any(|token| is_other_script(&token.written));
        match () {
            () if is(Class::Shorter) && self.has_job() => self.shorter(),
            () if is(Class::Longer) && self.has_job() => Intent::WhichNext,
            () if is(Class::Another) && is_follow_up && !is(Class::Thanks) => Intent::WhichNext,
            () if self.has_job() && is(Class::Explain) => Intent::Status,
            () if is(Class::Explain) && self.weight(Class::Explain) > 1 => Intent::Help,
            () if self.context.delivered && is(Class::Thanks) => Intent::Thanks,
            () if is(Class::Greeting) && !is(Class::Find) => Intent::Greeting,
            () if is(Class::Thanks) && !is(Class::Find) => Intent::Thanks,
            () if self.has_job() && self.text.asks => Intent::Status,
            () if is_foreign || self.is_unknown_language() => Intent::ForeignLanguage,
            () if is(Class::Find) || is(Class::Name) || is(Class::Begin) => Intent::Help,
            () => Intent::Chat,
        }
    }

    /// A name in hiragana or katakana, in Latin letters.
    pub fn kana_name(&self) -> Option<Intent> {
        let mut covered = vec![false; self.tokens.len()];
        // One kana may be a part of a name.
        let is_whole = |found: &&Match| found.at.len() > 1 || !self.tokens[found.first()].word.chars().all(is_kana);
        let long = self.found.iter().filter(|found| found.language == Language::Japanese).filter(is_whole);
        long.flat_map(|found| &found.at).for_each(|&at| covered[at] = true);
        let free: Vec<usize> =
            (0..self.tokens.len()).filter(|&at| self.tokens[at].kind == Kind::Japanese && !covered[at]).collect();
        let runs = free.chunk_by(|one, other| one + 1 == *other);
        let text = |run: &[usize]| run.iter().map(|&at| self.tokens[at].written.as_str()).collect::<String>();
        let particles = |c: char| "のをはがにでとへ".contains(c);
        let names: Vec<String> = runs
            .map(text)
            .map(|run| {
                if run.chars().count() > 2 || self.tokens.len() > run.chars().count() {
                    run.trim_end_matches(particles).to_owned()
                } else {
                    run
                }
            })
            .map(|run| {
                if free.len() == self.tokens.len() {
                    run
                } else {
                    run.trim_start_matches(['を', 'は', 'が']).to_owned()
                }
            })
            .filter(|run| !run.is_empty() && run != "ー")
            .collect();
        let is_wish =
            self.has(Class::Find) || self.has(Class::Begin) || self.has(Class::AtBegin) || self.has(Class::Name);
        let [name] = names.as_slice() else { return None };
        let length = name.chars().count();
        let is_alone = free.len() == self.tokens.len() && length > 1;
        if !(is_wish || is_alone) || length > MAX_KANA_NAME || self.has(Class::Change) && !is_alone {
            return None;
        }
        let kana = plain(name);
        if !kana.chars().all(is_kana) {
            let has_kanji_only = !kana.chars().any(is_kana) || length < 4;
            let is_chinese = self.is_unknown_language() || self.has(Class::Foreign);
            return (has_kanji_only && is_wish && !is_chinese && !self.has(Class::Explain))
                .then_some(Intent::LatinLetters);
        }
        let latin = romaji(&kana).filter(|_| length > 1)?;
        let wish = wish(&Token { written: latin.clone(), word: latin, clause: 0, kind: Kind::Word }, &mut effort())?;
        Some(Intent::Offer(vec![wish.pattern], OfferReason::Unsure))
    }

    pub fn sentence(&self) -> Intent {
        match () {
            () if self.has_job() && (self.text.asks || self.has(Class::Asks)) => Intent::Status,
            () if self.context.delivered && self.has(Class::Thanks) => Intent::Thanks,
            () if self.has(Class::Foreign) => Intent::ForeignLanguage,
            () => Intent::Chat,
        }
    }
}
