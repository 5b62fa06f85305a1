//! Parses the output of the measuring program: a line for each subject with its median, minimum and maximum.

use anyhow::{Context, Result, ensure};

/// Measured rate or time of a subject.
pub struct SubjectFigure<'t> {
    pub name: &'t str,
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

impl SubjectFigure<'_> {
    /// Text of the figure for a row's note, with this number of decimal places.
    pub fn note(&self, places: usize) -> String {
        format!(
            "{} {:.places$} ({:.places$} to {:.places$})",
            self.name, self.median, self.least, self.most
        )
    }
}

/// Parses all lines of the measuring program's output.
pub fn read(text: &str) -> Result<Vec<SubjectFigure<'_>>> {
    let figures = text.lines().map(|line| {
        let (name, rest) = line.split_once(": ").context("a line without `NAME: `")?;
        let numbers = rest.split_whitespace().map(str::parse::<f64>);
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
        let [median, least, most] = numbers[..] else {
            anyhow::bail!("expected three numbers, found {rest:?}");
        };
        Ok(SubjectFigure {
            name,
            median,
            least,
            most,
        })
    });
    let figures: Vec<SubjectFigure<'_>> = figures.collect::<Result<_>>()?;
    ensure!(!figures.is_empty(), "nothing was measured");
    Ok(figures)
}
