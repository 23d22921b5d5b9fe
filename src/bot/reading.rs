//! The reading of a message: its text and the context become one [`Intent`]. Pure, and never a
//! guess that costs somebody something.

use super::accepted::effort;
use super::patterns::{LookAlikeReason, Wish, literal, wish};
use super::text::{Kind, Text, Token, is_invisible, is_kana, plain};
use super::vocabulary::{self, Class, Match};
use crate::job::JobId;
use crate::key::{HalfPoint, HalfPointError, SplitWork};
use crate::language::Language;
use crate::pattern::{ALPHABET, Best, Effort, GrammarError, Pattern};
use unicode_normalization::UnicodeNormalization;

/// The most words of a message that are read. Nobody means more of them as prefixes.
pub(super) const WORDS_READ: usize = 64;
/// Number of bech32 characters after `nsec1`, in one piece, that count as a secret key.
const SECRET_IN_ONE: usize = 6;
/// Number of bech32 characters after `nsec1`, with gaps between them, that count as a secret key.
const SECRET_IN_PIECES: usize = 50;
/// Length of an npub.
const NPUB: usize = 63;
/// How much easier than all others one pattern of a request may be.
const UNEVEN: f64 = 1000.0;
/// The most characters of a name in kana.
const MAX_KANA_NAME: usize = 6;

/// What an asker wants of the bot.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Intent {
    /// A search for patterns, without repeats, in the order written.
    Search(Vec<Pattern>),
    /// A search without a target.
    Best(Best),
    /// Patterns at the asker's own point. The asker keeps half of the key.
    Split(HalfPoint, Vec<Pattern>),
    /// A search without a target at the asker's own point.
    SplitBest(HalfPoint, Best),
    /// `split` without a point, or with a word that is meant as a point and is none.
    BadPoint(Option<HalfPointError>),
    /// `split` and a point, but no prefix.
    PointAlone,
    /// Patterns that are shown, ready to send; nothing starts.
    Offer(Vec<Pattern>, OfferReason),
    Help,
    SplitHelp,
    Status,
    /// Cancel a job; `None`: all of the asker's jobs.
    Cancel(Option<JobId>),
    /// Send a result again; `None`: the newest.
    Resend(Option<JobId>),
    /// The asker wants no more messages.
    Stop,
    Start,
    /// The asker wants their data deleted.
    Delete,
    /// A command that is shown, ready to send; it is not certain enough to be obeyed.
    Show(Shown),
    /// A question about the meaning and the expected time of these patterns.
    Explain(Vec<Pattern>),
    /// A question about the meaning and the expected time of a search without a target.
    ExplainBest(Best),
    /// A question about the kinds of patterns.
    Kinds,
    /// Words that are not patterns, each with the reason; at most three.
    BadWords(Vec<(String, GrammarError)>),
    /// A pattern in another notation. Holds the nearest pattern.
    Unsupported(Option<Pattern>),
    TooManyWords(usize),
    /// A question that always has the same answer.
    Ask(Question),
    /// A secret key, or a part of one.
    SecretKey,
    /// Answers in this language from now on.
    Language(Language),
    /// A question about the languages that the bot knows.
    Languages,
    Thanks,
    Greeting,
    /// Anything else that people say.
    Chat,
    /// A wish for a longer pattern, or for one more key: the asker has to say which.
    WhichNext,
    /// A name in Japanese characters that have no one spelling.
    LatinLetters,
    /// A language that the bot lacks.
    ForeignLanguage,
    Nothing,
}

/// A question that always has the same answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Question {
    /// "Who are you?"
    Who,
    /// "What does it cost?"
    Price,
    /// "Is it safe?"
    Safety,
    /// "How do I use the key?", "Can I keep my old key?"
    Import,
    /// "Do I get 12 words?"
    Seed,
}

/// A command that is shown, ready to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shown {
    /// `cancel`
    Cancel,
    /// `delete`
    Delete,
    /// `stop`
    Stop,
}

/// The reason why patterns are shown and not searched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OfferReason {
    /// A character cannot occur in an npub.
    Impossible(char),
    /// Only an accent is impossible.
    Accent,
    /// A letter of another script looks like one that is possible.
    OtherScript(char, char),
    /// It is not certain that the word is meant.
    Unsure,
    /// The patterns that are more than [`UNEVEN`] times as hard as the easiest one, which would
    /// always be found first.
    Uneven(Pattern),
    /// The asker has an open job for something else.
    Change(JobId),
}

/// A message's meaning and the language of the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    pub(super) intent: Intent,
    /// The language of the answer.
    pub language: Language,
    /// The only word of the message, if it is a command and could be a prefix.
    pub(super) shadowed: Option<Pattern>,
}

/// What is known of an asker when a message is read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Context {
    /// Language of the chat.
    pub language: Language,
    /// Open jobs with their patterns, oldest first.
    pub open: Vec<(JobId, Vec<Pattern>)>,
    /// Whether a key was delivered and no job is open.
    pub delivered: bool,
}

/// Reads any text, in time linear in its length, besides the bounded time of its patterns.
pub(super) fn read_text(text: &str, context: &Context) -> Reading {
    if has_secret_key(text) {
        return plainly(Intent::SecretKey, context);
    }
    let text = Text::read(text);
    let words = text.tokens.iter().filter(|token| token.kind != Kind::Japanese).count();
    if words > WORDS_READ {
        return plainly(Intent::TooManyWords(words), context);
    }
    let mut effort = effort();
    let mut message = Message::new(text, context);
    let language = message.answer_language();
    let shadowed = |intent: &Intent, message: &Message<'_>| match intent {
        Intent::Search(_) | Intent::Offer(..) => None,
        _ => message.only_word().and_then(|word| Pattern::parse(&word.written).ok()),
    };
    let intent = message.intent(&mut effort);
    let language = match intent {
        Intent::Language(chosen) => chosen,
        Intent::ForeignLanguage => Language::English,
        _ => language,
    };
    let shadowed = shadowed(&intent, &message);
    Reading { intent, language, shadowed }
}

fn plainly(intent: Intent, context: &Context) -> Reading {
    Reading { intent, language: context.language, shadowed: None }
}

/// A message with the phrases that were found in it.
struct Message<'a> {
    tokens: Vec<Token>,
    text: Text,
    context: &'a Context,
    /// Phrases of the languages that the message may be in.
    found: Vec<Match>,
    /// Whether each token belongs to a phrase.
    known: Vec<bool>,
    /// Number of tokens that each language knows.
    scores: Vec<(Language, usize)>,
    /// The language of the message, if it shows one.
    spoken: Option<Language>,
}

impl Message<'_> {
    fn new(text: Text, context: &Context) -> Message<'_> {
        let tokens = join_spelt(&split_hyphens(&text.tokens));
        let all = vocabulary::find(&tokens);
        let covered = |language: Language| -> Vec<bool> {
            let mut covered = vec![false; tokens.len()];
            let own = all.iter().filter(|found| found.language == language && !matches!(found.class, Class::Foreign | Class::Neutral));
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
            words > 1 || (0..tokens.len()).any(|at| covered[at] && is_impossible(at))
        };
        let spoken = [context.language].into_iter().chain(Language::ALL).find(|&language| {
            best > 0 && of(language) == best && shows(language)
        });
        let is_active = |language: Language| {
            let near = of(language) > 1 && of(language) + 1 >= best;
            language == Language::English || language == context.language || spoken == Some(language) || near
        };
        let mut found: Vec<Match> =
            all.into_iter().filter(|found| is_active(found.language) || found.class == Class::Names).collect();
        let neutral = found.iter_mut().filter(|found| found.class == Class::Neutral);
        neutral.for_each(|found| found.class = Class::Polite);
        let mut known: Vec<bool> =
            tokens.iter().map(|token| matches!(token.kind, Kind::Elision | Kind::Japanese)).collect();
        found.iter().flat_map(|found| &found.at).for_each(|&at| known[at] = true);
        let found = without_parts(found);
        Message { tokens, text, context, found, known, scores, spoken }
    }

    /// The language of the message, if it clearly is another one than that of the chat.
    fn answer_language(&self) -> Language {
        let of = |language| self.scores.iter().find(|(other, _)| *other == language).map_or(0, |(_, score)| *score);
        let chat = self.context.language;
        let least = if self.spoken == Some(Language::English) { 1 } else { 0 };
        self.spoken.filter(|&spoken| of(spoken) > of(chat) && of(spoken) > least).unwrap_or(chat)
    }

    fn only_word(&self) -> Option<&Token> {
        match self.tokens.as_slice() {
            [only] if matches!(only.kind, Kind::Word | Kind::Marked) => Some(only),
            _ => None,
        }
    }

    fn of(&self, class: Class) -> impl Iterator<Item = &Match> {
        self.found.iter().filter(move |found| found.class == class)
    }

    fn has(&self, class: Class) -> bool {
        self.of(class).next().is_some()
    }

    /// The weight of the best phrase of a class: its words, or half of its Japanese characters.
    fn weight(&self, class: Class) -> usize {
        let certain = self.of(class).filter(|found| !self.is_doubtful(found));
        certain.map(|found| self.weight_of(found)).max().unwrap_or_default()
    }

    /// Whether a phrase is one word that means nothing in particular in longer messages, such as
    /// `para`.
    fn is_doubtful(&self, found: &Match) -> bool {
        let is_same = |other: &Match| other.class == Class::Filler && other.language == found.language && other.at == found.at;
        found.at.len() == 1 && self.tokens.len() > 3 && self.found.iter().any(is_same)
    }

    fn weight_of(&self, found: &Match) -> usize {
        let japanese = found.at.iter().filter(|&&at| self.tokens[at].kind == Kind::Japanese).count();
        found.at.len() - japanese + japanese.div_ceil(2)
    }

    /// Whether every token belongs to a phrase.
    fn is_known(&self) -> bool {
        self.known.iter().all(|known| *known)
    }

    fn has_job(&self) -> bool {
        !self.context.open.is_empty()
    }

    fn intent(&mut self, effort: &mut Effort) -> Intent {
        if self.tokens.is_empty() {
            return match (self.text.asks, self.text.has_symbol) {
                (true, _) if self.has_job() => Intent::Status,
                (true, _) => Intent::Help,
                (false, true) if self.context.delivered => Intent::Thanks,
                (false, true) => Intent::Chat,
                (false, false) => Intent::Nothing,
            };
        }
        if let Some(intent) = self.documented(effort) {
            return intent;
        }
        if let Some(intent) = self.only_word().cloned().and_then(|word| self.alone(&word, effort)) {
            return intent;
        }
        if self.tokens.iter().any(is_foreign_thing) {
            let is_invoice = self.tokens.iter().any(|token| token.word.starts_with("lnbc"));
            return if is_invoice { Intent::Ask(Question::Price) } else { Intent::Chat };
        }
        let wishes = self.wishes(effort);
        self.choose(wishes)
    }

    /// Reads the forms that the manual names: a command and exactly what belongs to it.
    fn documented(&self, effort: &mut Effort) -> Option<Intent> {
        let (first, rest) = self.tokens.split_first()?;
        let written: Vec<&str> = rest.iter().map(|token| token.written.as_str()).collect();
        let is = |class: Class| {
            let mut own = self.found.iter().filter(|found| found.class == class && found.is_shown);
            own.any(|found| found.at == [0])
        };
        if first.word == "split" || (rest.iter().any(|token| HalfPoint::is_meant(&token.written)) && self.has(Class::Split)) {
            return Some(self.split(&written, effort));
        }
        if is(Class::Language) || first.word == "language" {
            let named = vocabulary::language_named(rest);
            // The bot's list of languages shows `lang ja (日本語)`, so a text may name one twice.
            let twice = rest.split_first().and_then(|(code, name)| {
                let code = Language::from_code(&code.word)?;
                (vocabulary::language_named(name) == Some(code)).then_some(code)
            });
            let is_alone = rest.is_empty() && Pattern::parse(&first.written).is_err();
            let chosen = named.or(twice).map(Intent::Language);
            return chosen.or_else(|| is_alone.then_some(Intent::Languages));
        }
        if let Some(language) = vocabulary::language_named(&self.tokens)
            && Pattern::parse(&first.written).is_err()
        {
            return Some(Intent::Language(language));
        }
        let meant: Vec<&str> = (0..self.tokens.len()).filter(|&at| !self.is_around(at)).map(|at| self.tokens[at].written.as_str()).collect();
        let best = Best::read(&meant).filter(|_| self.tokens.len() <= meant.len() + 4);
        match best {
            Some(Ok(best)) => return Some(Intent::Best(best)),
            Some(Err(error)) if self.tokens.len() == meant.len() => {
                return Some(Intent::BadWords(vec![(meant.join(" "), error)]));
            }
            _ => {}
        }
        let is_only_words = || (1..self.tokens.len()).all(|at| !self.is_around(at) || rest.len() == 1);
        let is_latin = rest.iter().all(|token| matches!(token.kind, Kind::Word | Kind::Marked));
        if is(Class::Find) && !rest.is_empty() && is_latin && is_only_words() {
            return Some(literal(&written, effort));
        }
        if is(Class::Explain) && rest.is_empty() {
            return Some(Intent::Kinds);
        }
        if is(Class::Explain) && is_latin && is_only_words() {
            if let Some(Ok(best)) = Best::read(&written) {
                return Some(Intent::ExplainBest(best));
            }
            let wishes: Option<Vec<Wish>> = rest.iter().map(|token| wish(token, effort)).collect();
            return Some(match wishes {
                Some(wishes) => Intent::Explain(patterns_of(wishes)),
                None => literal(&written, effort),
            });
        }
        None
    }

    /// Whether a token only stands around others: politeness, fillers.
    fn is_around(&self, at: usize) -> bool {
        let is_light = |found: &&Match| matches!(found.class, Class::Polite | Class::Filler | Class::Find | Class::Object);
        self.tokens[at].kind != Kind::Marked
            && (self.tokens[at].kind == Kind::Elision || self.found.iter().filter(is_light).any(|found| found.at.contains(&at)))
    }

    /// Reads `split <point> pattern …`. The point may be anywhere among the words, and so may
    /// `work:…`.
    fn split(&self, words: &[&str], effort: &mut Effort) -> Intent {
        let words: Vec<&str> = words.iter().copied().filter(|word| word.parse::<SplitWork>().is_err()).collect();
        let (points, asked): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| HalfPoint::is_meant(word));
        let point = match points.as_slice() {
            [] if words.is_empty() || (1..self.tokens.len()).any(|at| self.known[at]) => return Intent::SplitHelp,
            [] => return Intent::BadPoint(None),
            [first, ..] => first.parse::<HalfPoint>(),
        };
        match point {
            Err(error) => Intent::BadPoint(Some(error)),
            Ok(_) if asked.is_empty() => Intent::PointAlone,
            Ok(point) => match literal(&asked, effort) {
                Intent::Search(patterns) => Intent::Split(point, patterns),
                Intent::Best(best) => Intent::SplitBest(point, best),
                other => other,
            },
        }
    }

    /// Reads a single word. A word that could be a prefix is one, unless it is a command or an
    /// everyday answer.
    fn alone(&self, word: &Token, effort: &mut Effort) -> Option<Intent> {
        let could_be_prefix = Pattern::read_within(&word.written, effort).is_ok();
        let own = |class: Class| {
            let mut found = self.of(class).filter(|found| found.at == [0]);
            let is_near = |found: &Match| found.language == Language::English || found.language == self.context.language;
            found.any(|found| found.is_shown || !could_be_prefix || is_near(found))
        };
        let shown = |class: Class| self.of(class).any(|found| found.is_shown);
        if word.kind == Kind::Marked {
            return could_be_prefix.then(|| literal(&[&word.written], effort));
        }
        let commands = [
            (Class::Help, Intent::Help),
            (Class::Status, Intent::Status),
            (Class::Cancel, Intent::Cancel(None)),
            (Class::Resend, Intent::Resend(None)),
            (Class::Stop, Intent::Stop),
            (Class::Start, Intent::Start),
            (Class::Delete, Intent::Delete),
        ];
        if let Some((_, intent)) = commands.iter().find(|(class, _)| shown(*class)) {
            return Some(intent.clone());
        }
        if !could_be_prefix {
            let says_nothing = |found: &Match| matches!(found.class, Class::Filler | Class::Object | Class::With);
            return self.found.iter().all(says_nothing).then(|| self.impossible(word, effort));
        }
        let is_talk = own(Class::Greeting) || own(Class::Chat) || (own(Class::Thanks) && own(Class::Polite));
        if own(Class::Stop) {
            return Some(Intent::Stop);
        }
        if self.context.delivered && own(Class::Thanks) {
            return Some(Intent::Thanks);
        }
        if self.context.delivered && own(Class::Another) {
            return Some(Intent::WhichNext);
        }
        if self.has_job() && own(Class::Cancel) {
            return Some(Intent::Cancel(None));
        }
        if self.has_job() && own(Class::Status) {
            return Some(Intent::Status);
        }
        if self.has_job() && own(Class::Shorter) {
            return Some(self.shorter());
        }
        if is_talk {
            return Some(match () {
                () if own(Class::Thanks) => Intent::Thanks,
                () if own(Class::Greeting) => Intent::Greeting,
                () => Intent::Chat,
            });
        }
        if self.is_laughter(&word.word) {
            return Some(Intent::Chat);
        }
        if own(Class::Help) {
            return Some(Intent::Help);
        }
        if let Some((class, _)) = vocabulary::misspelt(&word.written, true) {
            return Some(self.obey(class));
        }
        let is_of_chat = self.context.language != Language::English
            && self.found.iter().any(|found| found.language == self.context.language && found.at == [0]);
        let pattern = Pattern::read_within(&word.written, effort).ok()?;
        let is_word = is_of_chat && word.word.len() < 5;
        Some(if is_word { Intent::Offer(vec![pattern], OfferReason::Unsure) } else { Intent::Search(vec![pattern]) })
    }

    /// Whether a word is laughter in the language of the chat.
    fn is_laughter(&self, word: &str) -> bool {
        let is_one = |c: char| word.len() > 2 && word.chars().all(|other| other == c);
        self.context.language == Language::Portuguese && is_one('k') || self.context.language == Language::Japanese && is_one('w')
    }

    /// The answer to a single word that cannot be searched.
    fn impossible(&self, word: &Token, effort: &mut Effort) -> Intent {
        if let Some((class, _)) = vocabulary::misspelt(&word.written, false) {
            return self.obey(class);
        }
        if is_foreign_thing(word) {
            return if word.word.starts_with("lnbc") { Intent::Ask(Question::Price) } else { Intent::Chat };
        }
        match wish(word, effort) {
            Some(wish) => offer(vec![wish]),
            None if is_other_script(&word.written) => Intent::ForeignLanguage,
            None => literal(&[&word.written], effort),
        }
    }

    fn obey(&self, class: Class) -> Intent {
        match class {
            Class::Help => Intent::Help,
            Class::Status => Intent::Status,
            Class::Cancel => Intent::Cancel(None),
            Class::Resend => Intent::Resend(None),
            Class::Stop => Intent::Stop,
            _ => Intent::Show(Shown::Delete),
        }
    }

    /// The patterns that may be meant, with how sure that is.
    fn wishes(&self, effort: &mut Effort) -> Wishes {
        let mut wishes = Wishes::default();
        let begin_after = self.places_after(Class::Begin);
        let name_after = self.places_after(Class::Name);
        let has_around = self.known.iter().any(|known| *known);
        for (at, token) in self.tokens.iter().enumerate() {
            let is_written = matches!(token.kind, Kind::Word | Kind::Marked);
            if token.kind == Kind::Link {
                wishes.links += 1;
                if let Some(wish) = Some(token).filter(|token| !token.written.is_empty()).and_then(|token| wish(token, effort)) {
                    wishes.of_links.push(wish.pattern);
                }
                continue;
            }
            if !is_written {
                continue;
            }
            let is_npub = token.written.trim_start_matches("nostr:").starts_with("npub1") && token.written.len() > 5;
            let has_mark = token.written.contains(['?', '[', '*', '~', '=', ':']);
            let is_short_number = token.written.len() < 3 && token.written.chars().all(|c| c.is_ascii_digit());
            let is_strong = token.kind == Kind::Marked || is_npub || (has_mark && !self.known[at]);
            let is_next = || self.of(Class::Begin).any(|found| found.last() + 1 == at);
            let is_placed = begin_after.contains(&at) && (!self.known[at] || (at + 1 == self.tokens.len() && is_next()));
            if self.known[at] && !is_strong && !is_placed {
                continue;
            }
            if is_short_number && has_around && !is_strong && !is_placed && !self.has(Class::End) && !self.has(Class::AtEnd) {
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
            wishes.all.push(Candidate { at, is_strong: is_strong || is_placed, is_name: name_after.contains(&at), wish });
        }
        wishes
    }

    /// The places right behind the phrases of a class, past articles and other fillers.
    fn places_after(&self, class: Class) -> Vec<usize> {
        let next = |found: &Match| {
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
    fn choose(&self, mut wishes: Wishes) -> Intent {
        let any_strong = wishes.all.iter().any(|candidate| candidate.is_strong);
        if any_strong {
            let is_listed = |candidate: &Candidate| candidate.is_strong || self.is_beside_strong(candidate, &wishes.all);
            let kept: Vec<Candidate> = wishes.all.iter().filter(|candidate| is_listed(candidate)).cloned().collect();
            wishes.all = kept;
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
    fn is_beside_strong(&self, candidate: &Candidate, all: &[Candidate]) -> bool {
        if self.known.iter().all(|known| !*known) {
            return true;
        }
        let is_near = |other: &Candidate| {
            let (low, high) = (candidate.at.min(other.at), candidate.at.max(other.at));
            other.is_strong && (low + 1..high).all(|at| self.is_of(Class::And, at) || self.is_of(Class::End, at) || self.is_of(Class::AtEnd, at))
        };
        let has_end = self.has(Class::End) || self.has(Class::AtEnd) || self.has(Class::AtBegin);
        has_end || all.iter().any(is_near)
    }

    fn is_of(&self, class: Class, at: usize) -> bool {
        self.of(class).any(|found| found.at.contains(&at))
    }

    /// Reads a command or a topic; `None` if the message is about something else.
    fn command(&self, wishes: &Wishes, any_strong: bool) -> Option<Intent> {
        let has_wish = !wishes.all.is_empty();
        let is_certain = |candidate: &Candidate| candidate.is_strong || candidate.wish.reason.is_none();
        let weak = if wishes.all.iter().any(is_certain) { 2 } else { 1 };
        let is_named = wishes.all.iter().any(|candidate| candidate.is_name);
        let cancel = self.weight(Class::Cancel);
        // Consent is always honoured. One word of it among others may mean something else.
        let stop = self.weight(Class::Stop);
        let is_stop = stop > 1 || (stop == 1 && !has_wish && wishes.unread == 0);
        let is_about_search = cancel > stop && self.has_job();
        if is_stop && !any_strong && !is_about_search && !self.is_negated(Class::Stop) {
            return Some(Intent::Stop);
        }
        if stop == 1 && has_wish && !any_strong && self.tokens.len() < 4 && self.of(Class::Stop).any(|found| found.is_shown) {
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
            let is_question = explain > 1 || self.found.iter().any(|found| found.class == Class::Explain && found.is_shown);
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
        let heaviest = order.into_iter().map(|class| (self.weight(class), class)).rev().max_by_key(|(weight, _)| *weight);
        let (weight, class) = heaviest.filter(|(weight, _)| *weight > 0)?;
        let class = if class == Class::Status && cancel > 0 { Class::Cancel } else { class };
        let is_change = self.has_job() && self.has(Class::Change) && has_wish;
        let is_wish = self.has(Class::Find) || self.has(Class::Begin) || self.has(Class::Change);
        match class {
            _ if is_change && class != Class::Delete => None,
            Class::Cancel => Some(self.cancel(wishes)),
            Class::Delete => self.delete(wishes),
            _ if any_strong => None,
            Class::Help | Class::Who | Class::Status if is_named => None,
            Class::Status if has_wish && weight < 3 && !self.has_job() => None,
            Class::Status | Class::Resend | Class::Help | Class::Start if weight < weak => None,
            _ if weight < weak || (has_wish && is_wish && weight < 3 && class != Class::Import && class != Class::Safety) => None,
            Class::Resend if self.context.delivered || !self.has_job() || weight > 1 => Some(Intent::Resend(self.number())),
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

    /// Whether `not` stands right before the phrases of a class, and is no part of them.
    fn is_negated(&self, class: Class) -> bool {
        let phrases: Vec<&Match> = self.of(class).collect();
        let is_before = |found: &&Match, not: &Match| not.last() < found.first() && found.first() - not.last() < 3;
        let is_after = |found: &&Match, not: &Match| {
            let is_japanese = self.tokens[not.first()].kind == Kind::Japanese;
            is_japanese && not.first() > found.first() && not.first() <= found.last() + 2
        };
        let is_own = |not: &Match| phrases.iter().any(|found| not.at.iter().all(|at| found.at.contains(at)));
        let mut nots = self.of(Class::Not).filter(|not| !is_own(not));
        nots.any(|not| phrases.iter().any(|found| is_before(found, not) || is_after(found, not)))
    }

    /// The number in the message, if there is exactly one.
    fn number(&self) -> Option<JobId> {
        let numbers: Vec<i64> = self.tokens.iter().filter_map(|token| token.written.trim_start_matches('#').parse().ok()).collect();
        match numbers.as_slice() {
            [only] if *only > 0 => Some(JobId(*only)),
            _ => None,
        }
    }

    fn has_number(&self) -> bool {
        self.tokens.iter().any(|token| token.written.trim_start_matches('#').chars().all(|c| c.is_ascii_digit()))
    }

    fn cancel(&self, wishes: &Wishes) -> Intent {
        if self.is_negated(Class::Cancel) {
            return Intent::Status;
        }
        let is_own = |found: &Match| self.of(Class::Cancel).any(|cancel| found.at.iter().all(|at| cancel.at.contains(at)));
        if self.of(Class::Asks).any(|asks| !is_own(asks)) {
            return Intent::Help;
        }
        let number = self.number();
        let named: Vec<&Pattern> = wishes.all.iter().map(|candidate| &candidate.wish.pattern).collect();
        let is_named = |patterns: &[Pattern]| named.iter().all(|name| patterns.contains(name)) && !named.is_empty();
        let job = self.context.open.iter().find(|(_, patterns)| is_named(patterns)).map(|(id, _)| *id);
        match (job, number) {
            (Some(job), None) => Intent::Cancel(Some(job)),
            (None, Some(number)) if wishes.all.iter().all(|candidate| candidate.wish.pattern.as_str() == number.0.to_string()) => {
                Intent::Cancel(Some(number))
            }
            (None, None) if named.is_empty() && wishes.unread == 0 && !self.has_number() => Intent::Cancel(None),
            _ => Intent::Show(Shown::Cancel),
        }
    }

    fn delete(&self, wishes: &Wishes) -> Option<Intent> {
        if self.is_negated(Class::Delete) {
            return Some(Intent::Help);
        }
        let is_own = |found: &Match| self.of(Class::Delete).any(|delete| found.at.iter().all(|at| delete.at.contains(at)));
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
    fn language_wanted(&self, any_strong: bool) -> Option<Language> {
        let name = self.of(Class::Names).last()?;
        let is_asked = self.of(Class::Language).any(|asked| !asked.at.iter().any(|at| name.at.contains(at)));
        let others = (0..self.tokens.len()).filter(|at| !name.at.contains(at));
        let is_rest_known = others.into_iter().all(|at| self.known[at]);
        (is_asked && !any_strong && is_rest_known).then_some(name.language)
    }

    fn is_seed(&self) -> bool {
        let is_certain = |found: &Match| found.at.len() > 1 || Pattern::parse(&self.tokens[found.first()].written).is_err();
        self.of(Class::Seed).any(|found| is_certain(found) || self.tokens.len() == 1)
    }

    /// The last job's pattern without its last character.
    fn shorter(&self) -> Intent {
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
    fn without_wish(&self, wishes: &Wishes) -> Intent {
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

    /// Whether hardly a word of the message is known.
    fn is_unknown_language(&self) -> bool {
        let japanese = self.tokens.iter().filter(|token| token.kind == Kind::Japanese).count();
        let has_kana = self.tokens.iter().any(|token| token.written.chars().any(is_kana));
        japanese > 1 && !has_kana && self.context.language != Language::Japanese && !self.has(Class::Find)
    }

    /// A name in hiragana or katakana, in Latin letters.
    fn kana_name(&self) -> Option<Intent> {
        let mut covered = vec![false; self.tokens.len()];
        let long = self.found.iter().filter(|found| found.language == Language::Japanese && found.at.len() > 1);
        long.flat_map(|found| &found.at).for_each(|&at| covered[at] = true);
        let free: Vec<usize> =
            (0..self.tokens.len()).filter(|&at| self.tokens[at].kind == Kind::Japanese && !covered[at]).collect();
        let runs = free.chunk_by(|one, other| one + 1 == *other);
        let text = |run: &[usize]| run.iter().map(|&at| self.tokens[at].written.as_str()).collect::<String>();
        let particles = |c: char| "のをはがにでとへ".contains(c);
        let names: Vec<String> = runs
            .map(text)
            .map(|run| if run.chars().count() > 2 || self.tokens.len() > run.chars().count() { run.trim_end_matches(particles).to_owned() } else { run })
            .map(|run| run.trim_start_matches(['を', 'は', 'が']).to_owned())
            .filter(|run| !run.is_empty() && run != "ー")
            .collect();
        let is_wish = self.has(Class::Find) || self.has(Class::Begin) || self.has(Class::AtBegin) || self.has(Class::Name);
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
            return (has_kanji_only && is_wish && !is_chinese && !self.has(Class::Explain)).then_some(Intent::LatinLetters);
        }
        let latin = romaji(&kana).filter(|_| length > 1)?;
        let wish = wish(&Token { written: latin.clone(), word: latin, clause: 0, kind: Kind::Word }, &mut effort())?;
        Some(Intent::Offer(vec![wish.pattern], OfferReason::Unsure))
    }

    /// Decides between a search and an offer of the wishes.
    fn wanted(&self, wishes: Wishes, any_strong: bool) -> Intent {
        let mut candidates = wishes.all;
        let ends = self.ends(&mut candidates);
        let has_known = (0..self.tokens.len()).any(|at| self.known[at] && !candidates.iter().any(|candidate| candidate.at == at));
        // The same word again, as in "my dog is rex, can you do rex?".
        let mut seen: Vec<Pattern> = Vec::new();
        candidates.retain(|candidate| {
            let is_new = !seen.contains(&candidate.wish.pattern);
            seen.push(candidate.wish.pattern.clone());
            is_new
        });
        if !wishes.of_links.is_empty() || wishes.links > 0 {
            return Intent::Chat;
        }
        let all_possible = candidates.iter().all(|candidate| candidate.wish.reason.is_none());
        let patterns: Vec<Pattern> = candidates.iter().map(|candidate| candidate.wish.pattern.clone()).collect();
        let with = self.places_after(Class::With);
        let is_asked = self.has(Class::Find) || candidates.iter().any(|candidate| with.contains(&candidate.at)) || self.has(Class::Begin) || self.has(Class::AtBegin) || ends || any_strong;
        let is_polite = (0..self.tokens.len()).all(|at| {
            candidates.iter().any(|candidate| candidate.at == at) || self.is_of(Class::Polite, at) || self.is_of(Class::And, at)
        });
        let is_name = candidates.iter().any(|candidate| candidate.is_name) || self.has(Class::Name);
        // A sentence: words that are neither known nor patterns, or several that are not listed.
        if has_known && wishes.unread > 0 && !any_strong {
            return self.sentence();
        }
        if !has_known && candidates.len() + wishes.unread > 3 && (wishes.unread > 0 || !all_possible) {
            return if self.is_latin_sentence() { Intent::ForeignLanguage } else { Intent::Chat };
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
            let is_meant = !has_known || is_asked || is_name || is_polite || self.tokens.len() < 4;
            let wishes: Vec<Wish> = candidates.into_iter().map(|candidate| candidate.wish).collect();
            return if is_meant { offer(wishes) } else { self.sentence() };
        }
        if is_name && !self.has(Class::Find) && !any_strong {
            return Intent::Offer(patterns, OfferReason::Unsure);
        }
        if let Some(uneven) = uneven(&patterns) {
            return uneven;
        }
        let is_short = self.tokens.len() <= 4 && !self.text.asks && !self.has(Class::Asks);
        let is_certain = !has_known || is_asked || is_polite || is_short || ends || candidates.len() > 1;
        match is_certain {
            true => Intent::Search(patterns),
            false if candidates.len() == 1 && !self.has(Class::Asks) => Intent::Offer(patterns, OfferReason::Unsure),
            false => self.sentence(),
        }
    }

    fn is_latin_sentence(&self) -> bool {
        self.tokens.len() > 3
    }

    fn sentence(&self) -> Intent {
        match () {
            () if self.has_job() && (self.text.asks || self.has(Class::Asks)) => Intent::Status,
            () if self.context.delivered && self.has(Class::Thanks) => Intent::Thanks,
            () if self.has(Class::Foreign) => Intent::ForeignLanguage,
            () => Intent::Chat,
        }
    }

    /// Whether each candidate is parted from the one before by a comma or a word such as `or`.
    fn are_listed(&self, candidates: &[Candidate]) -> bool {
        candidates.windows(2).all(|two| {
            let (one, other) = (two[0].at, two[1].at);
            let has_and = (one + 1..other).any(|at| self.is_of(Class::And, at));
            has_and || self.tokens[one].clause != self.tokens[other].clause || one + 1 == other && two[1].is_strong
        })
    }

    /// Puts endings where the text says so, and joins a start with its end. Whether there was one.
    fn ends(&self, candidates: &mut Vec<Candidate>) -> bool {
        let place = |class: Class| self.of(class).map(|found| (found.first(), found.last(), class)).collect::<Vec<_>>();
        let mut marks: Vec<(usize, usize, Class)> =
            [Class::End, Class::AtEnd, Class::Begin, Class::AtBegin].into_iter().flat_map(place).collect();
        // Of phrases that overlap, the longest counts.
        marks.sort_by_key(|(first, last, _)| std::cmp::Reverse(last - first));
        let mut kept: Vec<(usize, usize, Class)> = Vec::new();
        for mark in marks {
            if kept.iter().all(|other| mark.1 < other.0 || other.1 < mark.0) {
                kept.push(mark);
            }
        }
        kept.sort_by_key(|(first, ..)| *first);
        let is_end = |class: Class| matches!(class, Class::End | Class::AtEnd);
        if !kept.iter().any(|(_, _, class)| is_end(*class)) || candidates.is_empty() {
            let is_inside = self.weight(Class::Middle) > 0 && candidates.len() == 1 && candidates[0].wish.pattern.prefix().is_some();
            let anywhere = candidates.first().map(|candidate| format!("*{}*", candidate.wish.pattern));
            if let Some(Ok(pattern)) = anywhere.filter(|_| is_inside).map(|text| text.parse()) {
                candidates[0].wish.pattern = pattern;
                return true;
            }
            return false;
        }
        let clause = |at: usize| self.tokens[at].clause;
        let owner = |candidate: &Candidate| {
            let distance = |&&(first, last, class): &&(usize, usize, Class)| {
                let is_before = last < candidate.at;
                let gap = if is_before { candidate.at - last } else { first.saturating_sub(candidate.at) };
                // `ends with` stands before its ending, `at the end` rather behind.
                let prefers = matches!(class, Class::End | Class::Begin) == is_before;
                (usize::from(clause(first) != clause(candidate.at)), usize::from(!prefers), gap)
            };
            kept.iter().min_by_key(distance).map(|(_, _, class)| is_end(*class)).unwrap_or_default()
        };
        let is_japanese = kept.iter().any(|(first, ..)| self.tokens[*first].kind == Kind::Japanese);
        let owners: Vec<bool> = if candidates.len() == kept.len() {
            kept.iter().map(|(_, _, class)| is_end(*class)).collect()
        } else if candidates.len() == 1 {
            vec![true]
        } else if is_japanese {
            let next = |candidate: &Candidate| kept.iter().find(|(first, ..)| *first > candidate.at).is_some_and(|(_, _, class)| is_end(*class));
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

/// A word of a message that may be meant as a pattern.
#[derive(Clone, Debug)]
struct Candidate {
    at: usize,
    wish: Wish,
    /// Whether it is marked: in quotes, with `npub1`, or after `starts with`.
    is_strong: bool,
    /// Whether it follows `my name is`.
    is_name: bool,
}

#[derive(Default, Debug)]
struct Wishes {
    all: Vec<Candidate>,
    /// Words that are neither known nor patterns.
    unread: usize,
    links: usize,
    of_links: Vec<Pattern>,
}

fn patterns_of(wishes: impl IntoIterator<Item = Wish>) -> Vec<Pattern> {
    let mut patterns: Vec<Pattern> = Vec::new();
    for wish in wishes {
        if !patterns.contains(&wish.pattern) {
            patterns.push(wish.pattern);
        }
    }
    patterns
}

/// Shows wishes of which at least one is impossible as written.
fn offer(wishes: Vec<Wish>) -> Intent {
    let reason = match wishes.iter().find_map(|wish| wish.reason.clone()) {
        Some(LookAlikeReason::Impossible(character)) => OfferReason::Impossible(character),
        Some(LookAlikeReason::Accent) => OfferReason::Accent,
        Some(LookAlikeReason::OtherScript(character, latin)) => OfferReason::OtherScript(character, latin),
        Some(LookAlikeReason::Unsure) | None => OfferReason::Unsure,
    };
    Intent::Offer(patterns_of(wishes), reason)
}

/// The harder patterns, if one is much easier than all others.
pub(super) fn uneven(patterns: &[Pattern]) -> Option<Intent> {
    let easiest = patterns.iter().min_by(|one, other| {
        one.difficulty().candidates().total_cmp(&other.difficulty().candidates())
    })?;
    let harder: Vec<Pattern> = patterns.iter().filter(|pattern| *pattern != easiest).cloned().collect();
    let least = harder.iter().map(|pattern| pattern.difficulty().candidates()).min_by(f64::total_cmp)?;
    (least > UNEVEN * easiest.difficulty().candidates())
        .then(|| Intent::Offer(harder, OfferReason::Uneven(easiest.clone())))
}

/// The words of a full name as one pattern.
fn joined(candidates: &[Candidate]) -> Option<Pattern> {
    let text: String = candidates.iter().map(|candidate| candidate.wish.pattern.as_str().trim_start_matches('~')).collect();
    text.parse().or_else(|_| format!("~{text}").parse()).ok()
}

/// The inner part of `*steve*`.
fn emphasised(word: &str) -> Option<&str> {
    let inner = word.strip_prefix('*')?;
    let inner = inner.strip_suffix('*').unwrap_or(inner);
    (word.ends_with('*') && inner.chars().all(char::is_alphanumeric)).then_some(inner)
}

/// Whether a token is a whole npub, another Nostr address, an invoice or a key in hex.
fn is_foreign_thing(token: &Token) -> bool {
    let word = token.written.trim_start_matches("nostr:");
    let is_address = ["nprofile1", "note1", "nevent1", "naddr1", "lnbc", "lnurl1", "bc1q", "bc1p"];
    let is_hex = word.len() == 64 && word.chars().all(|c| c.is_ascii_hexdigit());
    (word.starts_with("npub1") && word.len() >= NPUB - 3) || (word.len() > 12 && is_address.iter().any(|start| word.starts_with(start))) || is_hex
}

/// Whether a word has letters of a script that is neither Latin nor Japanese.
fn is_other_script(word: &str) -> bool {
    let is_other = |c: char| c.is_alphabetic() && !matches!(c, '\0'..='\u{24f}' | '\u{1e00}'..='\u{1eff}' | '\u{3041}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '々');
    word.chars().any(is_other)
}

/// Splits words such as `es-tu`, if a part of them is known.
fn split_hyphens(tokens: &[Token]) -> Vec<Token> {
    let split = |token: &Token| {
        let pieces: Vec<Token> = token.written.split('-').filter(|piece| !piece.is_empty()).map(|piece| Token { written: piece.to_owned(), word: plain(piece), ..token.clone() }).collect();
        let is_known = pieces.len() > 1 && token.kind == Kind::Word && !vocabulary::find(&pieces).is_empty();
        if is_known { pieces } else { vec![token.clone()] }
    };
    tokens.iter().flat_map(split).collect()
}

/// Joins words that are spelt letter by letter, as in `m zero c t`, and `hex cafe` to `hex:cafe`.
fn join_spelt(tokens: &[Token]) -> Vec<Token> {
    let digits: Vec<Option<char>> = {
        let found = vocabulary::find(tokens);
        let digit = |at: usize| found.iter().find(|found| found.class == Class::Number && found.at == [at]).and_then(|found| found.digit);
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
        let is_spelt = is_letter(at) && is_possible && ((has_digit && pieces > 1) || pieces > 3 || (pieces > 2 && pieces == tokens.len()));
        if is_spelt {
            // "m zero c tane": the rest of a dictated word.
            let is_rest = |token: &Token| token.kind == Kind::Word && token.written.len() < 8 && Pattern::parse(&token.written).is_ok();
            let has_rest = has_digit && end + 1 == tokens.len() && is_rest(&tokens[end]);
            end += usize::from(has_rest);
            let text: String = (at..end).map(|at| digits[at].map_or(tokens[at].written.clone(), String::from)).collect();
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
fn romaji(kana: &str) -> Option<String> {
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
fn has_secret_key(text: &str) -> bool {
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
