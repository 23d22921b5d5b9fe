//! `npubbot top`: the running bot on the whole terminal, until `q`.

use super::folders::FolderFlags;
use super::operate::{device_text, relay_text, workers_text};
use super::output::stdout;
use crate::control::{self, JobStatus, OperatorCommand, ReplyLine, View};
use crate::duration::humanize;
use crate::search::SensorValues;
use anyhow::bail;
use clap::Args;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::style::Stylize;
use crossterm::terminal::{
    Clear, ClearType, DisableLineWrap, EnableLineWrap, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};
use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

/// Longest time between two drawings of the screen.
const FRAME_PERIOD: Duration = Duration::from_millis(100);
/// Time between two looks at the bot.
const VIEW_PERIOD: Duration = Duration::from_secs(1);
/// Time without an answer after which the screen says that the bot hangs or is busy.
const SLOW_AFTER: Duration = Duration::from_secs(4);
/// Rates that are kept: one a second.
const MAX_RATES: usize = 60;
/// The most devices shown. The rate above them is that of all devices.
const MAX_DEVICES: usize = 8;
const KEYS_TEXT: &str = " q quit   p pause or go on   ↑ ↓ move through the jobs";

#[derive(Args, Debug)]
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
        if !io::stdout().is_terminal() {
            bail!("`top` needs a terminal; `npubbot status` prints to files and pipes");
        }
        let (commands, answers) = start_asking(data)?;
        let _screen = Screen::open()?;
        watch(&commands, &answers, &mut model)
    }
}

/// The terminal as this command needs it. It is restored on drop.
struct Screen;

impl Screen {
    fn open() -> io::Result<Screen> {
        enable_raw_mode()?;
        let screen = Screen;
        // The terminal cuts what is too long.
        execute!(stdout(), EnterAlternateScreen, Hide, DisableLineWrap)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(stdout(), EnableLineWrap, Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// Shows the bot until a key ends it. A bot that stops or hangs is waited for.
fn watch(
    commands: &Sender<OperatorCommand>,
    answers: &Receiver<ViewResult>,
    model: &mut TopModel,
) -> anyhow::Result<()> {
    let mut is_changed = true;
    loop {
        // Draws only after a change, because the connection may be slow.
        if model.hear(answers, Instant::now()) || is_changed {
            draw(model)?;
        }
        is_changed = event::poll(FRAME_PERIOD)?;
        if !is_changed {
            continue;
        }
        // After a change of the terminal's size, everything is drawn again.
        let Event::Key(key) = event::read()? else { continue };
        match key.code {
            _ if key.kind == KeyEventKind::Release => {}
            KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
            KeyCode::Char('p') => {
                let is_paused = model.view.as_ref().is_some_and(|view| view.is_paused);
                let pause = OperatorCommand::Pause { seconds: None };
                // If the thread has ended, the screen says so.
                let _ = commands.send(if is_paused { OperatorCommand::Resume } else { pause });
            }
            KeyCode::Up => model.scroll(-1),
            KeyCode::Down => model.scroll(1),
            KeyCode::PageUp => model.scroll(-10),
            KeyCode::PageDown => model.scroll(10),
            _ => {}
        }
    }
}

/// A view of the bot, `None` for a command that asks for none, or the reason why there is no answer.
type ViewResult = Result<Option<Box<View>>, String>;

/// Starts the thread that asks the bot for a view once a second, and at once after each command that
/// it is sent. It ends with the program, or once its channels are dropped.
fn start_asking(data: PathBuf) -> io::Result<(Sender<OperatorCommand>, Receiver<ViewResult>)> {
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

/// Sends a command to the bot of a data folder. Returns the view that it answers with.
///
/// Errors: no bot runs, it does not answer, or it refuses.
fn ask(data: &Path, command: OperatorCommand) -> Result<Option<Box<View>>, control::ControlError> {
    let view = |line| if let ReplyLine::View(view) = line { Some(view) } else { None };
    Ok(control::ask(data, command)?.into_iter().find_map(view))
}

/// The state behind the screen.
#[derive(Debug, Default)]
struct TopModel {
    /// The last view received from the bot, and when.
    view: Option<View>,
    taken_at: Option<Instant>,
    /// Candidates a second between two views, newest last.
    rates: VecDeque<u64>,
    /// The first job that is shown.
    first_job: usize,
    /// Reason why the last view is old.
    trouble: Option<String>,
    /// Time of the last answer, or of the first question.
    heard: Option<Instant>,
}

impl TopModel {
    /// Takes the answers that have come by `now`. Returns whether anything changed.
    fn hear(&mut self, answers: &Receiver<ViewResult>, now: Instant) -> bool {
        let waited = now.saturating_duration_since(*self.heard.get_or_insert(now));
        match answers.try_recv() {
            Ok(answer) => {
                self.heard = Some(now);
                match answer {
                    Ok(view) => view.into_iter().for_each(|view| self.take(*view, now)),
                    Err(reason) => self.trouble = Some(reason),
                }
            }
            Err(TryRecvError::Disconnected) => self.trouble = Some("this program failed; start it again".to_owned()),
            Err(TryRecvError::Empty) if waited < SLOW_AFTER => return false,
            Err(TryRecvError::Empty) => {
                let seconds = waited.as_secs();
                let text = format!("the bot has not answered for {seconds} seconds; it hangs or is very busy");
                self.trouble = Some(text);
            }
        }
        true
    }

    /// Takes a new view, seen at `now`.
    fn take(&mut self, view: View, now: Instant) {
        let before = self.view.as_ref().map_or(0, |before| before.candidates);
        if let Some(seconds) = self.taken_at.map(|at| now.saturating_duration_since(at).as_secs_f64()) {
            // A bot that was started again counts from zero.
            let tried = view.candidates.saturating_sub(before);
            self.rates.extend((seconds > 0.0).then_some((tried as f64 / seconds) as u64));
            while self.rates.len() > MAX_RATES {
                self.rates.pop_front();
            }
        }
        self.taken_at = Some(now);
        self.first_job = self.first_job.min(view.jobs.len().saturating_sub(1));
        self.view = Some(view);
        self.trouble = None;
    }

    /// Moves through the jobs by a number of lines.
    fn scroll(&mut self, lines: isize) {
        let last = self.view.as_ref().map_or(0, |view| view.jobs.len().saturating_sub(1));
        self.first_job = self.first_job.saturating_add_signed(lines).min(last);
    }
}

/// A line of the screen, and whether it needs attention.
type ScreenLine = (String, bool);

/// Draws the screen by one write.
fn draw(model: &TopModel) -> io::Result<()> {
    let mut frame = Vec::new();
    let height = size()?.1;
    for (row, (text, is_bad)) in (0..height).zip(lines(model, height.into())) {
        // Relays and drivers wrote a part of it.
        let text: String = text.chars().filter(|letter| !letter.is_control()).collect();
        queue!(frame, MoveTo(0, row))?;
        if is_bad {
            write!(frame, "{}", text.red().bold())?
        } else {
            write!(frame, "{text}")?
        }
        queue!(frame, Clear(ClearType::UntilNewLine))?;
    }
    queue!(frame, Clear(ClearType::FromCursorDown))?;
    let mut out = stdout();
    out.write_all(&frame)?;
    out.flush()
}

/// The lines of a screen of this height: totals, rate, devices, jobs, relays, events and keys. The
/// jobs get the room that is left.
fn lines(model: &TopModel, height: usize) -> Vec<ScreenLine> {
    let good = |text: String| (text, false);
    let Some(view) = &model.view else {
        return vec![good(model.trouble.clone().unwrap_or_else(|| "the bot is asked".to_owned()))];
    };
    let mut lines = title(model, view).to_vec();
    let now = view.status.rate.map_or_else(|| "not measured".to_owned(), |rate| rate.to_string());
    lines.push(good(format!(" Rate: {now} {}", graph(&model.rates))));
    lines.push(good(" Devices".to_owned()));
    lines.extend(devices(view));
    let room = height.saturating_sub(lines.len() + 4);
    let relays: Vec<ScreenLine> = relays(view).take(room / 4).collect();
    let events: Vec<ScreenLine> = events(view).take(room / 3).collect();
    lines.push(good(match view.jobs.len() {
        0 => " Jobs: none is open".to_owned(),
        _ => format!(" Jobs: {} open, from number {} on", view.status.open_jobs, model.first_job + 1),
    }));
    let rows = room - relays.len() - events.len();
    let jobs = view.jobs.iter().skip(model.first_job).map(job_line).chain(std::iter::repeat_with(String::new));
    lines.extend(jobs.take(rows).map(good));
    lines.push(good(" Relays".to_owned()));
    lines.extend(relays);
    lines.push(good(" Events".to_owned()));
    lines.extend(events);
    lines.push(good(KEYS_TEXT.to_owned()));
    lines
}

/// The state in two lines.
fn title(model: &TopModel, view: &View) -> [ScreenLine; 2] {
    let status = &view.status;
    let npub = status.npub.get(..16).unwrap_or(&status.npub);
    let up = humanize(Duration::from_secs(status.uptime_seconds));
    let is_any = |states: &[&str]| {
        status.devices.iter().any(|device| states.iter().any(|state| device.state.starts_with(state)))
    };
    let (state, is_bad) = match (&model.trouble, view.is_paused) {
        (Some(_), _) => ("these figures are old", true),
        (None, _) if !is_any(&["working", "paused", "rests"]) => ("no device works", true),
        (None, true) => ("paused", true),
        (None, false) if !is_any(&["working"]) => ("resting", false),
        (None, false) if status.open_jobs == 0 => ("ready", false),
        (None, false) => ("searching", false),
    };
    let totals = format!(
        " {} open jobs  {} messages to answer  {} undelivered  {} MiB of heap",
        status.open_jobs,
        view.messages_waiting,
        status.undelivered,
        status.memory_bytes >> 20
    );
    let second = model.trouble.as_ref().map_or((totals, false), |trouble| (format!(" {trouble}"), true));
    [(format!(" npubbot {}  {npub}…  up {up}  {state}", status.version), is_bad), second]
}

/// Rates as bars, one a second; the highest is a full one.
fn graph(rates: &VecDeque<u64>) -> String {
    let highest = rates.iter().copied().max().unwrap_or(0).max(1);
    let bar = |&rate: &u64| ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(rate * 7 / highest) as usize];
    rates.iter().map(bar).collect()
}

/// The devices with the sensors of those on the bot's machine, and how many workers are there.
fn devices(view: &View) -> impl Iterator<Item = ScreenLine> {
    let figure = |value: Option<f64>, unit: &str| value.map_or_else(String::new, |value| format!("{value:.0} {unit}"));
    let devices = view.status.devices.iter().take(MAX_DEVICES).enumerate();
    let lines = devices.map(move |(at, device)| {
        let SensorValues { celsius, watts, megahertz } = view.sensors.get(at).copied().unwrap_or_default();
        let (celsius, watts, clock) = (figure(celsius, "°C"), figure(watts, "W"), figure(megahertz, "MHz"));
        let is_bad = device.state.starts_with("out") || device.state.contains("°C");
        (format!("  {celsius:>6} {watts:>6} {clock:>9}  {}", device_text(device)), is_bad)
    });
    let hidden = view.status.devices.len().saturating_sub(MAX_DEVICES);
    let hidden = (hidden > 0).then(|| format!("  and {hidden} more"));
    let workers = workers_text(&view.status).map(|text| format!("  {text}"));
    lines.chain(hidden.into_iter().chain(workers).map(|text| (text, false)))
}

fn job_line(job: &JobStatus) -> String {
    let time = |seconds: f64| humanize(Duration::from_secs_f64(seconds.min(1e12)));
    format!(
        "  #{:<6} {:5} {:>11} old {:>5}, {:>13}  {}",
        job.job,
        job.kind,
        time(job.age_seconds as f64),
        job.chance_so_far.map_or_else(String::new, |chance| format!("{:.0} %", 100.0 * chance)),
        job.seconds_left.map_or_else(|| "not known".to_owned(), |seconds| format!("{} left", time(seconds))),
        job.patterns.join(" ")
    )
}

fn relays(view: &View) -> impl Iterator<Item = ScreenLine> {
    view.status.relays.iter().map(|relay| (format!("  {}", relay_text(relay)), !relay.is_connected()))
}

/// The log's last lines, the newest first.
fn events(view: &View) -> impl Iterator<Item = ScreenLine> {
    view.events.iter().rev().map(|event| {
        let level = event.split_whitespace().nth(1);
        (format!("  {event}"), level.is_some_and(|level| ["WARN", "ERROR"].contains(&level)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::operate::tests::{device, job, status};
    use crate::search::DeviceId;

    /// A view of a bot with two devices, three jobs and a relay that is away.
    fn view() -> View {
        let job = |number, kind: &str, patterns: &[&str], age_seconds, chance_so_far, seconds_left| JobStatus {
            age_seconds,
            chance_so_far,
            seconds_left,
            ..job(number, kind, patterns)
        };
        let mut status = status();
        let gpu = |ordinal, rate, state| device(DeviceId::Cuda(ordinal), rate, state);
        status.devices = vec![gpu(0, Some(21.3e9), "working"), gpu(1, None, "out: it lies")];
        View {
            status,
            is_paused: false,
            candidates: 1_000_000_000,
            sensors: vec![SensorValues { celsius: Some(61.0), watts: Some(412.4), megahertz: Some(1755.0) }],
            jobs: vec![
                job(5, "pool", &["m0ctane"], 30, Some(0.64), Some(29.0)),
                job(7, "split", &["~alice", "words:8"], 86_400, Some(0.08), Some(1e6)),
                job(8, "pool", &["qqqqqqqqq"], 2, None, None),
            ],
            messages_waiting: 2,
            events: vec![
                "12:00:00 INFO  accepted job=#7 patterns=2 split=true".to_owned(),
                "12:00:04 WARN  a device failed and is taken out of use".to_owned(),
            ],
        }
    }

    fn text(model: &TopModel, height: usize) -> String {
        let mark = |(text, is_bad): ScreenLine| format!("{}{text}", if is_bad { "!" } else { " " });
        lines(model, height).into_iter().map(mark).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn everything_is_on_twenty_four_lines_and_a_rate_is_a_difference() {
        let (mut model, start) = (TopModel::default(), Instant::now());
        for (second, candidates) in [(0, 1_000), (1, 3_000), (3, 9_000), (4, 500), (5, 700)] {
            model.take(View { candidates, ..view() }, start + Duration::from_secs(second));
        }
        assert_eq!(model.rates, [2_000, 3_000, 0, 200], "a restarted bot has none below zero");
        insta::assert_snapshot!(text(&model, 24));
        assert_eq!(text(&model, 24).lines().count(), 24);
        for second in 6..2_000 {
            model.take(View { candidates: 700, ..view() }, start + Duration::from_secs(second));
        }
        assert_eq!(model.rates.len(), MAX_RATES);
        model.scroll(isize::MAX);
        assert_eq!(model.first_job, 2);
        model.take(View { jobs: view().jobs[..1].to_vec(), ..view() }, Instant::now());
        assert_eq!(model.first_job, 0, "the others ended");
        (0..24).for_each(|height| drop(text(&model, height)));
    }

    #[test]
    fn the_title_says_whether_the_bot_searches() {
        for (states, open_jobs, is_paused, expected) in [
            (["working", "out: x"], 3, false, "searching"),
            (["working", "rests at 83 °C until 75 °C"], 0, false, "ready"),
            (["rests until 22:00 CET (schedule)", "out: x"], 3, false, "resting"),
            (["paused", "out: x"], 3, true, "paused"),
            (["out: x", "out: y"], 3, true, "no device works"),
        ] {
            let mut view = View { is_paused, ..view() };
            view.status.open_jobs = open_jobs;
            for (device, state) in view.status.devices.iter_mut().zip(states) {
                device.state = state.to_owned();
            }
            let [(first, _), _] = title(&TopModel::default(), &view);
            assert!(first.ends_with(expected), "{states:?}: {first}");
        }
    }

    #[test]
    fn a_bot_that_does_not_answer_is_named_and_a_later_answer_counts() {
        let ((answer, answers), start) = (channel(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut model = TopModel::default();
        assert!(!model.hear(&answers, start) && !model.hear(&answers, at(3)));
        assert!(model.hear(&answers, at(4)));
        assert!(text(&model, 24).contains("has not answered for 4 seconds"), "{model:?}");
        answer.send(Ok(Some(Box::new(view())))).unwrap();
        assert!(model.hear(&answers, at(60)) && model.trouble.is_none() && model.view.is_some(), "{model:?}");
        answer.send(Err("no bot runs".to_owned())).unwrap();
        assert!(model.hear(&answers, at(61)), "the last view stays");
        let old = text(&model, 24);
        assert!(old.contains("no bot runs") && old.contains("figures are old") && old.contains("m0ctane"), "{old}");
        drop(answer);
        model.hear(&answers, at(62));
        assert!(model.trouble.unwrap().contains("this program failed"));
    }
}
