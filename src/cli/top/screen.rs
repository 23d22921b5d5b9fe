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
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table, Wrap};
use std::time::Duration;

/// The smallest terminal that has room for everything.
const MIN_SIZE: (u16, u16) = (80, 24);
/// The styles of a good state, and of one that needs attention.
const GOOD: Style = Style::new().fg(Color::Green);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const KEYS_TEXT: &str = " q quit   p pause or go on   ↑ ↓ move through the jobs";

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, model: &TopModel, has_colors: bool) {
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
    draw_title(frame, title, model, view);
    draw_rate(frame, rate, model, view);
    draw_devices(frame, devices, view);
    draw_jobs(frame, jobs, model, view);
    draw_relays(frame, relays, view);
    draw_events(frame, events, view);
    frame.render_widget(Paragraph::new(KEYS_TEXT), keys);
    if !has_colors {
        frame.buffer_mut().content.iter_mut().for_each(|cell| cell.fg = Color::Reset);
    }
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, model: &TopModel, view: &View) {
    let status = &view.status;
    let npub = status.npub.get(..16).unwrap_or(&status.npub);
    let up = humanize(Duration::from_secs(status.uptime_seconds));
    let is_any = |states: &[&str]| {
        status.devices.iter().any(|device| states.iter().any(|state| device.state.starts_with(state)))
    };
    let state = match (&model.trouble, view.is_paused) {
        (Some(_), _) => Span::styled("these figures are old", BAD),
        (None, _) if !is_any(&["working", "paused", "rests"]) => Span::styled("no device works", BAD),
        (None, true) => Span::styled("paused", BAD),
        (None, false) if !is_any(&["working"]) => Span::raw("resting"),
        (None, false) if status.open_jobs == 0 => Span::raw("ready"),
        (None, false) => Span::styled("searching", GOOD),
    };
    let first = Line::from(vec![format!(" npubbot {}  {npub}…  up {up}  ", status.version).into(), state]);
    let second = match &model.trouble {
        Some(trouble) => Line::styled(format!(" {trouble}"), BAD),
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

fn draw_rate(frame: &mut Frame<'_>, area: Rect, model: &TopModel, view: &View) {
    let now = view.status.rate.map_or_else(|| "not measured".to_owned(), |rate| rate.to_string());
    let highest = model.rates.iter().copied().max().unwrap_or(0);
    let title = format!(" Rate: {now}; one column a second, the highest is {} ", Rate(highest as f64));
    let block = Block::bordered().title(title);
    let width = usize::from(block.inner(area).width);
    // The newest is on the right.
    let shown: Vec<u64> = model.rates.iter().copied().skip(model.rates.len().saturating_sub(width)).collect();
    let padded = std::iter::repeat_n(0, width.saturating_sub(shown.len())).chain(shown);
    let line = Sparkline::default().block(block).style(Style::new().fg(Color::Cyan)).max(highest.max(1));
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

fn draw_relays(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let relays = view.status.relays.iter().map(|relay| {
        let is_connected = relay.is_connected();
        let state = match (is_connected, relay.lag_milliseconds) {
            (true, Some(lag)) => format!("{lag} ms"),
            (true, None) => "ok".to_owned(),
            (false, _) => "away".to_owned(),
        };
        let failed = if relay.failures > 0 { format!("{} failed", relay.failures) } else { String::new() };
        let name = relay.url.split_once("://").map_or(relay.url.as_str(), |(_, name)| name).to_owned();
        Row::new([name, state, failed]).style(if is_connected { Style::new() } else { BAD })
    });
    let widths = [Constraint::Min(16), Constraint::Length(7), Constraint::Length(9)];
    frame.render_widget(Table::new(relays, widths).block(Block::bordered().title(" Relays ")), area);
}

/// The newest events that fit, the newest first.
fn draw_events(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let lines = view.events.iter().rev().map(|event| {
        let level = event.split_whitespace().nth(1);
        let is_bad = level.is_some_and(|level| ["WARN", "ERROR"].contains(&level));
        Line::styled(event.as_str(), if is_bad { BAD } else { Style::new() })
    });
    let events = Paragraph::new(lines.collect::<Vec<_>>()).wrap(Wrap { trim: true });
    frame.render_widget(events.block(Block::bordered().title(" Events ")), area);
}

/// The most devices shown. The rate above them is that of all devices.
const MAX_DEVICES: usize = 8;

/// Draws the devices: those of the bot's machine with their sensors, and those of workers with the
/// bot's figures.
fn draw_devices(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let rows = view.status.devices.iter().enumerate().take(MAX_DEVICES).map(|(at, device)| {
        let is_bad = device.state.starts_with("out") || device.state.contains("°C");
        let style = if is_bad { BAD } else { Style::new() };
        let sensors = view.sensors.get(at).copied().unwrap_or_default();
        Row::new(worker_row(device, view).unwrap_or_else(|| device_row(device, sensors))).style(style)
    });
    let widths = [12, 11, 6, 6, 9].map(Constraint::Length).into_iter().chain([Constraint::Min(15)]);
    let block = Block::bordered().title(devices_title(view));
    frame.render_widget(Table::new(rows, widths).block(block), area);
}

/// The title: the number of devices not shown, and the server of the workers.
fn devices_title(view: &View) -> Line<'static> {
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
            false => Span::styled("; the workers' server is away ", BAD),
        });
    }
    #[cfg(not(feature = "fleet"))]
    let _ = &mut parts;
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
    Some([
        id.to_string(),
        rate_text(device),
        format!("v{}", worker.version),
        format!("{} err", worker.errors),
        format!("{} hits", worker.hits),
        format!("{}, {} wrong, {}", device.state, worker.hits_wrong, worker.name),
    ])
}

#[cfg(not(feature = "fleet"))]
fn worker_row(_: &DeviceStatus, _: &View) -> Option<[String; 6]> {
    None
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
        terminal.draw(|frame| draw(frame, model, has_colors)).unwrap();
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
        let mut model = model();
        for (width, height) in [(1, 1), (79, 24), (80, 23), (40, 10)] {
            let text = screen(width, height, &model, false).backend().to_string();
            assert!(width < 40 || text.contains("too small"), "{text}");
        }
        for (width, height) in [(80, 25), (200, 24), (80, 100), (300, 80)] {
            let text = screen(width, height, &model, false).backend().to_string();
            assert!(text.contains("Devices") && text.contains("q quit"), "{text}");
        }
        screen(80, 24, &TopModel::default(), true);
        // The last figures of a bot that stopped stay.
        model.fail("no bot runs".to_owned());
        let text = screen(80, 24, &model, false).backend().to_string();
        assert!(text.contains("no bot runs") && text.contains("figures are old") && text.contains("m0ctane"), "{text}");
    }

    #[test]
    fn without_colours_no_cell_has_one() {
        let uncoloured = |has_colors| {
            let terminal = screen(80, 24, &model(), has_colors);
            terminal.backend().buffer().content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
        };
        assert!(uncoloured(false) && !uncoloured(true));
    }

    #[cfg(feature = "fleet")]
    #[test]
    fn a_workers_device_has_its_hits_errors_version_and_network() {
        let shown = |connected| {
            let mut view = view();
            let id = "worker ann:0".to_owned().try_into().unwrap();
            let device = &mut view.status.devices[1];
            (device.id, device.state, device.rate) = (id, "working".to_owned(), Some(Rate(182e9)));
            let ann = WorkerStatus { connected, ..of_fleet::worker(of_fleet::device()) };
            let server = "tls://nats.example:4222".to_owned();
            view.status.fleet = Some(FleetStatus { server, connected, workers: vec![ann] });
            let mut model = TopModel::default();
            model.take(view, Instant::now());
            screen(120, 30, &model, false).backend().to_string()
        };
        let text = shown(true);
        let line = text.lines().find(|line| line.contains("ann:0")).unwrap();
        for part in ["182 G/s", "v0.1.0", "3 err", "1234 hits", "0 wrong", "H200"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(text.contains("Devices with 1 of 1 workers") && text.contains("61 °C"), "{text}");
        assert!(shown(false).contains("the workers' server is away"));
    }
}
