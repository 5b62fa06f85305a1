//! Draws named series of points in a panel, and bar charts: comparisons of runs, clients and latencies.

use std::fmt::Write as _;

use super::scale::{Scale, step, tick};
use super::{Chart, LEFT, LETTER, LINE, RIGHT, WIDTH, begin, escape, ticks, title};

/// Role of a series in a comparison, which determines its color; the HTML page defines the colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The series that the figure is about.
    Main,
    /// A series that the main series is compared with.
    Other,
    /// The main series, measured under faults.
    Faulted,
}

impl Role {
    fn color(self) -> &'static str {
        match self {
            Role::Main => "var(--main)",
            Role::Other => "var(--other)",
            Role::Faulted => "var(--warn)",
        }
    }
}

/// A named series of points in a panel; the panel's title has the name in the color of the series.
#[derive(Debug, Clone)]
pub struct Series {
    /// Name of the series, as the panel's title shows it.
    pub name: String,
    /// Role of the series, which determines its color.
    pub role: Role,
    /// The points, as (x, y), in the units of the chart's axis and the panel.
    pub points: Vec<(f64, f64)>,
}

/// How the points of series are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As lines between the points, over a vertical axis from 0.
    Lines,
    /// As separate points, over a logarithmic vertical axis of whole powers of ten; values of 0 or less are not drawn.
    Points,
}

impl Chart<'_> {
    /// Draws the series of a panel whose upper edge is at `top`.
    pub(super) fn series(
        &self,
        svg: &mut String,
        (text, series, form): (&str, &[Series], Form),
        top: f64,
        height: f64,
    ) {
        let values = || series.iter().flat_map(|of| of.points.iter().map(|at| at.1));
        let scale = match form {
            Form::Lines => Scale::linear(values().fold(0.0, f64::max), 8),
            Form::Points => Scale::decades(values().filter(|value| *value > 0.0)),
        };
        let names: Vec<String> = series.iter().map(legend).collect();
        title(svg, top, text, "", &names.join(", "));
        ticks(svg, &scale, top, height);
        for of in series {
            let at = of
                .points
                .iter()
                .filter(|at| form == Form::Lines || at.1 > 0.0);
            let mut path = String::new();
            for (number, (x, y)) in at.enumerate() {
                let (x, y) = (self.x(*x), top + height * (1.0 - scale.share(*y)));
                let _ = match form {
                    Form::Points => write!(path, "M{x:.1} {y:.1}h0"),
                    Form::Lines if number == 0 => write!(path, "M{x:.1} {y:.1}"),
                    Form::Lines => write!(path, "L{x:.1} {y:.1}"),
                };
            }
            let width = match form {
                Form::Lines => 2,
                Form::Points => 6,
            };
            let _ = writeln!(
                svg,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" \
                 stroke-linecap=\"round\" stroke-linejoin=\"round\"/>",
                of.role.color()
            );
        }
    }
}

/// Name of a series in its color, for the panel's title.
fn legend(series: &Series) -> String {
    format!(
        "<tspan fill=\"{}\" font-weight=\"600\">{}</tspan>",
        series.role.color(),
        escape(&series.name)
    )
}

const BAR: f64 = 26.0;
const BETWEEN: f64 = 12.0;

/// Draws a bar chart as an SVG element: a horizontal bar for each (name, role, value).
pub fn bars<S: AsRef<str>>(label: &str, bars: &[(S, Role, f64)]) -> String {
    let longest = bars.iter().map(|bar| bar.0.as_ref().chars().count()).max();
    let left = (LETTER * longest.unwrap_or(0) as f64 + 16.0).clamp(LEFT, WIDTH / 2.0);
    let most = bars.iter().map(|bar| bar.2).fold(0.0, f64::max);
    let step = step(most, 10);
    let end = most.max(step) * 1.02;
    let x = |value: f64| left + value / end * (WIDTH - left - RIGHT);
    let bottom = BETWEEN + (BAR + BETWEEN) * bars.len() as f64;
    let mut svg = begin(bottom + 40.0, label);
    for number in 0..=(end / step) as usize {
        let value = step * number as f64;
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} 0V{bottom:.0}\" stroke=\"var(--line)\" stroke-width=\"0.7\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{}</text>",
            bottom + LINE,
            tick(value),
            x = x(value),
        );
    }
    for (number, (name, role, value)) in bars.iter().enumerate() {
        let top = BETWEEN + (BAR + BETWEEN) * number as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BAR}\" fill=\"{}\"/>",
            left - 8.0,
            top + BAR / 2.0 + 4.0,
            escape(name.as_ref()),
            x(*value) - left,
            role.color()
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{left:.1} 0V{bottom:.0}\" stroke=\"currentColor\" stroke-width=\"0.7\" opacity=\"0.5\"/>\
         <text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" opacity=\"0.75\">{}</text>",
        WIDTH - RIGHT,
        bottom + 2.0 * LINE + 2.0,
        escape(label)
    );
    svg + "</g></svg>"
}

#[cfg(test)]
mod tests {
    use super::super::{Content, Panel, Unit};
    use super::*;

    fn drawn(form: Form, points: &[(f64, f64)]) -> String {
        let series = Series {
            name: "a<b".to_owned(),
            role: Role::Faulted,
            points: points.to_vec(),
        };
        let panel = Panel {
            title: "accuracy, %".to_owned(),
            unit: Unit::Number,
            content: Content::Series(vec![series], form),
        };
        let chart = Chart {
            label: "how accuracy grew",
            axis: "seconds",
            end: 10.0,
            bands: &[],
            moments: &[],
            panels: &[panel],
        };
        chart.svg()
    }

    #[test]
    fn a_line_ends_where_its_axis_does() {
        let svg = drawn(Form::Lines, &[(0.0, 0.0), (5.0, 50.0), (10.0, 100.0)]);
        let middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0;
        let line = format!("L{middle:.1} ");
        assert!(svg.contains(&line), "{line}: {svg}");
        assert!(svg.contains(&format!("L{:.1} ", WIDTH - RIGHT)), "{svg}");
        assert!(svg.contains("fill=\"var(--warn)\" font-weight=\"600\">a&lt;b</tspan>"));
        assert!(
            svg.contains(">seconds</text>") && !svg.contains("\"#"),
            "{svg}"
        );
    }

    #[test]
    fn points_lie_in_whole_decades() {
        let svg = drawn(Form::Points, &[(0.0, 25.0), (9.0, 67_000.0), (3.0, 0.0)]);
        assert_eq!(svg.matches("h0").count(), 2, "0 has no logarithm: {svg}");
        assert!(
            svg.contains(">10</text>") && svg.contains(">100,000</text>"),
            "{svg}"
        );
        for points in [&[][..], &[(5.0, 10.0)]] {
            let svg = drawn(Form::Points, points);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn a_bar_is_as_long_as_its_value() {
        let svg = bars(
            "bytes",
            &[("one", Role::Main, 1.0), ("t&o", Role::Other, 2.0)],
        );
        let width = |color: &str| -> f64 {
            let (before, _) = svg
                .split_once(&format!("\" height=\"26\" fill=\"var({color})\""))
                .unwrap();
            before.rsplit('"').next().unwrap().parse().unwrap()
        };
        assert!(
            (width("--other") - 2.0 * width("--main")).abs() < 0.2,
            "{svg}"
        );
        assert!(
            svg.contains(">one</text>")
                && svg.contains(">t&amp;o</text>")
                && svg.contains(">bytes<")
        );
        assert!(!svg.contains("\"#"), "colors are the page's");
        assert!(!bars("ms", &[("x", Role::Main, 0.0)]).contains("NaN"));
    }
}
