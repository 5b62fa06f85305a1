//! Draws charts as SVG: panels one below the other over a shared axis, such as events and latencies over time.
//!
//! The colors are variables of the HTML page, so a chart is light or dark as its reader's system. Each panel has a title that
//! names its content, so there is no separate legend. The number of drawn points is bounded: see [`COLUMNS`].

mod scale;
mod series;

use std::fmt::Write as _;

use super::html::escape;
pub use scale::Unit;
use scale::{Scale, step, tick};
pub use series::{Form, Role, Series, bars};

/// Number of columns of a chart: points or marks in the same column are merged, as they would overlap.
pub const COLUMNS: usize = 700;

// Lengths in the drawing's own units, about one pixel each.
const WIDTH: f64 = 860.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 14.0;
/// Height of a panel's title, in SVG units.
const TITLE: f64 = 18.0;
const GAP: f64 = 8.0;
/// Height of a line of step names above the panels, in SVG units.
const LINE: f64 = 14.0;
/// Maximum number of lines of step names; more names are left out.
const LINES: usize = 6;
/// Assumed width of a letter, in SVG units; few letters are wider.
const LETTER: f64 = 6.6;

/// A named range of the chart's axis, such as a step of the timeline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span<'a> {
    /// Name of the range, which is drawn above the panels.
    pub name: &'a str,
    /// Start of the range, in the unit of the axis.
    pub from: f64,
    /// End of the range, in the unit of the axis.
    pub to: f64,
}

/// A chart: panels one below the other over a shared horizontal axis.
pub struct Chart<'a> {
    /// Description of the chart for readers who cannot see it (`aria-label`).
    pub label: &'a str,
    /// Text below the axis: its meaning and unit.
    pub axis: &'a str,
    /// End of the axis, in its unit; the axis begins at 0.
    pub end: f64,
    /// Ranges of the axis that are shaded in all panels; several ranges may have the same name.
    pub bands: &'a [Span<'a>],
    /// Positions on the axis at which a line is drawn through all panels, such as hits of faults.
    pub moments: &'a [f64],
    /// The panels of the chart, from top to bottom.
    pub panels: &'a [Panel],
}

/// A panel of a chart: its title and its content.
pub struct Panel {
    /// Title of the panel, such as `probe page, latency`.
    pub title: String,
    /// Unit of the values in the panel.
    pub unit: Unit,
    /// Values or events that the panel shows.
    pub content: Content,
}

/// Values or events that a panel shows over the chart's axis.
pub enum Content {
    /// Named series of points, drawn as lines or as points.
    Series(Vec<Series>, Form),
    /// Times of events in seconds; true if the event is an error.
    Marks(Vec<(f64, bool)>),
    /// Ranges of time, each from its start to its end, in seconds.
    Stretches(Vec<(f64, f64)>),
    /// Values at times in seconds; a time without a value is marked at the top of the panel.
    Points(Vec<(f64, Option<f64>)>),
    /// A value for each interval of equal width, from time 0 on: for packets sent (before the faults), and for those received.
    Bins {
        /// Width of each interval in seconds.
        width_s: f64,
        /// Values of the packets that were sent, by interval.
        sent: Vec<f64>,
        /// Values of the packets that were received, by interval.
        received: Vec<f64>,
    },
}

/// Thins dense points: each column keeps its highest point, its lowest one, and one without a value. Few points all stay.
pub fn thinned(points: &[(f64, Option<f64>)], end_s: f64) -> Vec<(f64, Option<f64>)> {
    if points.len() <= 2 * COLUMNS {
        return points.to_vec();
    }
    type Column = Option<((f64, f64), (f64, f64))>;
    let mut columns: Vec<Column> = vec![None; COLUMNS + 1];
    let mut missing = vec![None; COLUMNS + 1];
    for (at, value) in points {
        let index = ((at / end_s * COLUMNS as f64) as usize).min(COLUMNS);
        let Some(value) = value else {
            missing[index] = Some((*at, None));
            continue;
        };
        let point = (*at, *value);
        columns[index] = Some(match columns[index] {
            None => (point, point),
            Some((low, high)) => (
                if point.1 < low.1 { point } else { low },
                if point.1 > high.1 { point } else { high },
            ),
        });
    }
    let of_column = |(low, high): ((f64, f64), (f64, f64))| {
        let both = [low, high];
        let count = if low == high { 1 } else { 2 };
        both.into_iter()
            .take(count)
            .map(|(at, value)| (at, Some(value)))
    };
    let known = columns.into_iter().flatten().flat_map(of_column);
    let mut thinned: Vec<_> = known.chain(missing.into_iter().flatten()).collect();
    thinned.sort_by(|a, b| a.0.total_cmp(&b.0));
    thinned
}

impl Chart<'_> {
    /// Draws the chart as an SVG element.
    pub fn svg(&self) -> String {
        let (names, lines) = self.names();
        let mut y = LINE * (lines as f64) + 4.0;
        let first = y;
        let mut body = String::new();
        for panel in self.panels {
            y += TITLE;
            self.panel(&mut body, panel, y);
            y += panel.height() + GAP;
        }
        let last = y;
        let height = last + 40.0;
        let mut svg = begin(height, self.label);
        self.bands(&mut svg, first, last);
        svg += &names;
        self.axis(&mut svg, first, last);
        self.moments(&mut svg, first, last);
        svg += &body;
        svg += "</g></svg>";
        svg
    }

    fn x(&self, at: f64) -> f64 {
        let share = (at / self.end).clamp(0.0, 1.0);
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    /// Draws the names of the ranges, each once, above its first occurrence; returns the SVG text and the number of lines.
    fn names(&self) -> (String, usize) {
        let mut ends: Vec<f64> = Vec::new();
        let mut text = String::new();
        let mut told: Vec<&str> = Vec::new();
        for band in self.bands {
            if told.contains(&band.name) {
                continue;
            }
            told.push(band.name);
            let times = self
                .bands
                .iter()
                .filter(|other| other.name == band.name)
                .count();
            let shown = match times {
                1 => band.name.to_owned(),
                _ => format!("{} ×{times}", band.name),
            };
            let width = LETTER * shown.chars().count() as f64;
            // The name of a step near the end is drawn to the left of its start.
            let x = self.x(band.from).min(WIDTH - width);
            let line = ends.iter().position(|end| *end < x).unwrap_or(ends.len());
            if line >= LINES {
                continue;
            }
            match ends.get_mut(line) {
                Some(end) => *end = x + width + LETTER,
                None => ends.push(x + width + LETTER),
            }
            let y = LINE * (line as f64 + 1.0);
            let _ = writeln!(
                text,
                "<text x=\"{x:.1}\" y=\"{y:.0}\" fill=\"var(--warn)\">{}</text>",
                escape(&shown)
            );
        }
        (text, ends.len())
    }

    /// Shades the chart's named ranges through all panels; ranges of one name that almost touch are merged.
    fn bands(&self, svg: &mut String, top: f64, bottom: f64) {
        let mut drawn: Vec<(&str, f64, f64)> = Vec::new();
        for band in self.bands {
            let (from, to) = (self.x(band.from), self.x(band.to));
            match drawn.last_mut() {
                Some((name, _, end)) if *name == band.name && from - *end < 0.5 => *end = to,
                _ => drawn.push((band.name, from, to)),
            }
        }
        for (name, from, to) in drawn {
            let _ = writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{top:.0}\" width=\"{:.1}\" height=\"{:.0}\" fill=\"var(--warn)\" \
                 fill-opacity=\"0.14\"><title>{}</title></rect>",
                (to - from).max(0.5),
                bottom - top,
                escape(name)
            );
        }
    }

    /// Draws the axis below the panels, and a vertical line at each of its ticks through all panels.
    fn axis(&self, svg: &mut String, top: f64, bottom: f64) {
        let step = step(self.end, 12);
        let count = (self.end / step + 1e-9) as usize;
        for number in 0..=count {
            let at_s = number as f64 * step;
            let x = self.x(at_s);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {top:.0}V{:.0}\" stroke=\"var(--line)\" stroke-width=\"0.7\"/>\
                 <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
                bottom + 4.0,
                bottom + 18.0,
                tick(at_s)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" opacity=\"0.75\">{}</text>",
            WIDTH - RIGHT,
            bottom + 32.0,
            escape(self.axis)
        );
    }

    fn moments(&self, svg: &mut String, top: f64, bottom: f64) {
        let lines = self.moments.iter();
        let path: String = lines
            .map(|at_s| format!("M{:.1} {top:.0}V{bottom:.0}", self.x(*at_s)))
            .collect();
        if !path.is_empty() {
            let _ = writeln!(
                svg,
                "<path d=\"{path}\" stroke=\"var(--warn)\" stroke-width=\"0.7\" opacity=\"0.55\"/>"
            );
        }
    }

    fn stretches(&self, svg: &mut String, stretches: &[(f64, f64)], top: f64, height: f64) {
        for (from, to) in stretches {
            let (from, to) = (self.x(*from), self.x(*to));
            let _ = writeln!(
                svg,
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"var(--warn)\"/>",
                top + height * 0.2,
                (to - from).max(1.5),
                height * 0.6
            );
        }
    }

    fn panel(&self, svg: &mut String, panel: &Panel, top: f64) {
        let height = panel.height();
        match &panel.content {
            Content::Series(series, form) => {
                self.series(svg, (&panel.title, series, *form), top, height);
            }
            Content::Marks(marks) => {
                title(svg, top, &panel.title, "", "");
                self.marks(svg, marks, top, height);
            }
            Content::Stretches(stretches) => {
                title(svg, top, &panel.title, "", "");
                self.stretches(svg, stretches, top, height);
            }
            Content::Points(points) => {
                let values: Vec<f64> = points.iter().filter_map(|point| point.1).collect();
                let (scale, of, name) = Scale::fit(values, panel.unit);
                let name = match (name, scale.is_log()) {
                    (name, false) => name.to_owned(),
                    ("", true) => "logarithmic".to_owned(),
                    (name, true) => format!("{name}, logarithmic"),
                };
                title(svg, top, &panel.title, &name, "");
                ticks(svg, &scale, top, height);
                self.points(svg, points, (&scale, of), top, height);
            }
            Content::Bins {
                width_s,
                sent,
                received,
            } => {
                let all = sent.iter().chain(received);
                let most = all.copied().fold(0.0, f64::max);
                let (of, name) = panel.unit.shown(most);
                let scale = Scale::linear(most / of, 3);
                let what = "<tspan fill=\"var(--other)\" font-weight=\"600\">sent</tspan> and \
                            <tspan fill=\"var(--main)\" font-weight=\"600\">received</tspan>";
                title(svg, top, &panel.title, name, what);
                ticks(svg, &scale, top, height);
                let at = |value: f64| top + height * (1.0 - scale.share(value / of));
                // Received values are drawn over sent ones: the visible part of the sent ones was lost, or is late.
                if let Some(line) = self.stairs(sent, *width_s, at) {
                    let _ = writeln!(
                        svg,
                        "<path d=\"{line}\" fill=\"none\" stroke=\"var(--other)\" stroke-width=\"1.3\"/>"
                    );
                }
                if let Some(line) = self.stairs(received, *width_s, at) {
                    let base = top + height;
                    let _ = writeln!(
                        svg,
                        "<path d=\"{line}V{base:.0}H{LEFT}Z\" fill=\"var(--main)\" fill-opacity=\"0.25\"/>\
                         <path d=\"{line}\" fill=\"none\" stroke=\"var(--main)\" stroke-width=\"1.3\"/>"
                    );
                }
            }
        }
        let base = top + height;
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {base:.0}H{:.0}\" stroke=\"currentColor\" stroke-width=\"0.7\" opacity=\"0.5\"/>",
            WIDTH - RIGHT
        );
    }

    /// Draws a mark for each event; marks in the same column are merged.
    fn marks(&self, svg: &mut String, marks: &[(f64, bool)], top: f64, height: f64) {
        for (wrong, colour) in [(false, "--warn"), (true, "--bad")] {
            let of_kind = marks.iter().filter(|mark| mark.1 == wrong);
            let mut columns: Vec<i64> = of_kind.map(|mark| (self.x(mark.0) * 2.0) as i64).collect();
            columns.sort_unstable();
            columns.dedup();
            let path: String = columns
                .iter()
                .map(|column| format!("M{:.1} {top:.0}v{height:.0}", *column as f64 / 2.0))
                .collect();
            if !path.is_empty() {
                let _ = writeln!(
                    svg,
                    "<path d=\"{path}\" stroke=\"var({colour})\" stroke-width=\"1\"/>"
                );
            }
        }
    }

    fn points(
        &self,
        svg: &mut String,
        points: &[(f64, Option<f64>)],
        (scale, of): (&Scale, f64),
        top: f64,
        height: f64,
    ) {
        let (mut dots, mut gaps) = (String::new(), String::new());
        for (at_s, value) in thinned(points, self.end) {
            let x = self.x(at_s);
            let _ = match value {
                Some(value) => {
                    let y = top + height * (1.0 - scale.share(value / of));
                    write!(dots, "M{x:.1} {y:.1}h0")
                }
                None => write!(gaps, "M{:.1} {:.0}l3 5l3-5z", x - 3.0, top - 1.0),
            };
        }
        let _ = writeln!(
            svg,
            "<path d=\"{dots}\" stroke=\"var(--main)\" stroke-width=\"3\" stroke-linecap=\"round\"/>"
        );
        if !gaps.is_empty() {
            let _ = writeln!(svg, "<path d=\"{gaps}\" fill=\"var(--warn)\"/>");
        }
    }

    /// Draws a value per interval as a line of steps, up to the end of the axis; `None` if there are no values.
    fn stairs(&self, bins: &[f64], width_s: f64, at: impl Fn(f64) -> f64) -> Option<String> {
        let mut line = String::new();
        let shown = bins.iter().enumerate();
        for (number, value) in shown.take_while(|(n, _)| *n as f64 * width_s < self.end) {
            let y = at(*value);
            let end = self.x((number + 1) as f64 * width_s);
            let _ = match number {
                0 => write!(line, "M{LEFT} {y:.1}H{end:.1}"),
                _ => write!(line, "V{y:.1}H{end:.1}"),
            };
        }
        (!line.is_empty()).then_some(line)
    }
}

impl Panel {
    fn height(&self) -> f64 {
        match self.content {
            Content::Marks(_) | Content::Stretches(_) => 10.0,
            Content::Points(_) => 84.0,
            Content::Bins { .. } => 52.0,
            Content::Series(..) => 230.0,
        }
    }
}

/// The opening tags of a chart's SVG element; `label` describes the chart for readers who cannot see it.
fn begin(height: f64, label: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" role=\"img\" \
         aria-label=\"{}\" xmlns=\"http://www.w3.org/2000/svg\">\n\
         <g font-size=\"12\" font-family=\"system-ui, sans-serif\" fill=\"currentColor\">\n",
        escape(label)
    )
}

/// Draws the title of a panel above the panel, with the unit and the names of its series.
fn title(svg: &mut String, top: f64, text: &str, unit: &str, more: &str) {
    let y = top - 6.0;
    let unit = match unit {
        "" => String::new(),
        unit => format!(", {unit}"),
    };
    let more = match more {
        "" => String::new(),
        more => format!(": {more}"),
    };
    let _ = writeln!(
        svg,
        "<text x=\"{LEFT}\" y=\"{y:.0}\">{}{unit}{more}</text>",
        escape(text)
    );
}

fn ticks(svg: &mut String, scale: &Scale, top: f64, height: f64) {
    for value in scale.ticks() {
        let y = top + height * (1.0 - scale.share(value));
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {y:.1}H{:.0}\" stroke=\"var(--line)\" stroke-width=\"0.7\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"11\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            y + 4.0,
            tick(value)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(bands: &[Span<'_>], panels: &[Panel]) -> String {
        let chart = Chart {
            label: "what happened when",
            axis: "seconds",
            end: 10.0,
            bands,
            moments: &[2.5],
            panels,
        };
        chart.svg()
    }

    fn panel(unit: Unit, content: Content) -> Panel {
        Panel {
            title: "a <b>".to_owned(),
            unit,
            content,
        }
    }

    #[test]
    fn everything_lies_over_one_axis() {
        let span = |name, from, to| Span { name, from, to };
        let bands = [
            span("cut", 5.0, 6.0),
            span("cut", 7.0, 8.0),
            span("x&y", 9.0, 10.0),
        ];
        let marks = panel(
            Unit::Number,
            Content::Marks(vec![(5.0, false), (5.0, false), (5.5, true)]),
        );
        let points = panel(
            Unit::Time,
            Content::Points(vec![(5.0, Some(2e6)), (5.0, None)]),
        );
        let bins = panel(
            Unit::Throughput,
            Content::Bins {
                width_s: 5.0,
                sent: vec![2e3, 4e3, 9e3],
                received: vec![2e3, 0.0],
            },
        );
        let svg = chart(&bands, &[marks, points, bins]);
        // The middle of the axis.
        let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        for at_5_s in [
            format!("<rect x=\"{middle:.1}\""),
            format!("M{middle:.1} "),
            format!("H{middle:.1}V"),
        ] {
            assert!(svg.contains(&at_5_s), "{at_5_s}\n{svg}");
        }
        assert!(svg.contains("cut ×2") && svg.contains("x&amp;y") && svg.contains("a &lt;b&gt;"));
        assert!(svg.contains(", ms<") && svg.contains(", kB/s:"), "{svg}");
        // Two hits at one time are one mark, a wrong one has its own colour; a gap is marked.
        assert_eq!(svg.matches("var(--bad)").count(), 1);
        assert_eq!(svg.matches("l3 5l3-5z").count(), 1);
        // The third bin lies beyond the end.
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(!svg.contains("\"#"), "colours are the page's");
    }

    #[test]
    fn nothing_is_a_drawing_too() {
        let empty = [
            panel(Unit::Time, Content::Points(Vec::new())),
            panel(Unit::Number, Content::Marks(Vec::new())),
            panel(
                Unit::Packets,
                Content::Bins {
                    width_s: 1.0,
                    sent: vec![0.0],
                    received: Vec::new(),
                },
            ),
        ];
        let svg = chart(&[], &empty);
        assert!(svg.starts_with("<svg") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn a_drawing_is_bounded_and_shows_the_extremes() {
        let points: Vec<_> = (0..300_000)
            .map(|n| {
                let value = match n {
                    140_001 => Some(9e9),
                    _ if n % 1000 == 7 => None,
                    _ => Some(1e6 + f64::from(n % 100)),
                };
                (f64::from(n) / 30_000.0, value)
            })
            .collect();
        let few = thinned(&points, 10.0);
        assert!(few.len() <= 3 * (COLUMNS + 1), "{}", few.len());
        assert!(few.contains(&(140_001.0 / 30_000.0, Some(9e9))));
        assert!(few.iter().any(|point| point.1.is_none()));
        let marks = points.iter().map(|point| (point.0, false)).collect();
        let svg = chart(
            &[],
            &[
                panel(Unit::Time, Content::Points(points)),
                panel(Unit::Number, Content::Marks(marks)),
            ],
        );
        assert!(svg.len() < 100_000, "{}", svg.len());
        // One point is 9,000 times as high as the others.
        assert!(svg.contains("ms, logarithmic") || svg.contains("s, logarithmic"));
    }
}
