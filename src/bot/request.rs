//! Requests: who wrote a message, how it came, and its text.

use super::intent::{Context, Intent, Reading};
use super::reading::{WORDS_READ, depends_on_chat, read_text};
use crate::job::{Asker, EncryptionKey, RumorId};
use crate::key::{HalfPoint, SplitWork};
use crate::language::Language;
use crate::ledger::AskerView;
use crate::pattern::Pattern;
use crate::vault::{Asked, Rumor, Wanted};

/// The most prefixes of a split request that are read, besides its first word, its point and its
/// work.
pub const MOST_SPLIT_PREFIXES: usize = WORDS_READ - 3;

/// NIP-04: a message of an old client. Only its text is encrypted.
const KIND_NIP04: u16 = 4;
/// NIP-09: a deletion.
const KIND_DELETION: u16 = 5;
/// MLS (Marmot): an invitation to a group, as White Noise sends it. The bot cannot join.
const KIND_INVITATION: u16 = 444;
/// NIP-17: a file message.
const KIND_FILE: u16 = 15;

/// A message: who wrote it, how it came, and its text. [`Request::reading`] says what is meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    pub(super) asker: Asker,
    pub(super) encryption_key: Option<EncryptionKey>,
    pub(super) subject: Option<String>,
    pub(super) form: Form,
    text: String,
    half: Option<HalfPoint>,
    work: Option<SplitWork>,
}

impl Request {
    /// The meaning of the text for this asker, and the language of the answer.
    pub fn reading(&self, asker: &AskerView) -> Reading {
        let open: Vec<_> = asker.open.iter().map(|job| (job.id, job.spec.patterns.clone())).collect();
        let delivered = open.is_empty() && !asker.results.is_empty();
        let reading = read_text(&self.text, &Context { language: asker.language, open, delivered });
        // What a NIP-04 message asks for is not done, so no word of it needs an explanation.
        Reading { shadowed: reading.shadowed.filter(|_| !self.is_nip04()), ..reading }
    }

    /// The proof of work in the text, the first if there are several. The caller checks it.
    pub fn split_work(&self) -> Option<SplitWork> {
        self.work
    }

    /// The half point of a split request. The caller looks up whether it was used before.
    pub fn half(&self) -> Option<HalfPoint> {
        self.half.filter(|_| self.form == Form::Sealed)
    }

    /// Whether the message came by NIP-04. Its answer goes the same way.
    pub fn is_nip04(&self) -> bool {
        self.form == Form::Nip04
    }
}

/// The kind of a message, besides its text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// Text in a gift wrap (NIP-17), to us only.
    Sealed,
    /// A message of kind 4. Only its language is read.
    Nip04,
    /// A file. Only its address was sent.
    File,
    /// A message to several receivers, or an invitation to a group.
    Group,
    /// A deletion of these messages.
    Deletion(Vec<RumorId>),
}

/// Takes a message apart. Never panics, for any text.
pub fn read(rumor: &Rumor) -> Request {
    let words = || rumor.content.split_whitespace();
    let has_point = words().any(HalfPoint::is_meant);
    let half = match read_text(&rumor.content, &Context::default()).intent {
        Intent::Split(half, _) | Intent::SplitBest(half, _) if has_point => Some(half),
        _ => None,
    };
    Request {
        asker: rumor.author,
        encryption_key: rumor.encryption_key,
        subject: rumor.subject.clone(),
        form: form(rumor),
        text: rumor.content.clone(),
        half,
        work: words().find_map(|word| word.to_lowercase().parse().ok()),
    }
}

fn form(rumor: &Rumor) -> Form {
    match rumor.kind {
        KIND_DELETION => Form::Deletion(rumor.deletes.clone()),
        KIND_FILE => Form::File,
        KIND_NIP04 => Form::Nip04,
        KIND_INVITATION => Form::Group,
        _ if rumor.other_receivers > 0 => Form::Group,
        _ => Form::Sealed,
    }
}

/// The keys that a message may ask for; `None` if it asks for none. Runs inside the vault, for the
/// ticket. The vault does not know the language of the chat, which may matter to the reading: the
/// ticket is for the keys that are asked for in any. An accepted job searches for some of these.
pub fn asked(rumor: &Rumor) -> Option<Asked> {
    if form(rumor) != Form::Sealed {
        return None;
    }
    let languages = if depends_on_chat(&rumor.content) { &Language::ALL[..] } else { &Language::ALL[..1] };
    let mut asked: Vec<Pattern> = Vec::new();
    for &language in languages {
        let context = Context { language, ..Context::default() };
        let (wanted, half) = match read_text(&rumor.content, &context).intent {
            Intent::Search(patterns) => {
                asked.extend(patterns);
                continue;
            }
            Intent::Split(half, patterns) => (Wanted::Patterns(patterns), Some(half)),
            Intent::Best(best) => (Wanted::Rarest(best.family), None),
            Intent::SplitBest(half, best) => (Wanted::Rarest(best.family), Some(half)),
            _ => continue,
        };
        return Some(Asked { wanted, half });
    }
    asked.dedup();
    (!asked.is_empty()).then_some(Asked { wanted: Wanted::Patterns(asked), half: None })
}
