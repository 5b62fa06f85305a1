//! `cargo xtask plots`: figures in virtual time, the same on every machine; each is a table and a drawing in
//! `docs/plots`.

mod growth;
mod stragglers;

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

const SIZE: (u32, u32) = (700, 360);
const FONT: (&str, u32) = ("sans-serif", 14);

/// Options of `cargo xtask plots`.
#[derive(clap::Args)]
pub struct Args {
    /// Draw only these
    #[arg(value_enum)]
    names: Vec<Plot>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Plot {
    /// Time of an all-reduce over the number of ranks, 8 to 1,024
    Growth,
    /// Steps per second of ranks that stall
    Stragglers,
}

pub fn run(args: &Args) -> Result<bool> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/plots");
    for plot in [Plot::Growth, Plot::Stragglers] {
        if !args.names.is_empty() && !args.names.contains(&plot) {
            continue;
        }
        let (name, svg) = match plot {
            Plot::Growth => ("growth.svg", growth::plot()?),
            Plot::Stragglers => ("stragglers.svg", stragglers::plot()?),
        };
        let path = folder.join(name);
        std::fs::write(&path, svg).with_context(|| format!("cannot write {}", path.display()))?;
        println!("docs/plots/{name}");
    }
    Ok(true)
}

/// A curve of a drawing; its points are in the order in which they are connected.
pub struct Curve {
    pub name: &'static str,
    pub color: RGBColor,
    pub points: Vec<(f64, f64)>,
}

pub struct Axis<'a> {
    label: &'a str,
    scale: Scale,
}

#[derive(Clone, Copy, PartialEq)]
enum Scale {
    Linear,
    /// Logarithmic scale with this base of the tick marks.
    Logarithmic(f64),
}

impl<'a> Axis<'a> {
    /// An axis with a linear scale that starts at 0.
    pub fn linear(label: &'a str) -> Axis<'a> {
        Axis {
            label,
            scale: Scale::Linear,
        }
    }

    /// An axis with a tick mark for each power of ten; it starts at the least value.
    pub fn logarithmic(label: &'a str) -> Axis<'a> {
        Axis {
            label,
            scale: Scale::Logarithmic(10.0),
        }
    }

    /// An axis with a tick mark for each power of two; it starts at the least value.
    pub fn doubling(label: &'a str) -> Axis<'a> {
        Axis {
            label,
            scale: Scale::Logarithmic(2.0),
        }
    }
}

/// Draws curves as SVG, with the legend at the upper left, where rising curves leave space. A linear axis
/// starts at 0, a logarithmic axis at the least value, and a vertical logarithmic axis at 1 at most.
pub fn drawing(x: Axis<'_>, y: Axis<'_>, curves: &[Curve]) -> Result<String> {
    drawing_with(x, y, curves, SeriesLabelPosition::UpperLeft)
}

/// Draws curves as SVG, with the legend in another position than [`drawing`].
pub fn drawing_with(
    x: Axis<'_>,
    y: Axis<'_>,
    curves: &[Curve],
    names: SeriesLabelPosition,
) -> Result<String> {
    let points = || curves.iter().flat_map(|curve| curve.points.iter().copied());
    let xs = || points().map(|point| point.0);
    let ys = || points().map(|point| point.1);
    let (x_least, x_most) = (
        xs().fold(f64::MAX, f64::min),
        xs().fold(f64::MIN_POSITIVE, f64::max),
    );
    // Most curves are compared with 1.
    let (y_least, y_most) = (ys().fold(1.0, f64::min), ys().fold(1.0, f64::max));
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut builder = ChartBuilder::on(&area);
        builder
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(56);
        let logarithmic = |least, most, base| (least..most).log_scale().base(base);
        let labels = (&y, names);
        match (x.scale, y.scale) {
            (Scale::Linear, Scale::Linear) => {
                let chart = builder.build_cartesian_2d(0.0..x_most, 0.0..y_most * 1.05)?;
                draw(chart, &x, labels, curves)?;
            }
            (Scale::Linear, Scale::Logarithmic(base)) => {
                let up = logarithmic(y_least, y_most, base);
                draw(
                    builder.build_cartesian_2d(0.0..x_most, up)?,
                    &x,
                    labels,
                    curves,
                )?;
            }
            (Scale::Logarithmic(base), Scale::Linear) => {
                let along = logarithmic(x_least, x_most, base);
                let chart = builder.build_cartesian_2d(along, 0.0..y_most * 1.05)?;
                draw(chart, &x, labels, curves)?;
            }
            (Scale::Logarithmic(of_x), Scale::Logarithmic(of_y)) => {
                let along = logarithmic(x_least, x_most, of_x);
                let up = logarithmic(y_least, y_most, of_y);
                draw(builder.build_cartesian_2d(along, up)?, &x, labels, curves)?;
            }
        }
        present(&area)?;
    }
    Ok(svg)
}

fn present(area: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<()> {
    area.present()
        .map_err(|error| anyhow!("cannot draw: {error}"))
}

/// Formats the value of a tick mark, rounded: floating-point numbers miss multiples of powers of ten slightly.
fn mark(value: &f64) -> String {
    ((value * 1e12).round() / 1e12).to_string()
}

fn draw<'s, X, Y>(
    mut chart: ChartContext<'s, SVGBackend<'s>, Cartesian2d<X, Y>>,
    x: &Axis<'_>,
    (y, names): (&Axis<'_>, SeriesLabelPosition),
    curves: &[Curve],
) -> Result<()>
where
    X: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .label_style(FONT)
        .x_desc(x.label)
        .y_desc(y.label)
        .x_label_formatter(&mark)
        .y_label_formatter(&mark)
        .draw()?;
    for curve in curves {
        let line = LineSeries::new(curve.points.iter().copied(), curve.color.stroke_width(2));
        let color = curve.color;
        chart
            .draw_series(line)?
            .label(curve.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .position(names)
        .background_style(WHITE.mix(0.8))
        .label_font(FONT)
        .draw()?;
    Ok(())
}
