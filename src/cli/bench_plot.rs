//! The plots of `npubbot bench --plot`: rates over time and over the number of patterns.

use super::plot::{Panel, Shape, rate, svg};
use crate::pattern::Rate;
use crate::scheduler::Measurement;

/// Numbers of patterns that are measured for the plot.
pub(super) const PATTERNS: [usize; 5] = [1, 10, 100, 1_000, 10_000];
/// The most points of the plot over time.
const STRETCHES: usize = 40;
/// The fewest launches in a point. With fewer, the moment when a launch ends distorts the rate.
const LAUNCHES: usize = 8;

/// The points of the plot over time: middle of the stretch in seconds, candidates a second.
fn over_time(measured: &Measurement) -> Vec<(f64, f64)> {
    let collected = &measured.collected;
    let stretches = (collected.len() / LAUNCHES).clamp(1, STRETCHES);
    let mut began = 0.0;
    collected
        .chunks(collected.len().div_ceil(stretches).max(1))
        .filter_map(|stretch| {
            let ended = stretch.last()?.0.as_secs_f64();
            let candidates: u64 = stretch.iter().map(|(_, candidates)| candidates).sum();
            let from = std::mem::replace(&mut began, ended);
            (ended > from).then(|| ((from + ended) / 2.0, candidates as f64 / (ended - from)))
        })
        .collect()
}

/// The text of the SVG file. `over_patterns`: numbers of patterns and the rates with them; empty if
/// they were not measured.
pub(super) fn plot(measured: &Measurement, over_patterns: &[(usize, Rate)]) -> String {
    let names: Vec<&str> = measured.devices.iter().map(|device| device.name.as_str()).collect();
    let label: fn(f64) -> String = rate;
    let mut panels = vec![Panel {
        title: "Keys tested a second, over time".to_owned(),
        below: "seconds".to_owned(),
        shape: Shape::Line { points: over_time(measured), decades: false },
        label,
        least_step: 0.0,
    }];
    if !over_patterns.is_empty() {
        let points = over_patterns.iter().map(|&(patterns, Rate(rate))| (patterns as f64, rate)).collect();
        panels.push(Panel {
            title: "Keys tested a second, by the number of patterns searched for at once".to_owned(),
            below: "patterns".to_owned(),
            shape: Shape::Line { points, decades: true },
            label,
            least_step: 0.0,
        });
    }
    svg(&format!("npubbot bench: {}", names.join(", ")), &panels)
}
