//! Draws the losses of trainings as SVG, over steps and over seconds, in light or dark colors as the reader's system
//! prefers.

use std::fmt::Write;

const LEFT: f64 = 46.0;
const TOP: f64 = 40.0;
const WIDTH: f64 = 330.0;
const HEIGHT: f64 = 240.0;
const GAP: f64 = 40.0;

const STYLE: &str = "svg{--ink:#1f2328;--line:#d1d9e0;--c0:#0969da;--c1:#bc4c00;--page:#fff}\
    @media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--line:#3d444d;--c0:#58a6ff;--c1:#f0883e;--page:#0d1117}}\
    text{font:12px system-ui,sans-serif;fill:var(--ink)}path{fill:none}";

/// Training to draw: name, loss of each step, and end of each step in seconds.
pub type Training<'a> = (&'a str, &'a [f64], &'a [f64]);

/// Draws the plot as SVG; the first training is dashed and on top, since the lines of both trainings may coincide.
pub fn svg(trainings: &[Training<'_>; 2]) -> String {
    let most = |values: fn(&Training<'_>) -> f64| trainings.iter().map(values).fold(1e-9, f64::max);
    let loss = most(|(_, losses, _)| losses.iter().copied().fold(0.0, f64::max));
    let steps = most(|(_, losses, _)| losses.len() as f64);
    let seconds = most(|(_, _, seconds)| seconds.last().copied().unwrap_or(0.0));
    let (wide, high) = (LEFT + 2.0 * WIDTH + GAP + 14.0, TOP + HEIGHT + 46.0);
    let title = "Loss of the same training by weir and by Gloo";
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" width=\"{wide}\" height=\"{high}\" role=\"img\" \
         aria-label=\"{title}\"><title>{title}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"{wide}\" height=\"{high}\" fill=\"var(--page)\"/>\n"
    );
    for (panel, (label, end)) in [("steps", steps), ("seconds", seconds)]
        .into_iter()
        .enumerate()
    {
        let left = LEFT + panel as f64 * (WIDTH + GAP);
        let x = |value: f64| left + WIDTH * value / end;
        let y = |value: f64| TOP + HEIGHT * (1.0 - value / loss);
        for mark in marks(end) {
            let _ = writeln!(
                svg,
                "<path d=\"M{0:.1} {TOP}v{HEIGHT}\" stroke=\"var(--line)\"/><text x=\"{0:.1}\" y=\"{1}\" \
                 text-anchor=\"middle\">{mark}</text>",
                x(mark),
                TOP + HEIGHT + 18.0
            );
        }
        for mark in marks(loss) {
            let _ = writeln!(
                svg,
                "<path d=\"M{left} {0:.1}h{WIDTH}\" stroke=\"var(--line)\"/><text x=\"{1}\" y=\"{2:.1}\" \
                 text-anchor=\"end\">{mark}</text>",
                y(mark),
                left - 6.0,
                y(mark) + 4.0
            );
        }
        for (number, (_, losses, seconds)) in trainings.iter().enumerate().rev() {
            let points = losses.iter().enumerate().map(|(step, loss)| {
                let at = if panel == 0 {
                    step as f64
                } else {
                    seconds[step]
                };
                format!("{:.1} {:.1}", x(at), y(*loss))
            });
            let points = points.collect::<Vec<_>>().join("L");
            let dashes = if number == 0 {
                " stroke-dasharray=\"5 4\""
            } else {
                ""
            };
            let _ = writeln!(
                svg,
                "<path d=\"M{points}\" stroke=\"var(--c{number})\" stroke-width=\"2\"{dashes}/>"
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"end\">{label}</text>",
            left + WIDTH,
            TOP + HEIGHT + 36.0
        );
    }
    let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\">loss</text>", TOP - 12.0);
    for (number, (name, ..)) in trainings.iter().enumerate() {
        let at = LEFT + 60.0 + 90.0 * number as f64;
        let dashes = if number == 0 {
            " stroke-dasharray=\"5 4\""
        } else {
            ""
        };
        let _ = writeln!(
            svg,
            "<path d=\"M{at} {0}h22\" stroke=\"var(--c{number})\" stroke-width=\"2\"{dashes}/><text x=\"{1}\" y=\"{2}\">{name}</text>",
            TOP - 16.0,
            at + 28.0,
            TOP - 12.0
        );
    }
    svg + "</svg>\n"
}

/// Tick marks from 0 to `end`: three to seven multiples of a round number.
fn marks(end: f64) -> impl Iterator<Item = f64> {
    let decade = 10_f64.powf((end / 3.0).log10().floor());
    let step = [5.0, 2.0, 1.0]
        .into_iter()
        .find(|of| of * decade <= end / 3.0);
    let step = step.unwrap_or(1.0) * decade;
    let count = (end / step + 1e-9).floor() as usize;
    (0..=count).map(move |mark| (mark as f64 * step * 1e6).round() / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_training_is_drawn_over_steps_and_over_its_own_seconds() {
        let losses = [2.0, 1.0, 0.5];
        let svg = svg(&[
            ("weir", &losses, &[1.0, 2.0, 3.0]),
            ("Gloo", &losses, &[2.0, 4.0, 6.0]),
        ]);
        let ends = |left: f64, share: f64| {
            format!("{:.1} {:.1}\"", left + WIDTH * share, TOP + HEIGHT * 0.75)
        };
        let right = LEFT + WIDTH + GAP;
        for end in [ends(LEFT, 2.0 / 3.0), ends(right, 0.5), ends(right, 1.0)] {
            assert!(svg.contains(&end), "{end}\n{svg}");
        }
        assert!(!svg.contains("NaN") && svg.contains("weir") && svg.contains("Gloo"));
    }

    #[test]
    fn marks_are_round_and_few() {
        for end in [0.7, 2.34, 17.0, 150.0, 3600.0] {
            let marks: Vec<f64> = marks(end).collect();
            assert!((4..=8).contains(&marks.len()), "{end}: {marks:?}");
            assert!(marks.iter().all(|mark| *mark <= end));
        }
    }
}
