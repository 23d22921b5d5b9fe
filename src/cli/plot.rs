//! Plots as SVG files: lines and bars with axes. Plotting crates bring a font system to measure
//! text; these plots leave that to the viewer.

use crate::pattern::Rate;
use std::fmt::Write;

const WIDTH: f64 = 840.0;
/// Height of one panel, with its title and the labels of its axis.
const HEIGHT: f64 = 290.0;
const LEFT: f64 = 92.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 46.0;
const BOTTOM: f64 = 50.0;
/// The colours of the series. They differ even for readers without colour vision.
const COLORS: [&str; 2] = ["#2a6f97", "#e09f3e"];
/// Approximate number of ticks on an axis.
const TICKS: f64 = 5.0;
/// The most labels under bars.
const MOST_LABELS: usize = 8;

/// The widest bar.
const WIDEST_BAR: f64 = 40.0;

/// One plot of a file.
pub(super) struct Panel {
    /// The panel's title.
    pub title: String,
    /// The text under the horizontal axis.
    pub below: String,
    /// The panel's values.
    pub shape: Shape,
    /// The text of a value on the vertical axis.
    pub label: fn(f64) -> String,
    /// The least distance between two ticks on the vertical axis: 1 for things that are counted.
    pub least_step: f64,
}

/// The values of a panel.
pub(super) enum Shape {
    /// Points joined by a line; with `decades`, the horizontal axis is logarithmic.
    Line {
        /// Places and values, from left to right.
        points: Vec<(f64, f64)>,
        /// Whether the horizontal axis is logarithmic.
        decades: bool,
    },
    /// Bars, with those of the series side by side.
    Bars {
        /// The text under each group of bars.
        labels: Vec<String>,
        /// Name and values of each series, at most two.
        series: Vec<(String, Vec<f64>)>,
    },
}

/// The text of an SVG file with these panels, one below the other.
pub(super) fn svg(title: &str, panels: &[Panel]) -> String {
    let height = 40.0 + HEIGHT * panels.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"13\" fill=\"#222\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    text(&mut out, WIDTH / 2.0, 28.0, "middle", "font-size=\"17\" font-weight=\"600\"", title);
    for (at, panel) in panels.iter().enumerate() {
        let _ = writeln!(out, "<g transform=\"translate(0 {})\">", 40.0 + HEIGHT * at as f64);
        draw(&mut out, panel);
        out.push_str("</g>\n");
    }
    out + "</svg>\n"
}

fn draw(out: &mut String, panel: &Panel) {
    text(out, LEFT, TOP - 16.0, "start", "font-weight=\"600\"", &panel.title);
    text(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0, "middle", "fill=\"#555\"", &panel.below);
    let highest = match &panel.shape {
        Shape::Line { points, .. } => points.iter().map(|point| point.1).fold(0.0, f64::max),
        Shape::Bars { series, .. } => series.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max),
    };
    let step = nice(highest / TICKS).max(panel.least_step);
    let top = step * (highest / step).ceil().max(1.0);
    let y = |value: f64| HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top;
    for tick in 0..=(top / step).round() as u32 {
        let value = step * f64::from(tick);
        line(out, (LEFT, y(value)), (WIDTH - RIGHT, y(value)), if tick == 0 { "#555" } else { "#ddd" });
        text(out, LEFT - 8.0, y(value) + 4.0, "end", "fill=\"#555\"", &(panel.label)(value));
    }
    match &panel.shape {
        Shape::Line { points, decades } => draw_line(out, points, *decades, y),
        Shape::Bars { labels, series } => draw_bars(out, labels, series, y),
    }
}

fn draw_line(out: &mut String, points: &[(f64, f64)], decades: bool, y: impl Fn(f64) -> f64) {
    let place = |x: f64| if decades { x.max(1.0).log10() } else { x };
    let last = points.iter().map(|point| place(point.0)).fold(0.0, f64::max);
    let step = if decades { 1.0 } else { nice(last / (2.0 * TICKS)) };
    let right = step * (last / step).ceil().max(1.0);
    let x = |at: f64| LEFT + (WIDTH - RIGHT - LEFT) * at / right;
    for tick in 0..=(right / step).round() as u32 {
        let at = step * f64::from(tick);
        let label = if decades { thousands(10f64.powf(at)) } else { trimmed(at) };
        line(out, (x(at), HEIGHT - BOTTOM), (x(at), HEIGHT - BOTTOM + 5.0), "#555");
        text(out, x(at), HEIGHT - BOTTOM + 20.0, "middle", "fill=\"#555\"", &label);
    }
    let drawn: Vec<String> = points.iter().map(|&(at, value)| format!("{:.1},{:.1}", x(place(at)), y(value))).collect();
    let color = COLORS[0];
    let _ =
        writeln!(out, "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>", drawn.join(" "));
    for point in &drawn {
        if let Some((x, y)) = point.split_once(',') {
            let _ = writeln!(out, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{color}\"/>");
        }
    }
}

fn draw_bars(out: &mut String, labels: &[String], series: &[(String, Vec<f64>)], y: impl Fn(f64) -> f64) {
    let group = (WIDTH - RIGHT - LEFT) / labels.len().max(1) as f64;
    // A limit, so that a few bars are not too wide.
    let bar = (0.8 * group / series.len().max(1) as f64).min(WIDEST_BAR);
    let every = labels.len().div_ceil(MOST_LABELS).max(1);
    for (at, label) in labels.iter().enumerate() {
        let left = LEFT + group * at as f64;
        // The newest always has its label.
        if (labels.len() - 1 - at).is_multiple_of(every) {
            text(out, left + group / 2.0, HEIGHT - BOTTOM + 20.0, "middle", "fill=\"#555\"", label);
        }
        for (number, (_, values)) in series.iter().enumerate() {
            let value = values.get(at).copied().unwrap_or(0.0);
            let middle = left + group / 2.0;
            let x = middle + bar * (number as f64 - series.len() as f64 / 2.0);
            let (top, color) = (y(value), COLORS[number % 2]);
            let tall = HEIGHT - BOTTOM - top;
            let _ = writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{bar:.1}\" height=\"{tall:.1}\" fill=\"{color}\"/>"
            );
        }
    }
    for (number, (name, _)) in series.iter().enumerate().filter(|_| series.len() > 1) {
        let x = WIDTH - RIGHT - 110.0 * (series.len() - number) as f64;
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/>",
            TOP - 27.0,
            COLORS[number % 2]
        );
        text(out, x + 18.0, TOP - 16.0, "start", "", name);
    }
}

fn line(out: &mut String, from: (f64, f64), to: (f64, f64), color: &str) {
    let _ = writeln!(
        out,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{color}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, more: &str, text: &str) {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" {more}>{escaped}</text>");
}

/// The smallest of 1, 2, 5, 10, 20, … (and their tenths) that is at least `least`.
fn nice(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let decade = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade).into_iter().find(|&step| step >= least * 0.999).unwrap_or(least)
}

/// A number without needless digits: `0.5`, `10`.
fn trimmed(value: f64) -> String {
    format!("{:.2}", value).trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A whole number with commas: `10,000`.
pub(super) fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate without needless digits: `5 G/s`, `2.5 M/s`.
pub(super) fn rate(value: f64) -> String {
    let text = Rate(value).to_string();
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(shape: Shape) -> Panel {
        Panel { title: "a < b & c".to_owned(), below: "seconds".to_owned(), shape, label: thousands, least_step: 1.0 }
    }

    #[test]
    fn ticks_are_numbers_that_people_count_by() {
        let cases = [(0.0, 1.0), (f64::NAN, 1.0), (0.03, 0.05), (1.0, 1.0), (1.01, 2.0), (3e9, 5e9), (7e-3, 1e-2)];
        for (least, expected) in cases {
            assert!((nice(least) / expected - 1.0).abs() < 1e-9, "{least}: {}", nice(least));
        }
        assert_eq!([0.0, 999.0, 1000.0, 1234567.0].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 0.5, 10.0, 2.25].map(trimmed), ["0", "0.5", "10", "2.25"]);
        assert_eq!([0.0, 5e9, 2.5e6, 1e11].map(rate), ["0/s", "5 G/s", "2.5 M/s", "100 G/s"]);
    }

    /// Zero must be on the pixel row of the axis, and the highest value on that of the highest
    /// tick.
    #[test]
    fn values_stand_where_the_axis_says() {
        let mut out = String::new();
        draw(&mut out, &panel(Shape::Line { points: vec![(0.0, 0.0), (10.0, 100.0)], decades: false }));
        // 100 is the highest tick, and 10 the last one to the right.
        assert!(out.contains("points=\"92.0,240.0 816.0,46.0\""), "{out}");
        let mut out = String::new();
        draw(&mut out, &panel(Shape::Line { points: vec![(1.0, 50.0), (100.0, 50.0)], decades: true }));
        assert!(out.contains("points=\"92.0,46.0 816.0,46.0\"") && out.contains(">100<"), "{out}");
    }

    #[test]
    fn few_things_are_counted_by_ones() {
        let bars = |most| Shape::Bars { labels: vec!["x".to_owned()], series: vec![("a".to_owned(), vec![most])] };
        for (most, expected) in
            [(0.0, vec!["0", "1"]), (2.0, vec!["0", "1", "2"]), (7.0, vec!["0", "2", "4", "6", "8"])]
        {
            let mut out = String::new();
            draw(&mut out, &panel(bars(most)));
            let ticks = out.lines().filter(|line| line.contains("\"end\"")).map(|line| {
                let (_, text) = line.split_once("fill=\"#555\">").unwrap();
                text.trim_end_matches("</text>")
            });
            assert_eq!(ticks.collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_file_is_well_formed_whatever_is_in_it() {
        let bars = Shape::Bars {
            labels: (0..30).map(|day| format!("11-{day:02}")).collect(),
            series: vec![("accepted".to_owned(), vec![3.0; 30]), ("delivered".to_owned(), vec![0.0; 29])],
        };
        let empty = Shape::Line { points: Vec::new(), decades: false };
        let nothing = Shape::Bars { labels: Vec::new(), series: Vec::new() };
        let text = svg("x", &[panel(bars), panel(empty), panel(nothing)]);
        assert!(text.contains("a &lt; b &amp; c") && text.contains(">11-29<") && !text.contains("NaN"), "{text}");
        assert_eq!(text.matches("<g ").count(), text.matches("</g>").count());
        assert_eq!(text.matches("<text ").count(), text.matches("</text>").count());
    }
}
