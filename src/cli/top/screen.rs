//! The screen of `npubbot top`, drawn from the model.
//!
//! ```text
//! title: version, npub, time, totals
//! rate over time
//! devices
//! jobs, which take the room that is left
//! relays           │ events
//! keys
//! ```

use super::devices::{MOST_DEVICES, draw_devices};
use super::model::Model;
use super::palette::Palette;
use crate::control::{JobProgress, View};
use crate::duration::humanize;
use crate::pattern::Rate;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};
use std::time::Duration;

/// The smallest terminal that has room for everything.
const SMALLEST: (u16, u16) = (80, 24);
/// The most lines of one event.
const EVENT_LINES: usize = 3;
const KEYS: &str = " q quit   p pause or go on   ↑ ↓ move through the jobs";

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model, palette: Palette) {
    let area = frame.area();
    let Some(view) = &model.view else {
        return frame.render_widget(Paragraph::new(model.trouble.as_deref().unwrap_or("the bot is asked")), area);
    };
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("{} by {} is too small: 80 by 24 or more, please", area.width, area.height);
        return frame.render_widget(Paragraph::new(text), area);
    }
    let devices = view.status.devices.len().min(MOST_DEVICES) as u16;
    let rows = [
        Constraint::Length(2),
        Constraint::Length(if area.height < 30 { 5 } else { 8 }),
        Constraint::Length(devices + 2),
        Constraint::Min(5),
        Constraint::Length(if area.height < 30 { 6 } else { 10 }),
        Constraint::Length(1),
    ];
    let [title, rate, devices, jobs, bottom, keys] = Layout::vertical(rows).areas(area);
    let [relays, events] = Layout::horizontal([Constraint::Length(38), Constraint::Min(38)]).areas(bottom);
    draw_title(frame, title, model, view, palette);
    draw_rate(frame, rate, model, view, palette);
    draw_devices(frame, devices, view, palette);
    draw_jobs(frame, jobs, model, view);
    draw_relays(frame, relays, view, palette);
    draw_events(frame, events, view, palette);
    frame.render_widget(Paragraph::new(KEYS), keys);
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, model: &Model, view: &View, palette: Palette) {
    let status = &view.status;
    let npub = status.npub.get(..16).unwrap_or(&status.npub);
    let up = humanize(Duration::from_secs(status.uptime_seconds));
    let is_any = |states: &[&str]| {
        status.devices.iter().any(|device| states.iter().any(|state| device.state.starts_with(state)))
    };
    let state = match (&model.trouble, view.is_paused) {
        (Some(_), _) => Span::styled("these figures are old", palette.bad()),
        (None, _) if !is_any(&["working", "paused", "rests"]) => Span::styled("no device works", palette.bad()),
        (None, true) => Span::styled("paused", palette.bad()),
        (None, false) if !is_any(&["working"]) => Span::raw("resting"),
        (None, false) if status.open_jobs == 0 => Span::raw("ready"),
        (None, false) => Span::styled("searching", palette.good()),
    };
    let first = Line::from(vec![format!(" npubbot {}  {npub}…  up {up}  ", status.version).into(), state]);
    let second = match &model.trouble {
        Some(trouble) => Line::styled(format!(" {trouble}"), palette.bad()),
        None => Line::from(format!(
            " {} open jobs  {} messages to answer  {} undelivered  {} MiB of heap",
            status.open_jobs,
            view.messages_waiting,
            status.undelivered,
            status.memory_bytes >> 20
        )),
    };
    frame.render_widget(Paragraph::new(vec![first, second]), area);
}

fn draw_rate(frame: &mut Frame<'_>, area: Rect, model: &Model, view: &View, palette: Palette) {
    let now = view.status.rate.map_or_else(|| "not measured".to_owned(), |rate| Rate(rate).to_string());
    let highest = model.rates.iter().copied().max().unwrap_or(0);
    let title = format!(" Rate: {now}; one column a second, the highest is {} ", Rate(highest as f64));
    let block = Block::bordered().title(title);
    let width = usize::from(block.inner(area).width);
    // The newest is on the right.
    let shown: Vec<u64> = model.rates.iter().copied().skip(model.rates.len().saturating_sub(width)).collect();
    let padded = std::iter::repeat_n(0, width.saturating_sub(shown.len())).chain(shown);
    let line = Sparkline::default().block(block).style(palette.color(Color::Cyan)).max(highest.max(1));
    frame.render_widget(line.data(padded.collect::<Vec<u64>>()), area);
}

fn draw_jobs(frame: &mut Frame<'_>, area: Rect, model: &Model, view: &View) {
    let header = Row::new(["job", "kind", "patterns", "age", "chance", "time left"])
        .style(Style::new().add_modifier(Modifier::BOLD));
    let rows = view.jobs.iter().skip(model.first_job).map(job_row);
    let widths = [
        Constraint::Length(7),
        Constraint::Length(5),
        Constraint::Min(20),
        Constraint::Length(11),
        Constraint::Length(6),
        Constraint::Length(13),
    ];
    let title = match view.jobs.len() {
        0 => " Jobs: none is open ".to_owned(),
        _ => format!(" Jobs: {} open, from number {} on ", view.status.open_jobs, model.first_job + 1),
    };
    frame.render_widget(Table::new(rows, widths).header(header).block(Block::bordered().title(title)), area);
}

fn job_row(progress: &JobProgress) -> Row<'static> {
    let job = &progress.job;
    let time = |seconds: f64| humanize(Duration::from_secs_f64(seconds.min(1e12)));
    Row::new([
        format!("#{}", job.job),
        job.kind.clone(),
        job.patterns.join(" "),
        time(progress.age_seconds as f64),
        progress.chance_so_far.map_or_else(String::new, |chance| format!("{:.0} %", 100.0 * chance)),
        progress.seconds_left.map_or_else(|| "not known".to_owned(), time),
    ])
}

fn draw_relays(frame: &mut Frame<'_>, area: Rect, view: &View, palette: Palette) {
    let relays = view.status.relays.iter().enumerate().map(|(at, relay)| {
        let is_connected = relay.state == "connected";
        let figures = view.relays.get(at);
        let lag = figures.and_then(|figures| figures.lag_milliseconds);
        let state = match (is_connected, lag) {
            (true, Some(lag)) => format!("{lag} ms"),
            (true, None) => "ok".to_owned(),
            (false, _) => "away".to_owned(),
        };
        let failures = figures.map_or(0, |figures| figures.failures);
        let failed = if failures > 0 { format!("{failures} failed") } else { String::new() };
        let name = relay.url.split_once("://").map_or(relay.url.as_str(), |(_, name)| name).to_owned();
        Row::new([name, state, failed]).style(if is_connected { Style::new() } else { palette.bad() })
    });
    let widths = [Constraint::Min(16), Constraint::Length(7), Constraint::Length(9)];
    frame.render_widget(Table::new(relays, widths).block(Block::bordered().title(" Relays ")), area);
}

/// The newest events that fit. A long event continues on the next line, because its reason is at
/// the end.
fn draw_events(frame: &mut Frame<'_>, area: Rect, view: &View, palette: Palette) {
    let block = Block::bordered().title(" Events ");
    let inner = block.inner(area);
    let mut lines: Vec<Line<'_>> = Vec::new();
    for event in view.events.iter().rev() {
        let is_bad = event.get(9..).is_some_and(|rest| rest.starts_with("WARN") || rest.starts_with("ERROR"));
        let style = if is_bad { palette.bad() } else { Style::new() };
        let of_event = wrapped(event, usize::from(inner.width));
        if !lines.is_empty() && lines.len() + of_event.len() > usize::from(inner.height) {
            break;
        }
        lines.splice(0..0, of_event.into_iter().map(|text| Line::styled(text, style)));
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// A text as lines of at most `width` characters, at most [`EVENT_LINES`] of them.
fn wrapped(text: &str, width: usize) -> Vec<&str> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while !rest.is_empty() && lines.len() < EVENT_LINES {
        let end = rest.char_indices().nth(width.max(1)).map_or(rest.len(), |(at, _)| at);
        // A word is cut only if the line would be less than half full without it.
        let at_space = rest[..end].rfind(' ').filter(|&at| end < rest.len() && at > end / 2);
        let (line, after) = rest.split_at(at_space.unwrap_or(end));
        lines.push(line.trim_end());
        rest = after.trim_start();
    }
    lines
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::control::{DeviceStatus, JobStatus, RelayFigures, RelayStatus, SensorFigures, Status};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Instant;

    /// A view of a bot with two devices, three jobs and a relay that is away.
    pub(in super::super) fn view() -> View {
        let device = |id: &str, rate, state: &str| DeviceStatus {
            id: id.to_owned(),
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            rate,
            state: state.to_owned(),
        };
        let relay = |url: &str, state: &str| RelayStatus { url: url.to_owned(), state: state.to_owned() };
        let figures = |url: &str, failures, lag| RelayFigures { url: url.to_owned(), failures, lag_milliseconds: lag };
        let job = |job, kind: &str, patterns: &[&str], age_seconds, chance, left| JobProgress {
            job: JobStatus {
                job,
                asker: "npub1asker".to_owned(),
                patterns: patterns.iter().map(ToString::to_string).collect(),
                kind: kind.to_owned(),
                accepted_at: 1,
                expires_at: 2,
                difficulty: Some(1e12),
                expected_seconds: Some(10.0),
            },
            age_seconds,
            chance_so_far: chance,
            seconds_left: left,
        };
        View {
            status: Status {
                version: "0.1.0".to_owned(),
                npub: "npub1m0ctane8kyy3vr0kgg2vz5qp3cye5z7qfe4rd6rzv0mfmzlyh3srdv9d5".to_owned(),
                uptime_seconds: 7300,
                rate: Some(21.3e9),
                devices: vec![device("cuda:0", Some(21.3e9), "working"), device("cuda:1", None, "out: it lies")],
                fleet: None,
                relays: vec![relay("wss://nos.lol", "connected"), relay("wss://relay.damus.io", "disconnected")],
                open_jobs: 3,
                undelivered: 1,
                memory_bytes: 40 << 20,
            },
            is_paused: false,
            candidates: 1_000_000_000,
            sensors: vec![
                SensorFigures { celsius: Some(61.0), watts: Some(412.4), megahertz: Some(1755.0) },
                SensorFigures::default(),
            ],
            relays: vec![figures("wss://nos.lol", 0, Some(43)), figures("wss://relay.damus.io", 7, None)],
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

    pub(in super::super) fn screen(width: u16, height: u16, model: &Model, has_colors: bool) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model, Palette { has_colors })).unwrap();
        terminal
    }

    /// A model that has watched for a while.
    fn model() -> Model {
        let (mut model, start) = (Model::default(), Instant::now());
        let mut candidates = 0;
        for second in 0..40u64 {
            candidates += 20_000_000_000 * (1 + second % 4) / 4;
            model.take(View { candidates, ..view() }, start + Duration::from_secs(second));
        }
        model
    }

    #[test]
    fn everything_is_on_eighty_by_twenty_four() {
        insta::assert_snapshot!(screen(80, 24, &model(), false).backend());
    }

    #[test]
    fn a_larger_terminal_shows_more_and_a_paused_bot_says_so() {
        let mut model = model();
        let mut view = View { is_paused: true, ..view() };
        view.jobs = (1..40)
            .map(|job| JobProgress { job: JobStatus { job, ..view.jobs[0].job.clone() }, ..view.jobs[0].clone() })
            .collect();
        view.status.open_jobs = 39;
        model.take(view, Instant::now());
        model.scroll(4);
        insta::assert_snapshot!(screen(120, 36, &model, false).backend());
    }

    #[test]
    fn a_bot_that_stopped_is_named_above_its_last_figures() {
        let mut model = model();
        model.fail("no bot runs with the data folder /var/lib/npubbot".to_owned());
        let text = screen(80, 24, &model, false).backend().to_string();
        assert!(text.contains("no bot runs") && text.contains("m0ctane"), "{text}");
        assert!(text.contains("figures are old") && !text.contains("searching"), "{text}");
    }

    #[test]
    fn the_title_says_whether_the_bot_searches() {
        let title = |states: [&str; 2], open_jobs, is_paused| {
            let mut view = View { is_paused, ..view() };
            view.status.open_jobs = open_jobs;
            for (device, state) in view.status.devices.iter_mut().zip(states) {
                device.state = state.to_owned();
            }
            let mut model = Model::default();
            model.take(view, Instant::now());
            screen(80, 24, &model, false).backend().to_string().lines().next().unwrap().to_owned()
        };
        for (states, open_jobs, is_paused, expected) in [
            (["working", "out: x"], 3, false, "searching"),
            (["working", "rests at 83 °C until 75 °C"], 0, false, "ready"),
            (["rests until 22:00 CET (schedule)", "out: x"], 3, false, "resting"),
            (["paused", "out: x"], 3, true, "paused"),
            (["out: x", "out: y"], 3, false, "no device works"),
            (["out: x", "out: y"], 3, true, "no device works"),
        ] {
            let title = title(states, open_jobs, is_paused);
            assert!(title.contains(expected), "{states:?}: {title}");
        }
    }

    #[test]
    fn every_size_is_drawn_and_a_small_one_says_what_it_needs() {
        let model = model();
        for (width, height) in [(1, 1), (79, 24), (80, 23), (40, 10)] {
            let text = screen(width, height, &model, false).backend().to_string();
            assert!(width < 40 || text.contains("too small"), "{text}");
        }
        for (width, height) in [(80, 25), (200, 24), (80, 100), (300, 80)] {
            let text = screen(width, height, &model, false).backend().to_string();
            assert!(text.contains("Devices") && text.contains("q quit"), "{text}");
        }
        screen(80, 24, &Model::default(), true);
    }

    #[test]
    fn long_events_are_cut_between_words_and_end_after_three_lines() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("a 23456789 b", 8), ["a 234567", "89 b"]);
        assert_eq!(wrapped("ääää öööö üüüü ßßßß", 4), ["ääää", "öööö", "üüüü"]);
        assert_eq!((wrapped("", 8), wrapped("ab", 0)), (vec![], vec!["a", "b"]));
    }

    #[test]
    fn without_colours_no_cell_has_one() {
        let uncoloured = |has_colors| {
            let terminal = screen(80, 24, &model(), has_colors);
            terminal.backend().buffer().content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
        };
        assert!(uncoloured(false) && !uncoloured(true));
    }
}
