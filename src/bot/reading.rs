//! The reading of a message: its text and the context become one [`Intent`]. Pure, and never a
//! guess that costs somebody something.

use super::message::{Message, intent_of};
use super::policy::effort;
use super::request::{ChatContext, Intent, MessageReading, OfferReason, RequestedKeys};
use super::text::{MessageText, Token, TokenKind, has_secret_key, is_foreign_thing, is_other_script};
use super::vocabulary::{self, Class, PhraseMatch};
use super::wishes::{Wish, has_foreign_wildcard, literal, offer, patterns_of, read, wish};
use crate::key::HalfPoint;
use crate::language::Language;
use crate::pattern::{Best, Effort, Pattern};

/// The most words of a message that are read. Nobody means more of them as prefixes.
pub(super) const WORDS_READ: usize = 64;

/// Reads any text, in time linear in its length, besides the bounded time of its patterns.
pub(super) fn read_text(text: &str, context: &ChatContext) -> MessageReading {
    read_text_within(text, context, &mut effort())
}

/// [`read_text`] with the rest of a budget for its patterns.
pub(super) fn read_text_within(text: &str, context: &ChatContext, effort: &mut Effort) -> MessageReading {
    if has_secret_key(text) {
        return plainly(Intent::Say("secret-key"), context);
    }
    let text = MessageText::read(text);
    let words = text.tokens.iter().filter(|token| token.kind != TokenKind::Japanese).count();
    if words > WORDS_READ {
        return plainly(Intent::TooManyWords(words), context);
    }
    let mut message = Message::new(text, context);
    let language = message.answer_language();
    let also_a_prefix = |intent: &Intent, message: &Message<'_>| match intent {
        Intent::Search(RequestedKeys::Patterns(_), None) | Intent::Offer(..) => None,
        // Every manual has the English commands.
        _ if message.is_english_command() => None,
        _ => message.only_word().and_then(|word| Pattern::parse(&word.written).ok()),
    };
    let intent = message.intent(effort);
    let language = match intent {
        Intent::Language(chosen) => chosen,
        Intent::ForeignLanguage => Language::English,
        _ => language,
    };
    let also_a_prefix = also_a_prefix(&intent, &message);
    MessageReading { intent, language, also_a_prefix }
}

/// Whether the language of the chat can matter to the reading of a text.
pub(super) fn depends_on_chat(text: &str) -> bool {
    !vocabulary::find(&MessageText::read(text).tokens).is_empty()
}

fn plainly(intent: Intent, context: &ChatContext) -> MessageReading {
    MessageReading { intent, language: context.language, also_a_prefix: None }
}

impl Message<'_> {
    fn intent(&mut self, effort: &mut Effort) -> Intent {
        if self.tokens.is_empty() {
            return match (self.text.asks, self.text.has_symbol) {
                (true, _) if self.has_job() => Intent::Status,
                (true, _) => Intent::Help,
                (false, true) if self.context.delivered => Intent::Say("thanks-answer"),
                (false, true) => Intent::Say("chat-answer"),
                (false, false) => Intent::Say("nothing"),
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
            return if is_invoice { Intent::Say("answer-price") } else { Intent::Say("chat-answer") };
        }
        let wishes = self.wishes(effort);
        // A list with an error in it: nothing is left out.
        let has_mark = || self.tokens.iter().any(|token| token.written.contains(['?', '[', ']', '*', '~', '=', ':']));
        if wishes.unread > 0 && !self.known.contains(&true) && has_mark() {
            let words: Vec<&str> = self.tokens.iter().map(|token| token.written.as_str()).collect();
            return literal(&words, effort);
        }
        self.choose(wishes)
    }

    fn is_english_command(&self) -> bool {
        self.found.iter().any(|found| found.is_shown && found.language == Language::English)
    }

    /// Reads the forms that the manual names: a command and exactly what belongs to it.
    fn documented(&self, effort: &mut Effort) -> Option<Intent> {
        let first = self.tokens.first()?;
        // A Japanese command has several tokens.
        let is_start = |found: &&PhraseMatch| found.is_shown && found.at.iter().copied().eq(0..found.at.len());
        let shown: Vec<&PhraseMatch> = self.found.iter().filter(is_start).collect();
        let length = shown.iter().map(|found| found.at.len()).max().unwrap_or(1);
        let is = |class: Class| shown.iter().any(|found| found.class == class && found.at.len() == length);
        let rest = &self.tokens[length.min(self.tokens.len())..];
        let written: Vec<&str> = rest.iter().map(|token| token.written.as_str()).collect();
        use Class::{Cancel, Delete, Help, Resend, Start, Status, Stop};
        let command = [Help, Status, Cancel, Resend, Stop, Start, Delete].into_iter().find(|class| is(*class));
        if rest.is_empty() && command.is_some() {
            return command.and_then(intent_of);
        }
        if is(Class::Help) && written == ["split"] {
            return Some(Intent::SplitHelp);
        }
        // A point says enough: the language of the chat decides nothing here.
        let has_point = || rest.iter().any(|token| HalfPoint::is_meant(&token.written));
        if first.word == "split" || (has_point() && self.names_split()) {
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
        let raw: Vec<&str> = self.text.tokens.iter().skip(length).map(|token| token.written.as_str()).collect();
        if let Some(Ok(best)) = Best::read(&raw).filter(|_| is(Class::Explain)) {
            return Some(Intent::Explain(RequestedKeys::Best(best)));
        }
        if let Some(intent) = self.without_target(effort) {
            return Some(intent);
        }
        let is_pattern = self.only_word().is_some_and(|word| read(&word.written, effort).is_ok());
        if has_foreign_wildcard(&self.text.only) && self.text.only.is_ascii() && !is_pattern {
            return Some(literal(&[&self.text.only], effort)).filter(|intent| matches!(intent, Intent::Unsupported(_)));
        }
        let is_only_words = || (length..self.tokens.len()).all(|at| !self.is_around(at) || rest.len() == 1);
        let is_latin = rest.iter().all(|token| matches!(token.kind, TokenKind::Word | TokenKind::Marked));
        if is(Class::Find) && !rest.is_empty() && is_latin && is_only_words() {
            return Some(literal(&written, effort));
        }
        if is(Class::Explain) && rest.is_empty() {
            return Some(Intent::Say("kinds"));
        }
        if is(Class::Explain) && is_latin && is_only_words() {
            let wishes: Option<Vec<Wish>> = rest.iter().map(|token| wish(token, effort)).collect();
            return Some(match wishes {
                Some(wishes) => Intent::Explain(RequestedKeys::Patterns(patterns_of(wishes))),
                None => literal(&written, effort),
            });
        }
        None
    }

    /// Reads `best` with a family and a time, or `surprise`, also in a short sentence.
    fn without_target(&self, effort: &mut Effort) -> Option<Intent> {
        const KEYWORDS: [&str; 7] = ["best", "surprise", "words", "zeros", "s", "m", "h"];
        let is_around =
            |word: &str| (0..self.tokens.len()).any(|at| self.tokens[at].word == word && self.is_around(at));
        let is_meant = |token: &&Token| KEYWORDS.contains(&token.word.as_str()) || !is_around(&token.word);
        let meant: Vec<&str> = self.text.tokens.iter().filter(is_meant).map(|token| token.written.as_str()).collect();
        let around = self.text.tokens.len() - meant.len();
        match Best::read(&meant) {
            Some(Ok(best)) if around < 5 => Some(Intent::Search(RequestedKeys::Best(best), None)),
            Some(Err(_)) if around == 0 => Some(literal(&meant, effort)),
            None if around == 0 && meant.iter().any(|word| ["best", "surprise"].contains(word)) => {
                Some(literal(&meant, effort)).filter(|intent| matches!(intent, Intent::BadWords(_)))
            }
            _ => None,
        }
    }

    /// Whether the message has words for a split key, in any language.
    fn names_split(&self) -> bool {
        vocabulary::find(&self.tokens).iter().any(|found| found.class == Class::Split)
    }

    /// Reads `split <point> pattern …`. The point may be anywhere among the words.
    fn split(&self, words: &[&str], effort: &mut Effort) -> Intent {
        let (points, asked): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| HalfPoint::is_meant(word));
        let point = match points.as_slice() {
            [] if words.is_empty() || (1..self.tokens.len()).filter(|at| self.known[*at]).count() > 1 => {
                return Intent::SplitHelp;
            }
            [] => return Intent::BadPoint(None),
            [first, ..] => first.parse::<HalfPoint>(),
        };
        match point {
            Err(error) => Intent::BadPoint(Some(error)),
            Ok(_) if asked.is_empty() => Intent::Say("point-alone"),
            Ok(point) => match literal(&asked, effort) {
                Intent::Search(target, _) => Intent::Search(target, Some(point)),
                other => other,
            },
        }
    }

    /// Reads a single word. A word that could be a prefix is one, unless it is a command or an
    /// everyday answer.
    fn alone(&self, word: &Token, effort: &mut Effort) -> Option<Intent> {
        let could_be_prefix = read(&word.written, effort).is_ok();
        let own = |class: Class| {
            let mut found = self.of(class).filter(|found| found.at == [0]);
            let is_near =
                |found: &PhraseMatch| found.language == Language::English || found.language == self.context.language;
            found.any(|found| found.is_shown || !could_be_prefix || is_near(found))
        };
        if word.kind == TokenKind::Marked {
            return could_be_prefix.then(|| literal(&[&word.written], effort));
        }
        if !could_be_prefix {
            let is_polite = self.of(Class::Polite).next().is_some();
            let is_praise = |class: Class| class == Class::Thanks && !self.context.delivered && !is_polite;
            let says_nothing = |found: &PhraseMatch| {
                matches!(found.class, Class::Filler | Class::Object | Class::With) || is_praise(found.class)
            };
            return self.found.iter().all(says_nothing).then(|| self.impossible(word, effort));
        }
        let is_talk = own(Class::Greeting) || own(Class::Chat) || (own(Class::Thanks) && own(Class::Polite));
        let (has_job, delivered) = (self.has_job(), self.context.delivered);
        let meanings = [
            (true, Class::Stop),
            (delivered, Class::Thanks),
            (delivered, Class::Another),
            (has_job, Class::Cancel),
            (has_job, Class::Status),
            (has_job, Class::Shorter),
            (is_talk, Class::Thanks),
            (is_talk, Class::Greeting),
            (is_talk, Class::Chat),
        ];
        if let Some((_, class)) = meanings.into_iter().find(|(applies, class)| *applies && own(*class)) {
            return intent_of(class).or_else(|| Some(self.shorter()));
        }
        if self.is_laughter(&word.word) {
            return Some(Intent::Say("chat-answer"));
        }
        if own(Class::Help) {
            return Some(Intent::Help);
        }
        if let Some((class, _)) = vocabulary::misspelt(&word.written, true) {
            return obey(class);
        }
        let is_of_chat = self.context.language != Language::English
            && self.found.iter().any(|found| found.language == self.context.language && found.at == [0]);
        let pattern = read(&word.written, effort).ok()?;
        let says_nothing =
            |found: &PhraseMatch| matches!(found.class, Class::Filler | Class::Object | Class::Polite | Class::Find);
        let is_talk = self.found.iter().any(|found| found.language == self.context.language && !says_nothing(found));
        let is_word = is_of_chat && (is_talk || word.word.len() < 5);
        Some(if is_word { Intent::Offer(vec![pattern], OfferReason::Unsure) } else { Intent::search(vec![pattern]) })
    }

    /// Whether a word is laughter in the language of the chat.
    fn is_laughter(&self, word: &str) -> bool {
        let is_one = |c: char| word.len() > 2 && word.chars().all(|other| other == c);
        self.context.language == Language::Portuguese && is_one('k')
            || self.context.language == Language::Japanese && is_one('w')
    }

    /// The answer to a single word that cannot be searched.
    fn impossible(&self, word: &Token, effort: &mut Effort) -> Intent {
        if let Some((class, _)) = vocabulary::misspelt(&word.written, false) {
            return obey(class).unwrap_or(Intent::Help);
        }
        if is_foreign_thing(word) {
            return if word.word.starts_with("lnbc") {
                Intent::Say("answer-price")
            } else {
                Intent::Say("chat-answer")
            };
        }
        match wish(word, effort) {
            Some(wish) => offer(vec![wish]),
            None if is_other_script(&word.written) => Intent::ForeignLanguage,
            None => literal(&[&word.written], effort),
        }
    }
}

/// The intent of a misspelt command. A misspelt `delete` is only shown.
fn obey(class: Class) -> Option<Intent> {
    if class == Class::Delete { Some(Intent::Say("show-delete")) } else { intent_of(class) }
}
