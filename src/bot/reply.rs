//! Everything the bot says, as values; their text is what is sent.

use crate::duration::humanize;
use crate::job::JobId;
use crate::key::HalfPointError;
use crate::ledger::HalfUse;
use crate::message::WorkWanted;
use crate::pattern::{Difficulty, NINETY_FIVE_PERCENT, Pattern, PatternError, Rate};
use std::fmt;
use std::time::Duration;

/// Jobs named in a list before the rest is counted.
const JOBS_LISTED: usize = 8;
/// Jobs that have a line of their own in a status.
const JOBS_SHOWN: usize = 5;
/// Characters for the prefixes of a job where it is accepted, and in a line of a status; the rest
/// is counted.
const PATTERNS_ACCEPTED: usize = 400;
const PATTERNS_SHOWN: usize = 90;
/// Characters of an asker's own word that are repeated to them.
const WORD_SHOWN: usize = 24;

/// An answer.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    Accepted(Acceptance),
    Help {
        open_jobs: usize,
        rate: Option<Rate>,
    },
    Status {
        open: Vec<JobLine>,
        results: Vec<JobId>,
        open_jobs: usize,
        rate: Option<Rate>,
    },
    Cancelled(Vec<JobId>),
    NothingToCancel {
        asked: Option<JobId>,
        open: Vec<JobId>,
    },
    SentAgain(JobId),
    NothingToResend {
        asked: Option<JobId>,
        kept: Vec<JobId>,
    },
    BadWords(Vec<(String, PatternError)>),
    Sentence(Vec<Pattern>),
    TooManyPrefixes {
        asked: usize,
        allowed: usize,
    },
    AlreadySearching {
        job: JobId,
    },
    TooManyOpen {
        open: Vec<JobId>,
        allowed: usize,
    },
    TooManyToday {
        allowed: usize,
        wait_seconds: u64,
    },
    TooHard {
        expected: Duration,
        limit: Duration,
        rate: Rate,
        characters: u32,
    },
    /// No device has a rate, and the request is longer than so many characters.
    NotMeasured {
        characters: u32,
    },
    Nothing,
    TextOnly,
    NoGroups,
    SplitHelp,
    BadPoint(Option<HalfPointError>),
    PointAlone,
    HalfUsed(HalfUse),
    /// A request by NIP-04 of somebody who shows no sign of reading anything else.
    NeedsSealed,
    /// A request from before a restore of the ledger.
    Restored,
    /// A flood: a new asker is asked for proof of work.
    WorkWanted(WorkWanted),
    Stopped {
        open: usize,
    },
    Started,
    Forgotten {
        open: usize,
    },
}

/// A job, accepted.
#[derive(Clone, PartialEq, Debug)]
pub struct Acceptance {
    pub job: JobId,
    pub patterns: Vec<Pattern>,
    pub difficulty: Difficulty,
    /// What the job is searched at.
    pub rate: Option<Rate>,
    pub neighbours: Neighbours,
    pub expensive: bool,
}

/// Whom a new job shares the devices with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Neighbours {
    /// Other jobs of the pool, which cost it nothing but a wait for its turn, where it is as easy
    /// as they are; and split jobs, which leave the pool this part of the devices.
    InPool { jobs: usize, split_jobs: usize, part: f64, queue: Duration },
    /// A split job has this part of the devices.
    Apart { part: f64 },
}

/// One open job in a status.
#[derive(Clone, PartialEq, Debug)]
pub struct JobLine {
    pub job: JobId,
    pub patterns: Vec<Pattern>,
    pub waited: Duration,
    pub difficulty: Option<Difficulty>,
    /// What it is searched at.
    pub rate: Option<Rate>,
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reply::Accepted(accepted) => accepted.fmt(f),
            Reply::Help { open_jobs, rate } => {
                writeln!(f, "I find Nostr keys whose npub starts as you like. Send the characters after npub1:")?;
                writeln!(f, "m0ctane")?;
                writeln!(f, "Several words are several requests; the first found ends the job.")?;
                writeln!(f, "status: your jobs. cancel: stop them (or: cancel 12). resend: the last key again.")?;
                writeln!(f, "If your request is also a command, put find before it: find status")?;
                writeln!(
                    f,
                    "The key is made on my operator's machine, unless you keep half of it: then my answer is of no use to \
                     anybody but you. How: help split"
                )?;
                writeln!(f, "stop: I say nothing more. delete: I forget what I know of you.")?;
                write!(f, "{}", at_work(*open_jobs, *rate))
            }
            Reply::Status { open, results, open_jobs, rate } => {
                for line in open.iter().take(JOBS_SHOWN) {
                    writeln!(f, "{}", line.text())?;
                }
                if open.len() > JOBS_SHOWN {
                    writeln!(f, "And {} more.", open.len() - JOBS_SHOWN)?;
                }
                if open.is_empty() {
                    writeln!(f, "You have no open job. Send a prefix to start one.")?;
                }
                if !results.is_empty() {
                    writeln!(f, "Keys I can send again: {}.", list(results))?;
                }
                write!(f, "{}", at_work(*open_jobs, *rate))
            }
            Reply::Cancelled(jobs) => match jobs.as_slice() {
                [job] => write!(f, "Job {job} is cancelled."),
                jobs => write!(f, "Jobs {} are cancelled.", list(jobs)),
            },
            Reply::NothingToCancel { asked, open } => {
                match asked {
                    Some(asked) => write!(f, "You have no open job {asked}.")?,
                    None => write!(f, "You have no open job to cancel.")?,
                }
                match open.as_slice() {
                    [] => write!(f, " Send a prefix to start one."),
                    open => write!(f, " Yours are {}; say for example: cancel {}", list(open), open[0].0),
                }
            }
            Reply::SentAgain(job) => write!(
                f,
                "The key of job {job} is on its way again. It is the same message, so a client that has it already \
                 shows it only once, further up."
            ),
            Reply::NothingToResend { asked, kept } => {
                match asked {
                    Some(asked) => write!(f, "I keep no key of a job {asked} of yours.")?,
                    None => write!(f, "I keep no key of yours.")?,
                }
                match kept.as_slice() {
                    [] => write!(f, " Once a job is done, resend repeats its message."),
                    kept => write!(f, " I can send {} again; say for example: resend {}", list(kept), kept[0].0),
                }
            }
            Reply::BadWords(words) => {
                for (word, error) in words {
                    writeln!(f, "{}: {error}.", shown(word))?;
                }
                write!(f, "Nothing was started. Send only the prefix, like: m0ctane (or: help)")
            }
            Reply::Sentence(patterns) => {
                writeln!(f, "I read every word as a prefix, and this looks like a sentence. Nothing was started.")?;
                match patterns.iter().max_by_key(|pattern| pattern.as_str().len()) {
                    Some(longest) => write!(f, "Send only the prefix, like: find {longest}"),
                    None => write!(f, "Send only the prefix, like: m0ctane"),
                }
            }
            Reply::TooManyPrefixes { asked, allowed } => write!(
                f,
                "That is {asked} words, and I take at most {allowed} prefixes a job. Send the {allowed} you like best."
            ),
            Reply::AlreadySearching { job } => write!(
                f,
                "I am searching for exactly that already, as job {job}. Send status to see how it goes, or: cancel {}",
                job.0
            ),
            Reply::TooManyOpen { open, allowed } => write!(
                f,
                "You have {} open jobs ({}), and {allowed} is the limit. Wait for one to end, or stop one, for example: \
                 cancel {}",
                open.len(),
                list(open),
                open.first().map_or(1, |job| job.0)
            ),
            Reply::TooManyToday { allowed, wait_seconds } => write!(
                f,
                "You have started {allowed} jobs in the last 24 hours, and that is the limit. The next one works in {}.",
                humanize(Duration::from_secs(*wait_seconds))
            ),
            Reply::TooHard { expected, limit, rate, characters } => {
                write!(
                    f,
                    "That would take about {} at {rate}, and I take nothing that is expected to take longer than {}.",
                    humanize(*expected),
                    humanize(*limit)
                )?;
                match characters {
                    0 => write!(f, " At this rate I can take no request at all now; try again later."),
                    1 => write!(f, " One character would be accepted now."),
                    _ => write!(f, " Up to {characters} characters would be accepted now."),
                }
            }
            Reply::NotMeasured { characters } => write!(
                f,
                "My speed is not measured now, so I cannot say how long that takes, and I promise nothing blindly. Up to \
                 {characters} characters would be accepted now; for more, try again in a minute."
            ),
            Reply::Nothing => write!(
                f,
                "I see no word in your message. Send the characters your npub should have after npub1, like: m0ctane \
                 (or: help)"
            ),
            Reply::TextOnly => write!(f, "I cannot read files. Send a prefix as text, like: m0ctane (or: help)"),
            Reply::NoGroups => write!(
                f,
                "This message went to several people, and a key is for you alone. Ask me in a chat with nobody else."
            ),
            Reply::SplitHelp => write!(
                f,
                "Make a secret half with: npubbot split new m0ctane (or the web page that comes with npubbot), and send me \
                 the line it shows:\nsplit POINT m0ctane\nI answer with a tweak, which is no secret; only your half and the \
                 tweak together make the key, with: npubbot combine"
            ),
            Reply::BadPoint(error) => {
                match error {
                    Some(error) => write!(f, "I cannot use that point: {error}.")?,
                    None => write!(f, "I see no point in that.")?,
                }
                write!(f, " Nothing was started. Send: split POINT m0ctane (or: help split)")
            }
            Reply::PointAlone => write!(
                f,
                "I see your point but no prefix. Send both in one message, like: split POINT m0ctane (or: help split)"
            ),
            Reply::HalfUsed(used) => {
                let what = match used {
                    HalfUse::Open => "is being searched for already",
                    HalfUse::Spent => "has served for a key already",
                };
                write!(
                    f,
                    "This half, or one related to it, {what}. Two keys of one half betray each other: whoever has one \
                     finds the other. Make a new half for each key, with: npubbot split new"
                )
            }
            Reply::NeedsSealed => write!(
                f,
                "Your client sent this the old way (NIP-04), and a secret key does not travel like that. Ask me from a \
                 client with sealed messages (NIP-17), such as Amethyst, 0xchat, Coracle or Nostur, and let it publish \
                 your DM relays. Or keep the secret half yourself, which works from here: help split"
            ),
            Reply::Restored => f.write_str(
                "I was restored from a backup after you sent this, and may have answered it before. If you still want it, \
                 send it once more; for a split key, make a new half first.",
            ),
            Reply::WorkWanted(work) => write!(
                f,
                "More strangers write to me now than I can serve, and you are new to me. Nothing was started. Send your request \
                 again in {} (later if they go on), or at once with proof of work (NIP-13): {bits} leading zero bits in the \
                 id of the gift wrap (kind 1059), promised in its tag [\"nonce\", \"…\", \"{bits}\"].",
                humanize(work.ends_in.max(Duration::from_secs(1))),
                bits = work.bits
            ),
            Reply::Stopped { open } => write!(
                f,
                "{}I say nothing more to you. To hear from me again, send: start",
                match open {
                    0 => String::new(),
                    1 => "Your open job is cancelled. ".to_owned(),
                    _ => format!("Your {open} open jobs are cancelled. "),
                }
            ),
            Reply::Started => write!(f, "Here I am again. Send a prefix, like: m0ctane (or: help)"),
            Reply::Forgotten { open } => write!(
                f,
                "Done: your jobs{} and messages are gone from my ledger, keys I could have sent again too. The bare numbers \
                 of your messages go within 16 days; until then they keep old copies from being answered anew. When you started the \
                 jobs of the last 24 hours is kept for that long: they count for the limit of a day.",
                if *open > 0 { " (open ones are cancelled)" } else { "" }
            ),
        }
    }
}

impl fmt::Display for Acceptance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Job {}: searching for {}.", self.job, requested(&self.patterns, PATTERNS_ACCEPTED))?;
        writeln!(f, "{}", pace(self.difficulty, self.rate))?;
        match self.neighbours {
            Neighbours::InPool { jobs, split_jobs, part, queue } => {
                writeln!(f, "{}{}", in_pool(jobs, queue), beside(split_jobs, part))?;
                if self.expensive {
                    writeln!(f, "A key worth waiting for may be worth keeping half of it yourself: help split")?;
                }
                write!(f, "The key comes in this chat.")?;
            }
            Neighbours::Apart { part } => {
                writeln!(f, "It is searched at your own point, on {:.0} % of my devices.", 100.0 * part)?;
                write!(f, "What I send then is no secret: only with your half does it make the key.")?;
            }
        }
        write!(f, " To stop: cancel {}", self.job.0)
    }
}

impl JobLine {
    fn text(&self) -> String {
        let mut text = format!(
            "Job {}: {}, waited {}",
            self.job,
            requested(&self.patterns, PATTERNS_SHOWN),
            humanize(self.waited)
        );
        if let (Some(difficulty), Some(rate)) = (self.difficulty, self.rate)
            && let Some(expected) = difficulty.expected_time(rate)
        {
            let chance = 100.0 * difficulty.chance_after(rate.0 * self.waited.as_secs_f64());
            text += &format!(" of about {} expected (chance so far {chance:.0} %)", humanize(expected));
        }
        text + "."
    }
}

/// `npub1cat`; `npub1cat or npub1dad, whichever is found first`: as many as `room` characters hold,
/// one at least.
fn requested(patterns: &[Pattern], room: usize) -> String {
    let mut named: Vec<String> = Vec::new();
    let mut length = 0;
    for (number, pattern) in patterns.iter().enumerate() {
        let name = format!("npub1{pattern}");
        length += name.len() + ", ".len();
        if number > 0 && length > room {
            named.push(format!("{} more", patterns.len() - number));
            break;
        }
        named.push(name);
    }
    match named.as_slice() {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        [many @ .., last] => format!("{} or {last}, whichever is found first", many.join(", ")),
    }
}

fn pace(difficulty: Difficulty, rate: Option<Rate>) -> String {
    let odds = format!("One key in {difficulty} will do.");
    match rate.and_then(|rate| Some((rate, difficulty.expected_time(rate)?))) {
        None => format!("{odds} My speed is not measured yet; send status later for the expected time."),
        Some((rate, expected)) => format!(
            "{odds} At {rate} that takes {}; in 95 of 100 cases {}.",
            bounded("about", expected),
            bounded("at most", expected.mul_f64(NINETY_FIVE_PERCENT))
        ),
    }
}

/// `about 4 seconds`, but `less than a second`.
fn bounded(how: &str, time: Duration) -> String {
    let text = humanize(time);
    if text.starts_with("less") { text } else { format!("{how} {text}") }
}

fn in_pool(others: usize, queue: Duration) -> String {
    match others {
        _ if !queue.is_zero() => format!(
            "{others} other jobs share the pool. Older ones that are as easy have their keys first: about {} until it is the turn of \
             this one.",
            humanize(queue)
        ),
        0 => "It is the only job in the pool.".to_owned(),
        1 => "One other job shares the pool and does not slow it.".to_owned(),
        _ => format!("{others} other jobs share the pool and do not slow it."),
    }
}

/// Split jobs, which take turns with the pool.
fn beside(split_jobs: usize, part: f64) -> String {
    let (jobs, take) = match split_jobs {
        0 => return String::new(),
        1 => ("One split job".to_owned(), "takes"),
        _ => (format!("{split_jobs} split jobs"), "take"),
    };
    format!(" {jobs} {take} turns with the pool, which has {:.0} % of my devices now.", 100.0 * part)
}

fn at_work(jobs: usize, rate: Option<Rate>) -> String {
    let jobs = match jobs {
        0 => "No job is open".to_owned(),
        1 => "One job is open".to_owned(),
        _ => format!("{jobs} jobs are open"),
    };
    match rate {
        Some(rate) => format!("{jobs}; I search at {rate}."),
        None => format!("{jobs}; my speed is not measured yet."),
    }
}

/// `#1, #2`, and how many more.
fn list(jobs: &[JobId]) -> String {
    let mut names: Vec<String> = jobs.iter().take(JOBS_LISTED).map(ToString::to_string).collect();
    if jobs.len() > JOBS_LISTED {
        names.push(format!("{} more", jobs.len() - JOBS_LISTED));
    }
    names.join(", ")
}

/// An asker's word, cut short.
fn shown(word: &str) -> String {
    let mut start: String = word.chars().take(WORD_SHOWN).collect();
    if start.len() < word.len() {
        start.push('…');
    }
    start
}
