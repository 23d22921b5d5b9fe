//! `npubbot top`: the running bot on the whole terminal, until `q`.

mod screen;

use super::folders::FolderFlags;
use crate::control::{self, OperatorCommand, ReplyLine, View};
use anyhow::bail;
use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::style::Colored;
use screen::draw;
use std::collections::VecDeque;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Longest time between two drawings of the screen.
const FRAME_PERIOD: Duration = Duration::from_millis(100);

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  npubbot top                  the bot of this user
  sudo npubbot top             the bot of the service
  NO_COLOR=1 npubbot top       without colours

Keys: q quits, p pauses the search or goes on with it, up and down move through the jobs.
Exit code 3: no bot runs.")]
pub(super) struct Top {
    #[command(flatten)]
    folders: FolderFlags,
}

impl Top {
    pub fn run(self) -> anyhow::Result<()> {
        let data = self.folders.find()?.data;
        let mut model = TopModel::default();
        // Asked before the terminal changes: if no bot runs, an error line is enough.
        ask(&data, OperatorCommand::View)?.into_iter().for_each(|view| model.take(*view, Instant::now()));
        if !std::io::stdout().is_terminal() {
            bail!("`top` needs a terminal; `npubbot status` prints to files and pipes");
        }
        let (commands, answers) = start_asking(data)?;
        let mut terminal = ratatui::try_init()?;
        let watched = watch(&mut terminal, &commands, &answers, &mut model);
        ratatui::try_restore()?;
        watched
    }
}

/// Shows the bot until a key ends it. A bot that stops or hangs is waited for.
fn watch(
    terminal: &mut ratatui::DefaultTerminal,
    commands: &Sender<OperatorCommand>,
    answers: &Receiver<ViewResult>,
    model: &mut TopModel,
) -> anyhow::Result<()> {
    // `NO_COLOR`.
    let has_colors = !Colored::ansi_color_disabled();
    let mut is_changed = true;
    loop {
        // Draws only after a change, because the connection may be slow.
        if model.hear(answers, Instant::now()) || is_changed {
            terminal.draw(|frame| draw(frame, model, has_colors))?;
        }
        is_changed = event::poll(FRAME_PERIOD)?;
        if !is_changed {
            continue;
        }
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => match key.code {
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                KeyCode::Char('p') => {
                    let pause = OperatorCommand::Pause { seconds: None };
                    // If the thread has ended, the screen says so.
                    let _ = commands.send(if model.is_paused() { OperatorCommand::Resume } else { pause });
                }
                KeyCode::Up => model.scroll(-1),
                KeyCode::Down => model.scroll(1),
                KeyCode::PageUp => model.scroll(-10),
                KeyCode::PageDown => model.scroll(10),
                _ => {}
            },
            // After a change of the terminal's size, everything is drawn again.
            _ => {}
        }
    }
}

/// Time between two looks at the bot.
const VIEW_PERIOD: Duration = Duration::from_secs(1);
/// Time without an answer after which the screen says that the bot hangs or is busy.
const SLOW_AFTER: Duration = Duration::from_secs(4);

/// A view of the bot, `None` for a command that asks for none, or the reason why there is no answer.
type ViewResult = Result<Option<Box<View>>, String>;

/// Starts the thread that asks the bot for a view once a second, and at once after each command that
/// it is sent. It ends with the program, or once its channels are dropped.
fn start_asking(data: PathBuf) -> std::io::Result<(Sender<OperatorCommand>, Receiver<ViewResult>)> {
    let (sender, commands) = channel();
    let (answer, answers) = channel();
    let ask = move |command| ask(&data, command).map_err(|error| error.to_string());
    let run = move || {
        loop {
            let carried_out = match commands.recv_timeout(VIEW_PERIOD) {
                Ok(command) => ask(command),
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // A refusal is shown until the next look.
            let seen = carried_out.and_then(|_| ask(OperatorCommand::View));
            if answer.send(seen).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("link".to_owned()).spawn(run)?;
    Ok((sender, answers))
}

/// Sends a command to the bot of a data folder.
///
/// Errors: no bot runs, it does not answer, or it refuses.
fn ask(data: &Path, command: OperatorCommand) -> Result<Option<Box<View>>, control::ControlError> {
    let mut answer = None;
    control::ask(data, command, |line| {
        if let ReplyLine::View(view) = line {
            answer = Some(view);
        }
    })?;
    Ok(answer)
}

/// Rates that are kept: one a second, as many as a wide terminal shows.
const MAX_RATES: usize = 600;

/// The state behind the screen.
#[derive(Debug, Default)]
struct TopModel {
    /// The last view received from the bot.
    pub view: Option<View>,
    /// Candidates a second between two views, newest last.
    pub rates: VecDeque<u64>,
    /// The first job that is shown.
    pub first_job: usize,
    /// Reason why the last view is old.
    pub trouble: Option<String>,
    counted: Option<(Instant, u64)>,
    /// Time of the last answer, or of the first question.
    heard: Option<Instant>,
}

impl TopModel {
    /// Takes the answers that have come by `now`. Returns whether anything changed.
    pub fn hear(&mut self, answers: &Receiver<ViewResult>, now: Instant) -> bool {
        let waited = now.saturating_duration_since(*self.heard.get_or_insert(now));
        match answers.try_recv() {
            Ok(answer) => {
                self.heard = Some(now);
                match answer {
                    Ok(view) => view.into_iter().for_each(|view| self.take(*view, now)),
                    Err(reason) => self.fail(reason),
                }
            }
            Err(TryRecvError::Disconnected) => self.fail("this program failed; start it again".to_owned()),
            Err(TryRecvError::Empty) if waited < SLOW_AFTER => return false,
            Err(TryRecvError::Empty) => {
                let seconds = waited.as_secs();
                self.fail(format!("the bot has not answered for {seconds} seconds; it hangs or is very busy"));
            }
        }
        true
    }

    /// Takes a new view, seen at `now`.
    pub fn take(&mut self, view: View, now: Instant) {
        if let Some((before, candidates)) = self.counted {
            let seconds = now.saturating_duration_since(before).as_secs_f64();
            // A bot that was started again counts from zero.
            let tried = view.candidates.saturating_sub(candidates);
            if seconds > 0.0 {
                self.rates.push_back((tried as f64 / seconds) as u64);
            }
            while self.rates.len() > MAX_RATES {
                self.rates.pop_front();
            }
        }
        self.counted = Some((now, view.candidates));
        self.first_job = self.first_job.min(view.jobs.len().saturating_sub(1));
        self.view = Some(view);
        self.trouble = None;
    }

    /// Notes why there is no new view.
    pub fn fail(&mut self, reason: String) {
        self.trouble = Some(reason);
    }

    /// Moves through the jobs by a number of lines.
    pub fn scroll(&mut self, lines: isize) {
        let last = self.view.as_ref().map_or(0, |view| view.jobs.len().saturating_sub(1));
        self.first_job = self.first_job.saturating_add_signed(lines).min(last);
    }

    /// Whether the search is paused, as last seen.
    pub fn is_paused(&self) -> bool {
        self.view.as_ref().is_some_and(|view| view.is_paused)
    }
}

#[cfg(test)]
mod tests {
    use super::screen::tests::view;
    use super::*;

    #[test]
    fn a_bot_that_does_not_answer_is_named_and_a_later_answer_counts() {
        let ((answer, answers), start) = (channel(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut model = TopModel::default();
        assert!(!model.hear(&answers, start) && !model.hear(&answers, at(3)));
        assert!(model.hear(&answers, at(4)));
        assert!(model.trouble.as_deref().unwrap().contains("has not answered for 4 seconds"), "{model:?}");
        answer.send(Ok(Some(Box::new(view())))).unwrap();
        assert!(model.hear(&answers, at(60)) && model.trouble.is_none() && model.view.is_some(), "{model:?}");
        answer.send(Err("no bot runs".to_owned())).unwrap();
        assert!(model.hear(&answers, at(61)) && model.trouble.is_some() && model.view.is_some(), "the last view stays");
        drop(answer);
        model.hear(&answers, at(62));
        assert!(model.trouble.unwrap().contains("this program failed"));
    }

    #[test]
    fn rates_are_differences_and_a_restarted_bot_has_none_below_zero() {
        let (mut model, start) = (TopModel::default(), Instant::now());
        for (second, candidates) in [(0, 1_000), (1, 3_000), (3, 9_000), (4, 500), (5, 700)] {
            model.take(View { candidates, ..view() }, start + Duration::from_secs(second));
        }
        assert_eq!(model.rates, [2_000, 3_000, 0, 200]);
        for second in 6..2_000 {
            model.take(View { candidates: 700, ..view() }, start + Duration::from_secs(second));
        }
        assert_eq!(model.rates.len(), MAX_RATES);
    }

    #[test]
    fn scrolling_ends_at_the_first_and_the_last_job() {
        let mut model = TopModel::default();
        model.scroll(5);
        assert_eq!(model.first_job, 0, "there is no job yet");
        model.take(view(), Instant::now());
        model.scroll(isize::MAX);
        assert_eq!(model.first_job, view().jobs.len() - 1);
        model.take(View { jobs: view().jobs[..1].to_vec(), ..view() }, Instant::now());
        assert_eq!(model.first_job, 0, "the others ended");
    }
}
