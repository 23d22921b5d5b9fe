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

use super::TopModel;
use crate::control::{JobStatus, View};
use crate::duration::humanize;
use crate::pattern::Rate;
use crate::scheduler::DeviceStatus;
use crate::search::{DeviceId, SensorValues};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};
use std::time::Duration;

/// The smallest terminal that has room for everything.
const MIN_SIZE: (u16, u16) = (80, 24);
/// The most lines of one event.
const MAX_EVENT_LINES: usize = 3;
const KEYS_TEXT: &str = " q quit   p pause or go on   ↑ ↓ move through the jobs";

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &TopModel, palette: Palette) {
    let area = frame.area();
    let Some(view) = &model.view else {
        return frame.render_widget(Paragraph::new(model.trouble.as_deref().unwrap_or("the bot is asked")), area);
    };
    if area.width < MIN_SIZE.0 || area.height < MIN_SIZE.1 {
        let text = format!("{} by {} is too small: 80 by 24 or more, please", area.width, area.height);
        return frame.render_widget(Paragraph::new(text), area);
    }
    let devices = view.status.devices.len().min(MAX_DEVICES) as u16;
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
    frame.render_widget(Paragraph::new(KEYS_TEXT), keys);
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, model: &TopModel, view: &View, palette: Palette) {
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

fn draw_rate(frame: &mut Frame<'_>, area: Rect, model: &TopModel, view: &View, palette: Palette) {
    let now = view.status.rate.map_or_else(|| "not measured".to_owned(), |rate| rate.to_string());
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

fn draw_jobs(frame: &mut Frame<'_>, area: Rect, model: &TopModel, view: &View) {
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

fn job_row(job: &JobStatus) -> Row<'static> {
    let time = |seconds: f64| humanize(Duration::from_secs_f64(seconds.min(1e12)));
    Row::new([
        format!("#{}", job.job),
        job.kind.clone(),
        job.patterns.join(" "),
        time(job.age_seconds as f64),
        job.chance_so_far.map_or_else(String::new, |chance| format!("{:.0} %", 100.0 * chance)),
        job.seconds_left.map_or_else(|| "not known".to_owned(), time),
    ])
}

fn draw_relays(frame: &mut Frame<'_>, area: Rect, view: &View, palette: Palette) {
    let relays = view.status.relays.iter().map(|relay| {
        let is_connected = relay.is_connected();
        let state = match (is_connected, relay.lag_milliseconds) {
            (true, Some(lag)) => format!("{lag} ms"),
            (true, None) => "ok".to_owned(),
            (false, _) => "away".to_owned(),
        };
        let failed = if relay.failures > 0 { format!("{} failed", relay.failures) } else { String::new() };
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
        let of_event = wrap(event, usize::from(inner.width));
        if !lines.is_empty() && lines.len() + of_event.len() > usize::from(inner.height) {
            break;
        }
        lines.splice(0..0, of_event.into_iter().map(|text| Line::styled(text, style)));
    }
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// A text as lines of at most `width` characters, at most [`MAX_EVENT_LINES`] of them.
fn wrap(text: &str, width: usize) -> Vec<&str> {
    let (mut lines, mut rest) = (Vec::new(), text);
    while !rest.is_empty() && lines.len() < MAX_EVENT_LINES {
        let end = rest.char_indices().nth(width.max(1)).map_or(rest.len(), |(at, _)| at);
        // A word is cut only if the line would be less than half full without it.
        let at_space = rest[..end].rfind(' ').filter(|&at| end < rest.len() && at > end / 2);
        let (line, after) = rest.split_at(at_space.unwrap_or(end));
        lines.push(line.trim_end());
        rest = after.trim_start();
    }
    lines
}

/// The most devices shown. The rate above them is that of all devices.
const MAX_DEVICES: usize = 8;
/// Widths of the column of names: without workers, and with them.
const NAME_WIDTHS: (u16, u16) = (7, 12);

/// Draws the devices: those of the bot's machine with their sensors, and those of workers with the
/// bot's figures.
fn draw_devices(frame: &mut Frame<'_>, area: Rect, view: &View, palette: Palette) {
    let rows = view.status.devices.iter().enumerate().take(MAX_DEVICES).map(|(at, device)| {
        let is_bad = device.state.starts_with("out") || device.state.contains("°C");
        let style = if is_bad { palette.bad() } else { Style::new() };
        let sensors = view.sensors.get(at).copied().unwrap_or_default();
        Row::new(worker_row(device, view).unwrap_or_else(|| device_row(device, sensors))).style(style)
    });
    let has_workers = view.status.devices.iter().any(|device| matches!(device.id, DeviceId::Remote(_)));
    let names = if has_workers { NAME_WIDTHS.1 } else { NAME_WIDTHS.0 };
    let widths = [names, 11, 6, 6, 9].map(Constraint::Length).into_iter().chain([Constraint::Min(20)]);
    let block = Block::bordered().title(devices_title(view, palette));
    frame.render_widget(Table::new(rows, widths).block(block), area);
}

/// The title: the number of devices not shown, and the server of the workers.
fn devices_title(view: &View, palette: Palette) -> Line<'static> {
    let hidden = view.status.devices.len().saturating_sub(MAX_DEVICES);
    let mut parts = vec![Span::raw(match hidden {
        0 => " Devices ".to_owned(),
        _ => format!(" Devices, and {hidden} more "),
    })];
    #[cfg(feature = "fleet")]
    if let Some(fleet) = &view.status.fleet {
        let there = fleet.workers.iter().filter(|worker| worker.connected).count();
        parts.push(match fleet.connected {
            true => Span::raw(format!("with {there} of {} workers ", fleet.workers.len())),
            false => Span::styled("; the workers' server is away ", palette.bad()),
        });
    }
    #[cfg(not(feature = "fleet"))]
    let _ = (palette, &mut parts);
    Line::from(parts)
}

fn rate_text(device: &DeviceStatus) -> String {
    device.rate.map_or_else(String::new, |rate| rate.to_string())
}

fn device_row(device: &DeviceStatus, sensors: SensorValues) -> [String; 6] {
    let figure = |value: Option<f64>, unit: &str| value.map_or_else(String::new, |value| format!("{value:.0} {unit}"));
    [
        device.id.to_string(),
        rate_text(device),
        figure(sensors.celsius, "°C"),
        figure(sensors.watts, "W"),
        figure(sensors.megahertz, "MHz"),
        format!("{}, {}", device.state, device.name),
    ]
}

/// The row of a worker's device. The bot cannot read its sensors, so their columns show its
/// version, errors and hits.
#[cfg(feature = "fleet")]
fn worker_row(device: &DeviceStatus, view: &View) -> Option<[String; 6]> {
    let DeviceId::Remote(id) = device.id else { return None };
    let worker = view.status.fleet.as_ref()?.devices().find(|device| device.id == id)?;
    let echo = crate::cli::fleet::echo_text(worker);
    Some([
        id.to_string(),
        rate_text(device),
        format!("v{}", worker.version),
        format!("{} err", worker.errors),
        format!("{} hits", worker.hits),
        format!("{}{echo}, {} wrong, {}", device.state, worker.hits_wrong, worker.name),
    ])
}

#[cfg(not(feature = "fleet"))]
fn worker_row(_: &DeviceStatus, _: &View) -> Option<[String; 6]> {
    None
}

/// The colours of the screen; none if `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Palette {
    /// Whether colours are used.
    pub has_colors: bool,
}

impl Palette {
    /// Reads `NO_COLOR` from the environment.
    pub fn of_environment() -> Palette {
        Palette { has_colors: std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) }
    }

    /// The style of a text in this colour, or plain without colours.
    pub fn color(self, color: Color) -> Style {
        if self.has_colors { Style::new().fg(color) } else { Style::new() }
    }

    /// The style of a good state.
    pub fn good(self) -> Style {
        self.color(Color::Green)
    }

    /// The style of a state that needs attention. Without colours it is bold.
    pub fn bad(self) -> Style {
        self.color(Color::Red).add_modifier(Modifier::BOLD)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    #[cfg(feature = "fleet")]
    use crate::cli::fleet::tests as of_fleet;
    use crate::cli::operate::tests::{device, job};
    use crate::control::Status;
    #[cfg(feature = "fleet")]
    use crate::fleet::{FleetStatus, WorkerStatus};
    use crate::nostr::{ConnectionState, RelayFigures};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use std::time::Instant;

    /// A view of a bot with two devices, three jobs and a relay that is away.
    pub(in crate::cli::top) fn view() -> View {
        let relay = |url: &str, state, failures, lag_milliseconds| RelayFigures {
            said: None,
            url: url.to_owned(),
            state,
            failures,
            lag_milliseconds,
        };
        let job = |number, kind: &str, patterns: &[&str], age_seconds, chance_so_far, seconds_left| JobStatus {
            age_seconds,
            chance_so_far,
            seconds_left,
            ..job(number, kind, patterns)
        };
        View {
            status: Status {
                version: "0.1.0".to_owned(),
                npub: "npub1m0ctane8kyy3vr0kgg2vz5qp3cye5z7qfe4rd6rzv0mfmzlyh3srdv9d5".to_owned(),
                uptime_seconds: 7300,
                rate: Some(Rate(21.3e9)),
                devices: vec![
                    device(DeviceId::Cuda(0), Some(21.3e9), "working"),
                    device(DeviceId::Cuda(1), None, "out: it lies"),
                ],
                #[cfg(feature = "fleet")]
                fleet: None,
                relays: vec![
                    relay("wss://nos.lol", ConnectionState::Connected, 0, Some(43)),
                    relay("wss://relay.damus.io", ConnectionState::Disconnected, 7, None),
                ],
                open_jobs: 3,
                undelivered: 1,
                memory_bytes: 40 << 20,
                bounds_reached: Vec::new(),
            },
            is_paused: false,
            candidates: 1_000_000_000,
            sensors: vec![
                SensorValues { celsius: Some(61.0), watts: Some(412.4), megahertz: Some(1755.0) },
                SensorValues::default(),
            ],
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

    pub(in crate::cli::top) fn screen(
        width: u16,
        height: u16,
        model: &TopModel,
        has_colors: bool,
    ) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, model, Palette { has_colors })).unwrap();
        terminal
    }

    /// A model that has watched for a while.
    fn model() -> TopModel {
        let (mut model, start) = (TopModel::default(), Instant::now());
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
        view.jobs = (1..40).map(|job| JobStatus { job, ..view.jobs[0].clone() }).collect();
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
            let mut model = TopModel::default();
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
        screen(80, 24, &TopModel::default(), true);
    }

    #[test]
    fn long_events_are_cut_between_words_and_end_after_three_lines() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("a 23456789 b", 8), ["a 234567", "89 b"]);
        assert_eq!(wrap("ääää öööö üüüü ßßßß", 4), ["ääää", "öööö", "üüüü"]);
        assert_eq!((wrap("", 8), wrap("ab", 0)), (vec![], vec!["a", "b"]));
    }

    #[test]
    fn without_colours_no_cell_has_one() {
        let uncoloured = |has_colors| {
            let terminal = screen(80, 24, &model(), has_colors);
            terminal.backend().buffer().content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
        };
        assert!(uncoloured(false) && !uncoloured(true));
    }

    /// A bot with one GPU of its own and one of a worker.
    #[cfg(feature = "fleet")]
    fn with_worker(connected: bool) -> TopModel {
        let mut view = view();
        view.status.devices[1].id = "worker ann:0".to_owned().try_into().unwrap();
        view.status.devices[1].state = "working".to_owned();
        view.status.devices[1].rate = Some(Rate(182e9));
        let ann = WorkerStatus { connected, ..of_fleet::worker(of_fleet::device()) };
        let server = "tls://nats.example:4222".to_owned();
        view.status.fleet = Some(FleetStatus { server, connected, workers: vec![ann] });
        let mut model = TopModel::default();
        model.take(view, Instant::now());
        model
    }

    #[cfg(feature = "fleet")]
    #[test]
    fn a_workers_device_has_its_hits_errors_version_and_network() {
        let text = screen(120, 30, &with_worker(true), false).backend().to_string();
        let line = text.lines().find(|line| line.contains("ann:0")).unwrap();
        for part in ["182 G/s", "v0.1.0", "3 err", "1234 hits", "round trip 12 ms, clock -400 ms", "0 wrong", "H200"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(text.contains("Devices with 1 of 1 workers") && text.contains("61 °C"), "{text}");
    }

    #[cfg(feature = "fleet")]
    #[test]
    fn a_server_of_workers_that_is_away_is_in_the_title() {
        let text = screen(80, 24, &with_worker(false), false).backend().to_string();
        assert!(text.contains("the workers' server is away"), "{text}");
    }
}
