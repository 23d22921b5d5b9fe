//! `npubbot mine best`: a local search without a target.

use super::exit::Passing;
use super::key_output::{Output, is_lost};
use super::output::note;
use crate::job::{JobId, JobSpec};
use crate::key::Npub;
use crate::pattern::{Best, Pattern};
use crate::progress::SearchBar;
use crate::scheduler::{Find, FindHandler, FindOutcome, Scheduler};
use crate::search::SearchOptions;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;
use zeroize::Zeroizing;

/// A message of the search to the command.
enum Event {
    /// A key is the best so far.
    Kept(Pattern),
    /// The best key was written, or something failed.
    Over(anyhow::Result<()>),
}

/// Keeps the best key so far in memory, and writes it when the search is over.
struct BestOutput {
    output: Output,
    kept: Option<(Npub, Zeroizing<Vec<u8>>)>,
    bar: SearchBar,
    events: Sender<Event>,
}

impl FindHandler for BestOutput {
    fn found(&mut self, find: Find) -> FindOutcome {
        match self.output.lines(&find, Some(find.pattern.difficulty().candidates())) {
            Ok(lines) => {
                self.kept = Some((find.hit.npub(), lines));
                self.tell(Event::Kept(find.pattern));
                FindOutcome::Kept
            }
            Err(error) if is_lost(&error) => FindOutcome::GoesOn,
            Err(error) => {
                self.tell(Event::Over(Err(error)));
                FindOutcome::Done
            }
        }
    }

    fn finish_search(&mut self, _: JobId) -> FindOutcome {
        let Some((npub, lines)) = self.kept.take() else { return FindOutcome::GoesOn };
        let written = self.bar.suspend(|| self.output.write_lines(&npub, &lines));
        self.tell(Event::Over(written));
        FindOutcome::Done
    }
}

impl BestOutput {
    fn tell(&self, event: Event) {
        // The receiver lives as long as the scheduler, so this cannot fail.
        let _ = self.events.send(event);
    }
}

/// Searches for the time of `best`, writes the rarest key, and says how rare it is. A search that
/// has found nothing by then goes on to the first key.
pub(super) fn search_best(options: &SearchOptions, job: JobSpec, best: Best, output: Output) -> anyhow::Result<()> {
    let (sender, events) = mpsc::channel();
    let bar = SearchBar::of_time();
    let vault = output.vault.clone();
    let best_output = BestOutput { output, kept: None, bar: bar.clone(), events: sender };
    let scheduler = Scheduler::start(options, vault, best_output)?;
    scheduler.add(JobId(1), job);
    let mut rarest: Option<Pattern> = None;
    loop {
        match events.recv_timeout(Duration::from_millis(100)) {
            Ok(Event::Kept(pattern)) => rarest = Some(pattern),
            Ok(Event::Over(written)) => {
                bar.clear();
                written?;
                if let Some(pattern) = rarest {
                    note!("It fits {pattern}, as 1 key in {} does.", pattern.difficulty());
                }
                return Ok(());
            }
            Err(RecvTimeoutError::Timeout) => {
                let searched = scheduler.best().first().map_or(Duration::ZERO, |(_, search)| search.searched);
                let part = searched.as_secs_f64() / best.time.as_secs_f64();
                bar.show_best(part, scheduler.rate(), rarest.as_ref());
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Passing("the search ended before its time".to_owned()).into());
            }
        }
    }
}
