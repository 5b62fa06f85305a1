//! Drawings for the report, as SVG text.

use plotters::prelude::*;

const SIZE: (u32, u32) = (860, 320);
/// Of all letters, as large as a page's small ones.
const FONT: (&str, u32) = ("sans-serif", 15);
/// A letter of [`FONT`] is hardly ever wider, in pixels.
const LETTER: usize = 9;

/// A number at an axis: 20, 0.25.
fn tick(value: &f64) -> String {
    ((value * 1e3).round() / 1e3).to_string()
}

/// What a series is, and thereby its colour: the page's own, light or dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// What the figure is about.
    Main,
    /// What it is compared with.
    Other,
    /// The same under faults.
    Faulted,
}

impl Role {
    /// Stands for the page's colour until [`themed`] writes that: plotters knows no style sheets.
    fn placeholder(self) -> RGBColor {
        match self {
            Role::Main => RGBColor(1, 2, 3),
            Role::Other => RGBColor(1, 2, 4),
            Role::Faulted => RGBColor(1, 2, 5),
        }
    }
}

/// The drawing in the page's colours, on the page's ground.
fn themed(svg: &str) -> String {
    [
        ("#010203", "var(--main)"),
        ("#010204", "var(--other)"),
        ("#010205", "var(--warn)"),
        ("#000000", "currentColor"),
        ("#FFFFFF", "var(--page)"),
    ]
    .into_iter()
    .fold(svg.to_owned(), |svg, (placeholder, colour)| {
        svg.replace(&format!("\"{placeholder}\""), &format!("\"{colour}\""))
    })
}

/// A drawing failed (plotters gives only text).
#[derive(Debug, thiserror::Error)]
#[error("cannot draw {what}: {reason}")]
pub struct PlotError {
    what: &'static str,
    reason: String,
}

/// A curve: its name and its points.
pub struct Curve<'a> {
    /// In the legend.
    pub name: &'a str,
    /// What it is.
    pub role: Role,
    /// x, y.
    pub points: Vec<(f64, f64)>,
}

/// Curves over a common axis.
pub fn curves(x_label: &str, y_label: &str, curves: &[Curve<'_>]) -> Result<String, PlotError> {
    let error = |e: &dyn std::fmt::Display| PlotError {
        what: "curves",
        reason: e.to_string(),
    };
    let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let x_max = points().map(|p| p.0).fold(1.0, f64::max);
    let y_max = points()
        .map(|p| p.1)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE)
        * 1.05;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..x_max, 0.0..y_max)
            .map_err(|e| error(&e))?;
        chart
            .configure_mesh()
            .x_desc(x_label)
            .y_desc(y_label)
            .light_line_style(TRANSPARENT)
            .label_style(FONT)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .draw()
            .map_err(|e| error(&e))?;
        for curve in curves {
            let colour = curve.role.placeholder();
            chart
                .draw_series(LineSeries::new(
                    curve.points.iter().copied(),
                    colour.stroke_width(2),
                ))
                .map_err(|e| error(&e))?
                .label(curve.name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(2))
                });
        }
        name_series(&mut chart, SeriesLabelPosition::LowerRight).map_err(|e| error(&e))?;
        root.present().map_err(|e| error(&e))?;
    }
    Ok(themed(&svg))
}

/// A box with the names of what is drawn.
fn name_series<'s, X: Ranged, Y: Ranged>(
    chart: &mut ChartContext<'s, SVGBackend<'s>, Cartesian2d<X, Y>>,
    position: SeriesLabelPosition,
) -> Result<(), DrawingAreaErrorKind<std::io::Error>> {
    let mut names = chart.configure_series_labels();
    names.position(position).label_font(FONT);
    names
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3));
    names.draw()
}

/// Points over a common axis, with a logarithmic vertical one; what is not above 0 has no place there.
///
/// # Errors
/// If plotters fails.
pub fn points(x_label: &str, y_label: &str, series: &[Curve<'_>]) -> Result<String, PlotError> {
    let error = |e: &dyn std::fmt::Display| PlotError {
        what: "points",
        reason: e.to_string(),
    };
    let all = || {
        series
            .iter()
            .flat_map(|of| of.points.iter().copied())
            .filter(|point| point.1 > 0.0)
    };
    let x_max = all().map(|point| point.0).fold(1.0, f64::max);
    let low = all().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let high = all().map(|point| point.1).fold(0.0, f64::max);
    // Whole decades, with one above all points, where their names are.
    let low = if low.is_finite() {
        10_f64.powf(low.log10().floor())
    } else {
        1.0
    };
    let high = 10_f64.powf(high.max(low).log10().ceil() + 1.0);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(0.0..x_max * 1.02, (low..high).log_scale())
            .map_err(|e| error(&e))?;
        chart
            .configure_mesh()
            .x_desc(x_label)
            .y_desc(y_label)
            .light_line_style(TRANSPARENT)
            .bold_line_style(BLACK.mix(0.15))
            .label_style(FONT)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .draw()
            .map_err(|e| error(&e))?;
        for of in series {
            let style = of.role.placeholder().filled();
            let above = of.points.iter().filter(|point| point.1 > 0.0);
            chart
                .draw_series(above.map(|point| Circle::new(*point, 3, style)))
                .map_err(|e| error(&e))?
                .label(of.name)
                .legend(move |(x, y)| Circle::new((x + 9, y), 3, style));
        }
        name_series(&mut chart, SeriesLabelPosition::UpperLeft).map_err(|e| error(&e))?;
        root.present().map_err(|e| error(&e))?;
    }
    Ok(themed(&svg))
}

/// A stretch of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span<'a> {
    /// What it is.
    pub name: &'a str,
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
}

/// One horizontal bar per name.
pub fn bars(x_label: &str, bars: &[(&str, Role, f64)]) -> Result<String, PlotError> {
    let error = |e: &dyn std::fmt::Display| PlotError {
        what: "bars",
        reason: e.to_string(),
    };
    let max = bars
        .iter()
        .map(|bar| bar.2)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE)
        * 1.05;
    let count = bars.len() as i32;
    let height = 76 + 46 * bars.len() as u32;
    let longest = bars.iter().map(|bar| bar.0.chars().count()).max();
    let names = (LETTER * longest.unwrap_or(0) + 16).min(SIZE.0 as usize / 2);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(48)
            .y_label_area_size(names as u32)
            .build_cartesian_2d(0.0..max, (0..count - 1).into_segmented())
            .map_err(|e| error(&e))?;
        let name = |value: &SegmentValue<i32>| match value {
            SegmentValue::CenterOf(index) => bars
                .get((count - 1 - index) as usize)
                .map_or(String::new(), |bar| bar.0.to_owned()),
            _ => String::new(),
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .light_line_style(TRANSPARENT)
            .x_desc(x_label)
            .label_style(FONT)
            .x_label_formatter(&tick)
            .y_label_formatter(&name)
            .draw()
            .map_err(|e| error(&e))?;
        chart
            .draw_series(bars.iter().enumerate().map(|(index, bar)| {
                let row = count - 1 - index as i32;
                let mut shape = Rectangle::new(
                    [
                        (0.0, SegmentValue::Exact(row)),
                        (bar.2, SegmentValue::Exact(row + 1)),
                    ],
                    bar.1.placeholder().filled(),
                );
                shape.set_margin(8, 8, 0, 0);
                shape
            }))
            .map_err(|e| error(&e))?;
        root.present().map_err(|e| error(&e))?;
    }
    Ok(themed(&svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_and_a_curve_are_drawn_for_each_series() -> Result<(), PlotError> {
        let svg = bars(
            "bytes",
            &[("one", Role::Main, 1.0), ("two", Role::Other, 2.0)],
        )?;
        assert!(svg.starts_with("<svg") && svg.contains("one") && svg.contains("two"));
        let points = vec![(0.0, 0.1), (1.0, 0.9)];
        let svg = curves(
            "round",
            "accuracy",
            &[Curve {
                name: "aggregated",
                role: Role::Faulted,
                points,
            }],
        )?;
        assert!(svg.contains("aggregated") && svg.contains("<polyline"));
        Ok(())
    }

    #[test]
    fn points_lie_in_whole_decades() -> Result<(), PlotError> {
        let of = |points: &[(f64, f64)]| Curve {
            name: "again",
            role: Role::Main,
            points: points.to_vec(),
        };
        let svg = points(
            "k",
            "us",
            &[of(&[(0.0, 25.0), (99.0, 67_000.0), (3.0, 0.0)])],
        )?;
        assert_eq!(
            svg.matches("<circle").count(),
            3,
            "two points and the legend's: {svg}"
        );
        assert!(svg.contains("100000") && svg.contains("again"), "{svg}");
        // Nothing, and one value alone, are drawings as well.
        points("k", "us", &[of(&[])])?;
        points("k", "us", &[of(&[(5.0, 10.0)])])?;
        Ok(())
    }

    #[test]
    fn ticks_have_no_digits_that_say_nothing() {
        assert_eq!(
            [20.0, 0.25, 0.0].map(|value| tick(&value)),
            ["20", "0.25", "0"]
        );
    }

    /// A page in the dark has no white boxes and no black letters.
    #[test]
    fn drawings_take_the_colours_of_their_page() -> Result<(), PlotError> {
        let series = [("one", Role::Main, 1.0), ("two", Role::Other, 2.0)];
        let curve = Curve {
            name: "x",
            role: Role::Faulted,
            points: vec![(0.0, 0.1), (1.0, 0.9)],
        };
        let drawings = [
            bars("bytes", &series)?,
            points("x", "y", std::slice::from_ref(&curve))?,
            curves("x", "y", &[curve])?,
        ];
        for svg in drawings {
            assert!(!svg.contains("\"#"), "{svg}");
            assert!(
                svg.contains("currentColor") && svg.contains("var(--"),
                "{svg}"
            );
        }
        Ok(())
    }
}
