//! `npubbot top`: the running bot on the whole terminal, until `q`.

mod screen;

use super::folders::FolderFlags;
use super::operate::tell_if_slow;
use crate::control::{self, OperatorCommand, ReplyLine, View};
use anyhow::bail;
use clap::Args;
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use screen::{Palette, draw};
use std::collections::VecDeque;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Longest time between two drawings of the screen.
const FRAME_PERIOD: Duration = Duration::from_millis(100);

/// Flags of `npubbot top`.
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
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let data = self.folders.find()?.data;
        let mut model = TopModel::default();
        // Asked before the terminal changes: if no bot runs, an error line is enough.
        match tell_if_slow(|| ask(&data, OperatorCommand::View))? {
            Ok(view) => view.into_iter().for_each(|view| model.take(*view, Instant::now())),
            Err(reason) => model.fail(reason),
        }
        if !std::io::stdout().is_terminal() {
            bail!("`top` needs a terminal; `npubbot status` prints to files and pipes");
        }
        let mut link = BotLink::start(data)?;
        let mut terminal = ratatui::try_init()?;
        let watched = watch(&mut terminal, &mut link, &mut model);
        ratatui::try_restore()?;
        watched
    }
}

/// Shows the bot until a key ends it. A bot that stops or hangs is waited for.
fn watch(terminal: &mut ratatui::DefaultTerminal, link: &mut BotLink, model: &mut TopModel) -> anyhow::Result<()> {
    let palette = Palette::of_environment();
    let mut is_changed = true;
    loop {
        // Draws only after a change, because the connection may be slow.
        if link.poll(model, Instant::now()) || is_changed {
            terminal.draw(|frame| draw(frame, model, palette))?;
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
                    link.request(if model.is_paused() { OperatorCommand::Resume } else { PAUSE });
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

/// The key `p` pauses with no end.
const PAUSE: OperatorCommand = OperatorCommand::Pause { seconds: None };

/// Time between two looks at the bot.
const VIEW_PERIOD: Duration = Duration::from_secs(1);
/// If an answer takes longer, the screen says that the bot hangs or is busy.
const SLOW_AFTER: Duration = Duration::from_secs(3);

/// The outcome of a request: a view of the bot, `None` for a request that asks for no view, or the
/// reason why there is no answer.
type ViewResult = Result<Option<Box<View>>, String>;

/// The thread that asks the bot, and its present request.
#[derive(Debug)]
struct BotLink {
    commands: Sender<OperatorCommand>,
    answers: Receiver<ViewResult>,
    /// Time at which the request under way was sent.
    asked: Option<Instant>,
    /// A command that waits for its turn, other than the request for the state.
    next: Option<OperatorCommand>,
    /// Time at which the state is asked for next.
    due: Instant,
}

impl BotLink {
    /// Starts the thread. It ends with the program, or once the link is dropped.
    pub fn start(data: PathBuf) -> std::io::Result<BotLink> {
        BotLink::with(move |command| ask(&data, command).unwrap_or_else(|error| Err(error.to_string())))
    }

    fn with(ask: impl Fn(OperatorCommand) -> ViewResult + Send + 'static) -> std::io::Result<BotLink> {
        let (commands, requests) = channel::<OperatorCommand>();
        let (sender, answers) = channel();
        let serve = move || requests.iter().map(ask).try_for_each(|answer| sender.send(answer));
        std::thread::Builder::new().name("link".to_owned()).spawn(serve)?;
        Ok(BotLink { commands, answers, asked: None, next: None, due: Instant::now() + VIEW_PERIOD })
    }

    /// Asks the bot to carry out `command` after the present request. A later call replaces a
    /// waiting command.
    pub fn request(&mut self, command: OperatorCommand) {
        self.next = Some(command);
    }

    /// Gives new answers to the model, and sends the next request if it is due at `now`. Returns
    /// whether the model changed.
    pub fn poll(&mut self, model: &mut TopModel, now: Instant) -> bool {
        let mut is_changed = true;
        match self.answers.try_recv() {
            Ok(answer) => {
                self.asked = None;
                match answer {
                    Ok(Some(view)) => {
                        model.take(*view, now);
                        self.due = now + VIEW_PERIOD;
                    }
                    Ok(None) => self.due = now,
                    Err(reason) => {
                        model.fail(reason);
                        self.due = now + VIEW_PERIOD;
                    }
                }
            }
            Err(TryRecvError::Empty) => is_changed = false,
            Err(TryRecvError::Disconnected) => model.fail("this program failed; start it again".to_owned()),
        }
        match self.asked {
            Some(asked) => {
                let waited = now.saturating_duration_since(asked);
                if waited >= SLOW_AFTER {
                    let seconds = waited.as_secs();
                    model.fail(format!("the bot has not answered for {seconds} seconds; it hangs or is very busy"));
                    is_changed = true;
                }
            }
            None if self.next.is_some() || now >= self.due => {
                let command = self.next.take().unwrap_or(OperatorCommand::View);
                if self.commands.send(command).is_ok() {
                    self.asked = Some(now);
                }
            }
            None => {}
        }
        is_changed
    }
}

/// Sends a command to the bot of a data folder.
///
/// Errors: no bot runs, or it does not answer.
fn ask(data: &Path, command: OperatorCommand) -> Result<ViewResult, control::ControlError> {
    let mut answer = Ok(None);
    control::ask(data, command, |line| match line {
        ReplyLine::View(view) => answer = Ok(Some(view)),
        ReplyLine::Refused(reason) => answer = Err(reason),
        _ => {}
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
}

impl TopModel {
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
    use std::time::Duration;

    /// Runs turns of the link until the model is as wanted. Each turn is given a time one second
    /// later.
    fn turn_until(link: &mut BotLink, model: &mut TopModel, is_done: impl Fn(&TopModel) -> bool) {
        let began = Instant::now();
        let mut now = began;
        while !is_done(model) {
            assert!(began.elapsed() < Duration::from_secs(60), "{model:?}");
            link.poll(model, now);
            now += Duration::from_secs(1);
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_bot_that_does_not_answer_is_named_and_a_later_answer_counts() {
        let (answer, hanging) = channel::<()>();
        let hanging = std::sync::Mutex::new(hanging);
        let mut link = BotLink::with(move |_| {
            let _ = hanging.lock().unwrap().recv();
            Ok(Some(Box::new(view())))
        })
        .unwrap();
        let mut model = TopModel::default();
        turn_until(&mut link, &mut model, |model| model.trouble.is_some());
        assert!(model.trouble.as_deref().unwrap().contains("has not answered for 3 seconds"), "{model:?}");
        answer.send(()).unwrap();
        turn_until(&mut link, &mut model, |model| model.trouble.is_none());
        assert!(model.view.is_some());
    }

    #[test]
    fn a_request_comes_before_the_next_look() {
        let (sender, commands) = channel();
        let sender = std::sync::Mutex::new(sender);
        let mut link = BotLink::with(move |command| {
            sender.lock().unwrap().send(command.clone()).unwrap();
            Ok((command == OperatorCommand::View).then(|| Box::new(view())))
        })
        .unwrap();
        link.request(PAUSE);
        let mut model = TopModel::default();
        turn_until(&mut link, &mut model, |model| model.view.is_some());
        assert_eq!(commands.try_iter().collect::<Vec<_>>(), [PAUSE, OperatorCommand::View]);
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
        let jobs = view().jobs.len();
        model.scroll(isize::MAX);
        assert_eq!(model.first_job, jobs - 1);
        model.take(View { jobs: view().jobs[..1].to_vec(), ..view() }, Instant::now());
        assert_eq!(model.first_job, 0, "the others ended");
        model.scroll(-3);
        assert_eq!(model.first_job, 0);
    }

    #[test]
    fn a_bot_that_stops_is_named_and_the_last_view_stays() {
        let mut model = TopModel::default();
        model.take(view(), Instant::now());
        model.fail("no bot runs".to_owned());
        assert!(model.view.is_some() && model.trouble.is_some());
        model.take(view(), Instant::now());
        assert_eq!(model.trouble, None);
    }
}
