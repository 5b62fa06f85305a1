//! Draws a Q–Q plot as SVG, in light or dark colors as the reader's system prefers. Points on the
//! diagonal are quantiles that agree.

use std::fmt::Write;

const SIZE: f64 = 460.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 34.0;
const INNER: f64 = 360.0;
/// Maximum number of drawn points, apart from the points at both ends.
const POINTS: usize = 400;

const STYLE: &str = "svg{--ink:#1f2328;--line:#d1d9e0;--main:#0969da;--page:#fff}\
    @media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--line:#3d444d;--main:#58a6ff;--page:#0d1117}}\
    text{font:12px system-ui,sans-serif;fill:var(--ink)}";

/// Indices of the values to draw among `count` sorted values: at equal steps, and the last twenty at each end.
pub fn thinned(count: usize) -> impl Iterator<Item = usize> {
    let every = count.div_ceil(POINTS).max(1);
    (0..count).filter(move |n| n % every == 0 || *n < 20 || n + 20 >= count)
}

/// Draws the Q–Q plot of points (expected quantile, found quantile).
pub fn svg(title: &str, x_label: &str, y_label: &str, points: &[(f64, f64)]) -> String {
    let all = || points.iter().flat_map(|(x, y)| [*x, *y]);
    let least = all().fold(f64::INFINITY, f64::min);
    let most = all().fold(f64::NEG_INFINITY, f64::max);
    let step = step((most - least).max(1e-9));
    let (low, high) = ((least / step).floor() * step, (most / step).ceil() * step);
    let share = |value: f64| (value - low) / (high - low).max(1e-9);
    let x = |value: f64| LEFT + INNER * share(value);
    let y = |value: f64| TOP + INNER * (1.0 - share(value));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIZE} {SIZE}\" width=\"{SIZE}\" height=\"{SIZE}\" \
         role=\"img\" aria-label=\"{title}\"><title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"{SIZE}\" height=\"{SIZE}\" fill=\"var(--page)\"/>\n"
    );
    let (end, base) = (LEFT + INNER, TOP + INNER);
    let marks = ((high - low) / step).round() as usize;
    for mark in 0..=marks {
        let value = low + mark as f64 * step;
        let label = (value * 1e6).round() / 1e6;
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {TOP}V{base}M{LEFT} {:.1}H{end}\" stroke=\"var(--line)\" stroke-width=\"0.7\"/>\
             <text x=\"{:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{label}</text>\
             <text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            x(value),
            y(value),
            x(value),
            base + 18.0,
            LEFT - 8.0,
            y(value) + 4.0
        );
    }
    let dots: String = points
        .iter()
        .map(|(should, is)| format!("M{:.1} {:.1}h0", x(*should), y(*is)))
        .collect();
    let _ = write!(
        svg,
        "<path d=\"M{LEFT} {base}L{end} {TOP}\" stroke=\"var(--ink)\" stroke-width=\"0.8\" opacity=\"0.6\"/>\n\
         <path d=\"{dots}\" stroke=\"var(--main)\" stroke-width=\"4\" stroke-linecap=\"round\"/>\n\
         <text x=\"{LEFT}\" y=\"{:.0}\">{y_label}</text>\n\
         <text x=\"{end}\" y=\"{:.0}\" text-anchor=\"end\">{x_label}</text>\n</svg>\n",
        TOP - 12.0,
        base + 38.0
    );
    svg
}

/// A round number, as the distance of tick marks, that fits four to ten times into `whole`.
fn step(whole: f64) -> f64 {
    let most = whole / 4.0;
    let decade = 10_f64.powf(most.log10().floor());
    let fitting = [5.0, 2.0, 1.0].into_iter().find(|of| of * decade <= most);
    fitting.unwrap_or(1.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_quantiles_lie_on_the_line() {
        let points = [(10.0, 10.0), (20.0, 20.0), (30.0, 50.0)];
        let plot = svg("t", "x", "y", &points);
        // The axes go from 10 to 50.
        let corner = format!("M{LEFT:.1} {:.1}h0", TOP + INNER);
        let quarter = format!("M{:.1} {:.1}h0", LEFT + INNER / 4.0, TOP + INNER * 0.75);
        let off = format!("M{:.1} {TOP:.1}h0", LEFT + INNER / 2.0);
        for dot in [corner, quarter, off] {
            assert!(plot.contains(&dot), "{dot}\n{plot}");
        }
        assert!(!plot.contains("NaN"));
    }

    #[test]
    fn the_ends_are_drawn_whole() {
        let drawn: Vec<usize> = thinned(20_000).collect();
        assert!(drawn.len() <= POINTS + 41, "{}", drawn.len());
        assert_eq!((drawn[5], drawn.last()), (5, Some(&19_999)));
        assert_eq!(thinned(3).count(), 3);
    }
}
