//! The devices on the screen of `npubbot top`: those of the bot's machine with their sensors, and
//! those of workers with the bot's figures.

use super::palette::Palette;
use crate::cli::operate::echo_text;
use crate::control::{DeviceStatus, SensorFigures, View, WorkerDeviceStatus};
use crate::pattern::Rate;
use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Row, Table};

/// The most devices shown. The rate above them is that of all devices.
pub(super) const MOST_DEVICES: usize = 8;
/// Text before the id of a worker's device, like `ann:0`.
const OF_WORKERS: &str = "worker ";
/// Widths of the column of names: without workers, and with them.
const NAMES: (u16, u16) = (7, 12);

/// Draws the devices.
pub(super) fn draw_devices(frame: &mut Frame<'_>, area: Rect, view: &View, palette: Palette) {
    let rows = view.status.devices.iter().enumerate().take(MOST_DEVICES).map(|(at, device)| {
        let is_bad = device.state.starts_with("out") || device.state.contains("°C");
        let style = if is_bad { palette.bad() } else { Style::new() };
        let row = match worker_of(device, view) {
            Some(worker) => row_of_worker(device, worker),
            None => row_of_device(device, view.sensors.get(at).copied().unwrap_or_default()),
        };
        Row::new(row).style(style)
    });
    let is_worker = |device: &DeviceStatus| device.id.starts_with(OF_WORKERS);
    let names = if view.status.devices.iter().any(is_worker) { NAMES.1 } else { NAMES.0 };
    let widths = [names, 11, 6, 6, 9].map(Constraint::Length).into_iter().chain([Constraint::Min(20)]);
    let block = Block::bordered().title(title(view, palette));
    frame.render_widget(Table::new(rows, widths).block(block), area);
}

/// The title: the number of devices not shown, and the server of the workers.
fn title(view: &View, palette: Palette) -> Line<'static> {
    let hidden = view.status.devices.len().saturating_sub(MOST_DEVICES);
    let mut parts = vec![Span::raw(match hidden {
        0 => " Devices ".to_owned(),
        _ => format!(" Devices, and {hidden} more "),
    })];
    if let Some(fleet) = &view.status.fleet {
        let there = fleet.workers.iter().filter(|worker| worker.connected).count();
        parts.push(match fleet.connected {
            true => Span::raw(format!("with {there} of {} workers ", fleet.workers.len())),
            false => Span::styled("; the workers' server is away ", palette.bad()),
        });
    }
    Line::from(parts)
}

/// The bot's view of a worker's device.
fn worker_of<'a>(device: &DeviceStatus, view: &'a View) -> Option<&'a WorkerDeviceStatus> {
    let id = device.id.strip_prefix(OF_WORKERS)?;
    view.status.fleet.as_ref()?.workers.iter().flat_map(|worker| &worker.devices).find(|device| device.id == id)
}

fn rate_of(device: &DeviceStatus) -> String {
    device.rate.map_or_else(String::new, |rate| Rate(rate).to_string())
}

fn row_of_device(device: &DeviceStatus, sensors: SensorFigures) -> [String; 6] {
    let figure = |value: Option<f64>, unit: &str| value.map_or_else(String::new, |value| format!("{value:.0} {unit}"));
    [
        device.id.clone(),
        rate_of(device),
        figure(sensors.celsius, "°C"),
        figure(sensors.watts, "W"),
        figure(sensors.megahertz, "MHz"),
        format!("{}, {}", device.state, device.name),
    ]
}

/// The row of a worker's device. The bot cannot read its sensors, so their columns show its
/// version, errors and hits.
fn row_of_worker(device: &DeviceStatus, worker: &WorkerDeviceStatus) -> [String; 6] {
    let WorkerDeviceStatus { id, version, hits, hits_wrong, errors, name, .. } = worker;
    let echo = echo_text(worker);
    [
        id.clone(),
        rate_of(device),
        format!("v{version}"),
        format!("{errors} err"),
        format!("{hits} hits"),
        format!("{}{echo}, {hits_wrong} wrong, {name}", device.state),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::model::Model;
    use super::super::screen::tests::{screen, view};
    use crate::cli::fleet::tests::{device, worker};
    use crate::control::{FleetStatus, WorkerStatus};
    use std::time::Instant;

    /// A bot with one GPU of its own and one of a worker.
    fn with_worker(connected: bool) -> Model {
        let mut view = view();
        view.status.devices[1].id = "worker ann:0".to_owned();
        view.status.devices[1].state = "working".to_owned();
        view.status.devices[1].rate = Some(182e9);
        let ann = WorkerStatus { connected, ..worker(device()) };
        let server = "tls://nats.example:4222".to_owned();
        view.status.fleet = Some(FleetStatus { server, connected, workers: vec![ann] });
        let mut model = Model::default();
        model.take(view, Instant::now());
        model
    }

    #[test]
    fn a_workers_device_has_its_hits_errors_version_and_network() {
        let text = screen(120, 30, &with_worker(true), false).backend().to_string();
        let line = text.lines().find(|line| line.contains("ann:0")).unwrap();
        for part in ["182 G/s", "v0.1.0", "3 err", "1234 hits", "round trip 12 ms, clock -400 ms", "0 wrong", "H200"] {
            assert!(line.contains(part), "{part} in {line}");
        }
        assert!(text.contains("Devices with 1 of 1 workers") && text.contains("61 °C"), "{text}");
    }

    #[test]
    fn a_server_of_workers_that_is_away_is_in_the_title() {
        let text = screen(80, 24, &with_worker(false), false).backend().to_string();
        assert!(text.contains("the workers' server is away"), "{text}");
    }
}
