//! What the measuring program prints: a line for each subject, its median, least and most.

use anyhow::{Context, Result, ensure};

/// A subject.
pub struct Figure<'t> {
    pub name: &'t str,
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl Figure<'_> {
    /// As rows tell it, to so many places.
    pub fn told(&self, places: usize) -> String {
        format!(
            "{} {:.places$} ({:.places$} to {:.places$})",
            self.name, self.median, self.least, self.most
        )
    }
}

/// All lines.
pub fn read(text: &str) -> Result<Vec<Figure<'_>>> {
    let figures = text.lines().map(|line| {
        let (name, rest) = line.split_once(": ").context("a figure")?;
        let numbers = rest.split_whitespace().map(str::parse::<f64>);
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
        let [median, least, most] = numbers[..] else {
            anyhow::bail!("three numbers, not {rest:?}");
        };
        Ok(Figure {
            name,
            median,
            least,
            most,
        })
    });
    let figures: Vec<Figure<'_>> = figures.collect::<Result<_>>()?;
    ensure!(!figures.is_empty(), "nothing was measured");
    Ok(figures)
}
