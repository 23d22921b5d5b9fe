//! Decisions about the messages of a list such as those in `tests/messages`, by a bot that is idle
//! but for the asker's own jobs.

use super::request::{Intent, MessageReading, RequestedKeys};
use super::{Decision, Facts, decide, read};
use crate::config::Limits;
use crate::job::{Asker, JobId, JobSpec, Priority, RumorId, Ticket};
use crate::key::Npub;
use crate::language::Language;
use crate::ledger::{AskerView, Effect, Job, JobState};
use crate::pattern::{Pattern, Rate};
use crate::scheduler::{Shares, WaitEstimate};
use crate::vault::Rumor;
use std::time::Duration;

/// The time of the decisions, in Unix seconds.
pub const NOW: u64 = 1_800_000_000;
/// The rate of the devices: about that of one large GPU.
const RATE: f64 = 150e9;

/// The id of each message with the label of the decision about it. Messages whose
/// context or language cannot be read are left out.
pub fn decisions(file: &str) -> Vec<(String, String)> {
    let one = |line: &str| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [id, language, context, message, ..] = columns.as_slice() else { return None };
        let asker = asker(context, Language::from_code(language)?)?;
        Some(((*id).to_owned(), label_of(&message.replace("\\n", "\n"), &asker)))
    };
    file.lines().filter_map(one).collect()
}

/// The label of the decision about one message.
pub fn label_of(message: &str, asker: &AskerView) -> String {
    let limits = limits();
    let request = read(&rumor(message));
    let reading = request.reading(asker);
    label(&reading, decide(&request, &reading, &Facts::idle(&limits, asker, Rate(RATE), NOW)))
}

/// The kind of a decision in few words, such as `search:m0c` or `status`.
fn label(reading: &MessageReading, (effect, reply): Decision) -> String {
    let listed = |patterns: &[Pattern]| patterns.iter().map(Pattern::as_str).collect::<Vec<_>>().join(",");
    let target = |target: &RequestedKeys| match target {
        RequestedKeys::Patterns(patterns) => listed(patterns),
        RequestedKeys::Best(best) => best.to_string(),
    };
    let topic = reply.map_or("", |reply| reply.topic);
    let text = match (&effect, &reading.intent) {
        (Effect::Accept(..), Intent::Search(wanted, _)) => return format!("search:{}", target(wanted)),
        (Effect::Cancel(jobs), _) if jobs.len() == 1 => return format!("cancel:{}", jobs[0].0),
        (_, Intent::Offer(patterns, _)) => return format!("offer:{}", listed(&patterns[..1])),
        (_, Intent::Explain(wanted)) if topic == "explain" => return format!("explain:{}", target(wanted)),
        (_, Intent::Language(language)) => return format!("lang:{}", language.code()),
        (Effect::Cancel(_), _) => "cancel",
        (Effect::Resend(_), _) => "resend",
        (Effect::Stop, _) => "stop",
        (Effect::Start, _) => "start",
        (Effect::Forget, _) => "delete",
        _ => match topic {
            "" => "ignore",
            "no-open-job" | "cancel-one" => "cancel",
            "show-delete" => "delete",
            "show-stop" => "stop",
            "status" | "no-such-job" | "already-searching" => "status",
            "no-such-key" | "no-key" => "resend",
            "split-help" | "bad-point" | "no-point" | "point-alone" => "help-split",
            "answer-who" => "who",
            "answer-price" => "price",
            "answer-safety" | "secret-key" => "safety",
            "answer-import" => "import",
            "languages" => "lang",
            "thanks-answer" => "thanks",
            "hello" => "greeting",
            "chat-answer" | "foreign-language" => "smalltalk",
            "bad-word" => "letters",
            "help" | "kinds" | "which-next" | "latin-letters" | "seed-answer" => "help",
            _ => "refused",
        },
    };
    text.to_owned()
}

/// The limits of a bot without a configuration of its own.
pub fn limits() -> Limits {
    Limits {
        open_jobs_per_asker: 3,
        jobs_per_day: 20,
        prefixes_per_job: 16,
        longest_expected_time: Duration::from_secs(86_400),
        give_up_after: Duration::from_secs(30 * 86_400),
        wraps_per_second: 50,
        wraps_burst: 500,
        new_askers_per_minute: 100,
        answers_per_hour: 60,
        answers_per_second: 200,
    }
}

/// A message with this text.
pub fn rumor(text: &str) -> Rumor {
    Rumor {
        id: RumorId([1; 32]),
        author: Asker([2; 32]),
        kind: 14,
        content: text.to_owned(),
        created_at: NOW,
        subject: None,
        deletes: Vec::new(),
        encryption_key: None,
        other_receivers: 0,
        ticket: None,
    }
}

/// An open job for a pattern, accepted a minute ago.
pub fn job(id: i64, pattern: &str, language: Language) -> Job {
    let spec = JobSpec::local(pattern.parse().into_iter().collect());
    Job {
        ticket: Ticket(Vec::new()),
        id: JobId(id),
        rumor: RumorId([1; 32]),
        state: JobState::Accepted,
        accepted_at: NOW - 60,
        seen_on: Vec::new(),
        spec: JobSpec { asker: Asker([2; 32]), expires_at: NOW + 86_400, ..spec },
        language,
    }
}

/// An asker in one of the contexts of the lists.
pub fn asker(context: &str, language: Language) -> Option<AskerView> {
    let known = AskerView { language, ..AskerView::default() };
    Some(match context {
        "new" => AskerView::default(),
        "known" => known,
        "job" => AskerView { open: vec![job(7, "m0ctane5", language)], ..known },
        "done" => AskerView { results: vec![JobId(6)], ..known },
        _ => return None,
    })
}

impl<'a> Facts<'a> {
    /// The facts of an idle bot with this rate.
    pub fn idle(limits: &'a Limits, asker: &'a AskerView, rate: Rate, now: u64) -> Facts<'a> {
        Facts {
            limits,
            asker,
            shares: Shares {
                pool_part: 1.0,
                top_words_part: 1.0,
                whole_keys_part: 1.0,
                own_split_part: 1.0,
                part_of_one_more: 1.0,
                ..Shares::default()
            },
            rate: Some(rate),
            whole_keys_rate: Some(rate),
            next_job: JobId(8),
            half: None,
            queue: WaitEstimate::default(),
            page: None,
            is_stranger: false,
            undelivered: 0.0,
            bot: Npub([1; 32]),
            priority: Priority::New,
            is_crowded_out: false,
            paid: 0,
            hours: None,
            is_stopped: false,
            now,
        }
    }
}
