//! Formats a predicted collective as text for a terminal.

use std::collections::BTreeSet;
use std::fmt;

use scenario::units::{show_duration, show_rate, show_size};

use super::{Loaded, Prediction};

/// Maximum number of links that the text lists.
const LINKS: usize = 10;
/// Maximum number of messages that the text lists.
const MESSAGES: usize = 12;

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let root = self
            .root
            .map_or(String::new(), |root| format!(", root {root}"));
        let size = match self.collective {
            "barrier" => String::new(),
            _ => format!(" of {}", show_size(self.bytes)),
        };
        writeln!(
            f,
            "{}{size}, {} ranks{root}: {}",
            self.collective,
            self.ranks.len(),
            self.chosen
        )?;
        let least = match self.bound_s > 0.0 {
            true => format!(
                "; at least {} by {}, {:.3} of it",
                duration(self.bound_s),
                self.bound_by,
                self.bound_s / self.chosen.predicted_s
            ),
            false => String::new(),
        };
        writeln!(
            f,
            "  {} predicted{least}",
            duration(self.chosen.predicted_s)
        )?;
        writeln!(
            f,
            "  {} messages, {} after one another",
            self.messages.len(),
            self.rounds
        )?;
        if let Some(order) = &self.order {
            let order = order.iter().take(16).map(usize::to_string);
            let order: Vec<String> = order.collect();
            let more = if self.ranks.len() > 16 { ", …" } else { "" };
            writeln!(f, "  ranks in the order {}{more}", order.join(", "))?;
        }
        self.compared(f)?;
        loads(f, "links, the fullest first", &self.links)?;
        if !self.inside.is_empty() {
            loads(f, "inside hosts, the fullest first", &self.inside)?;
        }
        self.messages(f)
    }
}

impl Prediction {
    /// Writes, for each algorithm and numbering of ranks, the best number of pieces (tiles) and the predicted duration.
    fn compared(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\ncompared")?;
        let head = ["tiles", "numbers", "predicted", "bound ÷ it"];
        let [tiles, numbers, predicted, share] = head;
        writeln!(
            f,
            "  {:28}{tiles:>5}  {numbers:12}{predicted:>11}{share:>12}",
            ""
        )?;
        let mut seen = BTreeSet::new();
        for told in &self.compared {
            if !seen.insert((told.algorithm, told.numbering)) {
                continue;
            }
            let took = duration(told.predicted_s);
            let share = match self.bound_s > 0.0 {
                true => format!("{:.3}", self.bound_s / told.predicted_s),
                false => "-".to_owned(),
            };
            writeln!(
                f,
                "  {:28}{:>5}  {:12}{took:>11}{share:>12}",
                told.algorithm, told.tiles, told.numbering
            )?;
        }
        let untried = self.left_out.iter().map(|of| of.algorithm);
        let untried: BTreeSet<&str> = untried
            .filter(|of| !self.compared.iter().any(|told| told.algorithm == *of))
            .collect();
        if !untried.is_empty() {
            let names: Vec<&str> = untried.into_iter().collect();
            writeln!(f, "  not tried, too many steps: {}", names.join(", "))?;
        }
        Ok(())
    }

    fn messages(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.messages.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nmessages, by when they can begin")?;
        let digits = self.ranks.len().saturating_sub(1).to_string().len();
        for message in self.messages.iter().take(MESSAGES) {
            let (begin, end) = (duration(message.begin_s), duration(message.end_s));
            writeln!(
                f,
                "  {begin:>11} to {end:>11}  {:>digits$} → {:>digits$}  {}",
                message.from,
                message.to,
                show_size(message.bytes)
            )?;
        }
        if let Some(more @ 1..) = self.messages.len().checked_sub(MESSAGES) {
            writeln!(f, "  and {more} more")?;
        }
        Ok(())
    }
}

impl fmt::Display for super::Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.algorithm)?;
        if self.tiles > 1 {
            write!(f, ", {} tiles", self.tiles)?;
        }
        match self.numbering {
            "plain" => Ok(()),
            numbering => write!(f, ", {numbering} numbers"),
        }
    }
}

fn loads(f: &mut fmt::Formatter<'_>, title: &str, all: &[Loaded]) -> fmt::Result {
    writeln!(f, "\n{title}")?;
    for of in all.iter().take(LINKS) {
        let percent = of.utilisation * 100.0;
        let rate = show_rate(to_four_digits(of.rate_bps as f64));
        let bytes = show_size(of.bytes);
        writeln!(f, "  {percent:5.1} %  {:28}{bytes} at {rate}", of.edge)?;
    }
    if let Some(more @ 1..) = all.len().checked_sub(LINKS) {
        writeln!(f, "           and {more} more")?;
    }
    Ok(())
}

/// Formats a duration with four significant digits.
pub(super) fn duration(seconds: f64) -> String {
    show_duration(to_four_digits(seconds * 1e9))
}

fn to_four_digits(value: f64) -> u64 {
    let digits = 10_f64.powi(value.max(1.0).log10() as i32 - 3).max(1.0);
    ((value / digits).round() * digits) as u64
}
