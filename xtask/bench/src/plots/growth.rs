//! Plot: time of an all-reduce over the number of ranks, beside the lower bounds of a ring and of a server without aggregation.

use anyhow::{Context, Result};
use cluster::growth::{Size, time_by_bound};
use plotters::style::RGBColor;

use super::{Axis, Curve, drawing};

/// Size of a gradient, in chunks (packets).
const CHUNKS: usize = 1_200;

/// Points of the plot: number of ranks, and number of ranks behind one switch.
const SIZES: [(u16, u16); 8] = [
    (8, 8),
    (16, 8),
    (32, 8),
    (64, 8),
    (128, 16),
    (256, 16),
    (512, 32),
    (1024, 32),
];

/// Measures the all-reduces in virtual time, prints a table, and returns the drawing as SVG.
pub fn plot() -> Result<String> {
    let (mut switches, mut ring, mut server) = (Vec::new(), Vec::new(), Vec::new());
    println!(
        "| ranks | in racks of | by switches | a ring, at least | a server that sums, at least |"
    );
    println!("|---|---|---|---|---|");
    for (ranks, rack) in SIZES {
        let size = Size {
            ranks,
            rack,
            chunks: CHUNKS,
        };
        let share = time_by_bound(size).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let share = share.with_context(|| format!("{ranks} ranks have no sum"))?;
        let n = f64::from(ranks);
        let (by_ring, by_server) = (2.0 * (n - 1.0) / n, n);
        println!("| {ranks} | {rack} | {share:.3} | {by_ring:.3} | {by_server} |");
        switches.push((n, share));
        ring.push((n, by_ring));
        server.push((n, by_server));
    }
    let curve = |name, color, points| Curve {
        name,
        color,
        points,
    };
    drawing(
        Axis::doubling("ranks"),
        Axis::logarithmic("time over S/R"),
        &[
            curve("switches sum", RGBColor(0x1f, 0x77, 0xb4), switches),
            curve("a ring's bound", RGBColor(0x2c, 0xa0, 0x2c), ring),
            curve("a server's bound", RGBColor(0x44, 0x44, 0x44), server),
        ],
    )
}
