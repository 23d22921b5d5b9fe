//! Requests: who wrote a message, how it came, its text; and what the asker wants.

use super::policy::effort;
use super::reading::{WORDS_READ, depends_on_chat, read_text, read_text_within};
use crate::job::{Asker, EncryptionKey, JobId, RumorId};
use crate::key::{HalfPoint, HalfPointError, Work};
use crate::language::Language;
use crate::ledger::AskerView;
use crate::pattern::{Best, Effort, Pattern, PatternError};
use crate::vault::{Asked, Rumor, Wanted};

/// The most prefixes of a split request that are read, besides its first word and its point.
pub const MAX_SPLIT_PREFIXES: usize = WORDS_READ - 2;

/// A message: who wrote it, how it came, and its text. [`AskerRequest::reading`] says what is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AskerRequest {
    pub(super) asker: Asker,
    pub(super) encryption_key: Option<EncryptionKey>,
    pub(super) subject: Option<String>,
    pub(super) form: MessageForm,
    /// The text without the proof of work.
    text: String,
    half: Option<HalfPoint>,
    work: Option<Work>,
}

impl AskerRequest {
    /// The meaning of the text for this asker, and the language of the answer.
    pub fn reading(&self, asker: &AskerView) -> MessageReading {
        let open: Vec<_> = asker.open.iter().map(|job| (job.id, job.spec.patterns.clone())).collect();
        let delivered = open.is_empty() && !asker.results.is_empty();
        let mut reading = read_text(&self.text, &ChatContext { language: asker.language, open, delivered });
        if self.work.is_some() && reading.intent == Intent::Say("nothing") {
            reading.intent = Intent::Say("work-alone");
        }
        // What a NIP-04 message asks for is not done, so no word of it needs an explanation.
        let also_a_prefix = reading.also_a_prefix.filter(|_| !self.is_nip04());
        MessageReading { intent: with_ticket(reading.intent, &self.text), also_a_prefix, ..reading }
    }

    /// The proof of work in the text, the first if there are several. The caller checks it.
    pub fn work(&self) -> Option<Work> {
        self.work.filter(|_| self.form == MessageForm::Sealed)
    }

    /// The half point in the text. The caller looks up whether it was used before.
    pub fn half(&self) -> Option<HalfPoint> {
        self.half.filter(|_| self.form == MessageForm::Sealed)
    }

    /// Whether the message came by NIP-04. Its answer goes the same way.
    pub fn is_nip04(&self) -> bool {
        self.form == MessageForm::Nip04
    }
}

/// The kind of a message, besides its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum MessageForm {
    /// Text in a gift wrap (NIP-17), to us only.
    Sealed,
    /// A message of an old client (NIP-04). Only its language is read.
    Nip04,
    /// A file (NIP-17). Only its address was sent.
    File,
    /// A message to several receivers, or an invitation to a group.
    Group,
    /// A deletion of these messages (NIP-09).
    Deletion(Vec<RumorId>),
}

/// Takes a message apart. Never panics, for any text.
pub fn read(rumor: &Rumor) -> AskerRequest {
    let (text, work) = Work::take_from(&rumor.content);
    AskerRequest {
        asker: rumor.author,
        encryption_key: rumor.encryption_key,
        subject: rumor.subject.clone(),
        form: form(rumor),
        half: text.split_whitespace().filter(|word| HalfPoint::is_meant(word)).find_map(|word| word.parse().ok()),
        text,
        work,
    }
}

fn form(rumor: &Rumor) -> MessageForm {
    match rumor.kind {
        4 => MessageForm::Nip04,
        5 => MessageForm::Deletion(rumor.deletes.clone()),
        15 => MessageForm::File,
        // MLS (Marmot): an invitation, as White Noise sends it. The bot cannot join.
        444 => MessageForm::Group,
        _ if rumor.other_receivers > 0 => MessageForm::Group,
        _ => MessageForm::Sealed,
    }
}

/// The keys that a message may ask for; `None` if it asks for none. Runs inside the vault, for the
/// ticket. The vault does not know the language of the chat, which may matter to the reading: the
/// ticket is for the keys that are asked for in any. An accepted job searches for some of these.
pub fn asked(rumor: &Rumor) -> Option<Asked> {
    if form(rumor) != MessageForm::Sealed {
        return None;
    }
    asked_within(&Work::take_from(&rumor.content).0, &mut effort())
}

/// The keys that a text may ask for in any language. All readings share one budget.
pub(super) fn asked_within(text: &str, effort: &mut Effort) -> Option<Asked> {
    let languages = if depends_on_chat(text) { &Language::ALL[..] } else { &Language::ALL[..1] };
    let mut asked: Vec<Pattern> = Vec::new();
    for &language in languages {
        let context = ChatContext { language, ..ChatContext::default() };
        match read_text_within(text, &context, effort).intent {
            Intent::Search(RequestedKeys::Patterns(patterns), None) => {
                for pattern in patterns {
                    if !asked.contains(&pattern) {
                        asked.push(pattern);
                    }
                }
            }
            Intent::Search(target, half) => return Some(Asked { wanted: target.wanted(), half }),
            _ => {}
        }
    }
    (!asked.is_empty()).then_some(Asked { wanted: Wanted::Patterns(asked), half: None })
}

/// The intent. If the ticket of the message is not for this search, because another language reads
/// another one, what it would be is shown instead.
fn with_ticket(intent: Intent, text: &str) -> Intent {
    let Intent::Search(target, half) = &intent else { return intent };
    let is_asked = |asked: Asked| {
        asked.half == *half
            && match (target, &asked.wanted) {
                (RequestedKeys::Patterns(patterns), Wanted::Patterns(asked)) => {
                    patterns.iter().all(|one| asked.contains(one))
                }
                (RequestedKeys::Best(best), Wanted::Rarest(family)) => *family == best.family,
                _ => false,
            }
    };
    match intent {
        intent if asked_within(text, &mut effort()).is_some_and(is_asked) => intent,
        Intent::Search(_, Some(_)) => Intent::SplitHelp,
        Intent::Search(RequestedKeys::Patterns(patterns), None) => Intent::Offer(patterns, OfferReason::Unsure),
        Intent::Search(target, None) => Intent::Explain(target),
        intent => intent,
    }
}

/// What a search is for.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum RequestedKeys {
    /// Any of these patterns, without repeats, in the order written.
    Patterns(Vec<Pattern>),
    /// The rarest key seen in a time.
    Best(Best),
}

impl RequestedKeys {
    /// The keys that such a search may find, for a ticket.
    pub fn wanted(self) -> Wanted {
        match self {
            RequestedKeys::Patterns(patterns) => Wanted::Patterns(patterns),
            RequestedKeys::Best(best) => Wanted::Rarest(best.family),
        }
    }
}

/// What an asker wants of the bot.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Intent {
    /// A search, with the asker's own point if the asker keeps half of the key.
    Search(RequestedKeys, Option<HalfPoint>),
    /// `split` without a point, or with a word that is meant as a point and is none.
    BadPoint(Option<HalfPointError>),
    /// Patterns that are shown, ready to send; nothing starts.
    Offer(Vec<Pattern>, OfferReason),
    Help,
    SplitHelp,
    Status,
    /// Cancel a job; `None`: all of the asker's jobs.
    Cancel(Option<JobId>),
    /// `cancel` is shown, ready to send; it is not certain enough to be obeyed.
    ShowCancel,
    /// Resend a result; `None`: the newest.
    Resend(Option<JobId>),
    /// The asker wants no more messages.
    Stop,
    Start,
    /// The asker wants their data deleted.
    Delete,
    /// A question about the meaning and the expected time of a search.
    Explain(RequestedKeys),
    /// Words that are not patterns, each with the reason; at most three.
    BadWords(Vec<(String, PatternError)>),
    /// A pattern in another notation. Holds the nearest pattern.
    Unsupported(Option<Pattern>),
    TooManyWords(usize),
    /// Answers in this language from now on.
    Language(Language),
    /// A question about the languages that the bot knows.
    Languages,
    Greeting,
    /// A language that the bot lacks.
    ForeignLanguage,
    /// Something that always has the same answer: the text with this id, such as `chat-answer`.
    Say(&'static str),
}

impl Intent {
    /// A search of the pool for any of these patterns.
    pub fn search(patterns: Vec<Pattern>) -> Intent {
        Intent::Search(RequestedKeys::Patterns(patterns), None)
    }
}

/// The reason why patterns are shown and not searched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OfferReason {
    /// This character cannot occur in an npub.
    Impossible(char),
    /// Only an accent is impossible.
    Accent,
    /// A letter of another script, and the Latin one that it looks like.
    OtherScript(char, char),
    /// It is not certain that the word is meant, for example because of a dot or a hyphen in it.
    Unsure,
    /// The patterns that are more than 1,000 times as hard as the easiest one, which would
    /// always be found first.
    Uneven(Pattern),
    /// The asker has an open job for something else.
    Change(JobId),
}

/// A message's meaning and the language of the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct MessageReading {
    pub(super) intent: Intent,
    /// The language of the answer.
    pub language: Language,
    /// The only word of the message, if it is a command and could be a prefix.
    pub(super) also_a_prefix: Option<Pattern>,
}

/// What is known of an asker when a message is read.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ChatContext {
    /// Language of the chat.
    pub language: Language,
    /// Open jobs with their patterns, oldest first.
    pub open: Vec<(JobId, Vec<Pattern>)>,
    /// Whether a key was delivered and no job is open.
    pub delivered: bool,
}
