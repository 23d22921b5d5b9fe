//! The texts of the replies, in English. Plain text without markup, because clients show it as it
//! is.
//!
//! One idea per line. Everything that the asker may type next is on a line of its own.

use super::numbers::{expected, odds, plural, speed, time_of_day};
use super::reply::{Acceptance, JobLine, Reply};
use crate::duration::humanize;
use crate::job::JobId;
use crate::key::HalfPointError;
use crate::ledger::HalfUse;
use crate::message::WorkWanted;
use crate::pattern::{Pattern, PatternError, Rate};
use std::fmt;
use std::time::Duration;

/// A prefix for examples.
const EXAMPLE: &str = "m0ctane";
/// Jobs named in a list; further ones are only counted.
const JOBS_LISTED: usize = 8;
/// Jobs with a line of their own in a status.
const JOBS_SHOWN: usize = 5;
/// Characters available for a job's prefixes in its acceptance, and in a line of a status. Further
/// prefixes are only counted.
const PATTERNS_ACCEPTED: usize = 400;
const PATTERNS_SHOWN: usize = 90;
/// Characters shown of a word that the asker wrote.
const WORD_SHOWN: usize = 24;

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self))
    }
}

fn text(reply: &Reply) -> String {
    match reply {
        Reply::Accepted(accepted) => acceptance(accepted),
        Reply::Help { open_jobs, rate } => help(*open_jobs, *rate),
        Reply::Status { open, results, open_jobs, rate } => status(open, results, *open_jobs, *rate),
        Reply::Cancelled(jobs) => match jobs.as_slice() {
            [job] => format!("Job {job} is cancelled."),
            jobs => format!("Jobs {} are cancelled.", list(jobs)),
        },
        Reply::NothingToCancel { asked, open } => {
            let missing = match asked {
                Some(asked) => format!("You have no open job {asked}."),
                None => "You have no open job to cancel.".to_owned(),
            };
            match open.as_slice() {
                [] => format!("{missing}\nTo start one, send a prefix:\n{EXAMPLE}"),
                open => format!("{missing}\nYours are {}. To cancel one, send:\ncancel {}", list(open), open[0].0),
            }
        }
        Reply::SentAgain(job) => format!(
            "The key of job {job} is on its way again.\nIt is the same message. A client that has it already shows it \
             further up."
        ),
        Reply::NothingToResend { asked, kept } => {
            let missing = match asked {
                Some(asked) => format!("I keep no key of a job {asked} of yours."),
                None => "I keep no key of yours.".to_owned(),
            };
            match kept.as_slice() {
                [] => format!("{missing}\nOnce a job is done, resend repeats its message."),
                kept => format!("{missing}\nI can send {} again. Send:\nresend {}", list(kept), kept[0].0),
            }
        }
        Reply::BadWords(words) => bad_words(words),
        Reply::Sentence(patterns) => {
            let longest = patterns.iter().max_by_key(|pattern| pattern.as_str().len());
            let example = longest.map_or(EXAMPLE.to_owned(), |longest| format!("find {longest}"));
            format!("This looks like a sentence. Nothing was started.\nSend only the prefix:\n{example}")
        }
        Reply::Unsupported { nearest } => {
            let refusal = "I search only for the characters right after npub1: no wildcards, no endings.\nNothing was \
                           started.";
            match nearest {
                Some(nearest) => format!("{refusal}\nThe nearest I can do:\nfind {nearest}"),
                None => format!("{refusal}\nSend a prefix, for example:\n{EXAMPLE}"),
            }
        }
        Reply::SmallTalk { prefix } => {
            let hello = format!("Hello! Send me the characters your npub should start with, for example:\n{EXAMPLE}");
            match prefix {
                Some(prefix) => format!("{hello}\nTo search for npub1{prefix} itself, send:\nfind {prefix}"),
                None => hello,
            }
        }
        Reply::SecretKey => "That is a secret key. Show it to nobody, and stop using it.\nI did not keep it, but it has \
                             travelled through relays and clients.\nTo get a new key, send only the prefix:\nm0ctane"
            .to_owned(),
        Reply::SeedWords => "A chosen npub cannot come from seed words (12 or 24 words): its nsec is the backup.".to_owned(),
        Reply::TooManyPrefixes { asked, allowed } => format!(
            "That is {asked} words, and I take at most {} a job.\nSend the {allowed} you like best.",
            plural(*allowed, "prefix").replace("prefixs", "prefixes")
        ),
        Reply::AlreadySearching { job } => format!(
            "I am searching for exactly that already, as job {job}.\nTo see how it goes, send:\nstatus\nTo stop it, \
             send:\ncancel {}",
            job.0
        ),
        Reply::TooManyOpen { open, allowed } => format!(
            "You have {} ({}), and {allowed} is the limit.\nWait for one to end, or stop one:\ncancel {}",
            plural(open.len(), "open job"),
            list(open),
            open.first().map_or(1, |job| job.0)
        ),
        Reply::TooManyToday { allowed, wait_seconds } => format!(
            "You have started {} in the last 24 hours, and that is the limit.\nThe next one works in {}.",
            plural(*allowed, "job"),
            humanize(Duration::from_secs(*wait_seconds))
        ),
        Reply::TooHard { expected, limit, characters } => {
            let refusal = format!(
                "That would take about {}. I take nothing that takes longer than {}.",
                humanize(*expected),
                humanize(*limit)
            );
            match characters {
                0 => format!("{refusal}\nI can take no request at all now. Try again later."),
                _ => format!("{refusal}\nNow I take up to {}.", plural(*characters as usize, "character")),
            }
        }
        Reply::NotMeasured { characters } => format!(
            "I do not know my speed now, so I cannot say how long that takes.\nUp to {} work now. For more, try again in \
             a minute.",
            plural(*characters as usize, "character")
        ),
        Reply::Nothing => {
            format!("I see no word in your message.\nSend the characters your npub should start with:\n{EXAMPLE}\nor:\nhelp")
        }
        Reply::TextOnly => {
            format!("I read text only, no files.\nSend the characters your npub should start with:\n{EXAMPLE}")
        }
        Reply::NoGroups => "This message went to several people, and a key is for you alone.\nAsk me in a chat with nobody \
                            else."
            .to_owned(),
        Reply::SplitHelp => "Keep half of the key: then my answer is of no use to anybody but you.\nOn your machine, make \
                             a secret half (or use the web page that comes with npubbot):\nnpubbot split new \
                             m0ctane\nSend me the line it shows:\nsplit POINT m0ctane\nI answer with a tweak, which is no \
                             secret. Your half and the tweak make the key:\nnpubbot combine"
            .to_owned(),
        Reply::BadPoint(error) => {
            let reason = match error {
                Some(HalfPointError::Secret) => return text(&Reply::SecretKey),
                Some(error) => format!("I cannot use that point: {error}."),
                None => "I see no point in that.".to_owned(),
            };
            format!("{reason}\nNothing was started. Send:\nsplit POINT {EXAMPLE}\nHow to make a point:\nhelp split")
        }
        Reply::PointAlone => format!(
            "I see your point but no prefix. Nothing was started.\nSend both in one message:\nsplit POINT {EXAMPLE}\nHow \
             it works:\nhelp split"
        ),
        Reply::HalfUsed(used) => {
            let what = match used {
                HalfUse::Open => "is being searched for already",
                HalfUse::Spent => "has served for a key already",
            };
            format!(
                "This half, or one related to it, {what}.\nTwo keys of one half betray each other: whoever has one finds \
                 the other.\nMake a new half for each key:\nnpubbot split new"
            )
        }
        Reply::NeedsSealed => "Your client sent this as an old message (NIP-04), and a secret key does not travel like \
                               that.\nAsk me from a client with NIP-17 messages, such as Amethyst, 0xchat, Coracle or \
                               Nostur, and let it publish your DM relays.\nOr keep the secret half yourself, which works \
                               from here:\nhelp split"
            .to_owned(),
        Reply::Restored => "I was restored from a backup after you sent this, and may have answered it before.\n\
             If you still want it, send it once more. For a split key, make a new half first."
            .to_owned(),
        Reply::WorkWanted(work) => work_wanted(work),
        Reply::SplitWorkWanted { bits, command } => format!(
            "Many people have split jobs open now, so a further one costs proof of work ({bits} bits). Nothing was \
             started.\nThis makes a new half and does the work:\n{command}\nThen send me the line it prints. The web page \
             does all this by itself.\nOr try again later: with fewer split jobs it costs less, and then nothing."
        ),
        Reply::Paused { until } => {
            format!("That is a lot of messages. I answer again at {}.\nYour open jobs go on.", time_of_day(*until))
        }
        Reply::Stopped { open } => {
            let cancelled = match open {
                0 => String::new(),
                1 => "Your open job is cancelled. ".to_owned(),
                _ => format!("Your {open} open jobs are cancelled. "),
            };
            format!("{cancelled}I write nothing more to you.\nTo hear from me again, send:\nstart")
        }
        Reply::Started => format!("Here I am again. Send a prefix:\n{EXAMPLE}\nor:\nhelp"),
        Reply::Forgotten { open } => format!(
            "Done: your jobs{} and messages are gone from my ledger, with the keys I could have sent again.\nThe numbers of \
             your messages go within 16 days; until then they keep old copies from being answered again.\nThe times of \
             the jobs you started in the last 24 hours stay for that long: they count for the limit of a day.",
            if *open > 0 { " (open ones are cancelled)" } else { "" }
        ),
    }
}

fn acceptance(job: &Acceptance) -> String {
    let mut lines = vec![
        format!("Job {}: searching for {}.", job.job, requested(&job.patterns, PATTERNS_ACCEPTED)),
        odds(job.difficulty),
    ];
    lines.push(match job.rate.and_then(|rate| job.difficulty.expected_time(rate)) {
        Some(mean) => format!("That takes {}.", expected(mean)),
        None => "I do not know my speed yet. Send status later for the expected time.".to_owned(),
    });
    if !job.queue.is_zero() {
        lines.push(format!("Others are before you: about {} until it is your turn.", humanize(job.queue)));
    }
    if job.is_split {
        lines.push("It is searched at your own point.".to_owned());
        if let Some(place) = job.place {
            lines.push(format!("Its place in line is {place}."));
        }
        lines.push(
            "The tweak comes in this chat. It is no secret: only with your half does it make the key.".to_owned(),
        );
    } else if job.comes_elsewhere {
        lines.push("The key comes as a NIP-17 message, which your client may show in another chat.".to_owned());
    } else {
        lines.push("The key comes in this chat.".to_owned());
    }
    if job.expensive && !job.is_split {
        lines.push("You can keep half of such a key yourself. How:\nhelp split".to_owned());
    }
    lines.push(format!("To stop, send:\ncancel {}", job.job.0));
    lines.join("\n")
}

fn help(open_jobs: usize, rate: Option<Rate>) -> String {
    format!(
        "I find Nostr keys whose npub starts with characters you choose.\nSend the characters that come after \
         npub1:\n{EXAMPLE}\nSend several, and the first one found ends the job:\ncat dad\nOther messages I \
         understand:\nstatus: your jobs\ncancel: stop them (or: cancel 12)\nresend: the last key again\nfind gm: search \
         for a word that I would take for something else\nstop: I write nothing more to you\ndelete: I forget you\nI make \
         the key on my operator's machine. You can keep half of it yourself. How:\nhelp split\n{}",
        at_work(open_jobs, rate)
    )
}

fn status(open: &[JobLine], results: &[JobId], open_jobs: usize, rate: Option<Rate>) -> String {
    let mut lines: Vec<String> = open.iter().take(JOBS_SHOWN).map(job_line).collect();
    if open.len() > JOBS_SHOWN {
        lines.push(format!("And {} more.", open.len() - JOBS_SHOWN));
    }
    if open.is_empty() {
        lines.push(format!("You have no open job. To start one, send a prefix:\n{EXAMPLE}"));
    }
    if !results.is_empty() {
        lines.push(format!("Keys I can send again: {}. Send:\nresend", list(results)));
    }
    lines.push(at_work(open_jobs, rate));
    lines.join("\n")
}

fn job_line(line: &JobLine) -> String {
    let mut text =
        format!("Job {}: {}, waited {}", line.job, requested(&line.patterns, PATTERNS_SHOWN), humanize(line.waited));
    if let (Some(difficulty), Some(rate)) = (line.difficulty, line.rate)
        && let Some(mean) = difficulty.expected_time(rate)
    {
        let chance = 100.0 * difficulty.chance_after(rate.0 * line.waited.as_secs_f64());
        text += &format!(" of about {} expected (chance so far {chance:.0} %)", humanize(mean));
    }
    text + "."
}

fn bad_words(words: &[(String, PatternError)]) -> String {
    let mut lines: Vec<String> = words.iter().map(|(word, error)| format!("{}: {error}.", shown(word))).collect();
    lines.push(format!("Nothing was started. Send only the prefix:\n{EXAMPLE}\nor:\nhelp"));
    lines.join("\n")
}

fn work_wanted(work: &WorkWanted) -> String {
    format!(
        "More new people write to me now than I can serve, and you are new to me. Nothing was started.\nSend your request \
         again in {} (later if they go on), or at once with proof of work (NIP-13): {bits} leading zero bits in the id of \
         the gift wrap (kind 1059), promised in its tag [\"nonce\", \"…\", \"{bits}\"].",
        humanize(work.ends_in.max(Duration::from_secs(1))),
        bits = work.bits
    )
}

/// The prefixes as text: `npub1cat`, or `npub1cat or npub1dad, whichever is found first`. As many
/// as fit into `room` characters, but at least one.
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

/// How busy the bot is: `3 jobs are open. I try 80 million keys a second.`
fn at_work(jobs: usize, rate: Option<Rate>) -> String {
    let jobs = match jobs {
        0 => "No job is open.".to_owned(),
        1 => "One job is open.".to_owned(),
        _ => format!("{jobs} jobs are open."),
    };
    match rate {
        Some(rate) => format!("{jobs} I try {}.", speed(rate)),
        None => format!("{jobs} I do not know my speed yet."),
    }
}

/// Job numbers as text: `#1, #2 and 3 more`
fn list(jobs: &[JobId]) -> String {
    let names: Vec<String> = jobs.iter().take(JOBS_LISTED).map(ToString::to_string).collect();
    match jobs.len().saturating_sub(JOBS_LISTED) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// A word that the asker wrote, shortened.
fn shown(word: &str) -> String {
    let mut start: String = word.chars().take(WORD_SHOWN).collect();
    if word.chars().nth(WORD_SHOWN).is_some() {
        start.push('…');
    }
    start
}
