//! Draws a timeline of messages: a row for each rank, a bar for each message, colored by the number of messages before it.

use std::fmt::Write;

use scenario::units::show_size;

use super::text::duration;
use super::{PlannedMessage, Prediction};
use crate::route::drawing::{MARGIN, escape};

/// Maximum number of ranks that are drawn, each in a row.
const ROWS: usize = 32;
/// Maximum number of simultaneous messages that are drawn in a rank's row.
const LANES: usize = 8;
const ROW: f64 = 22.0;
const GAP: f64 = 4.0;
/// Width of the column with the names of the ranks, in SVG units.
const LEFT: f64 = 110.0;
const TOP: f64 = 22.0;
/// Maximum number of messages that are drawn, each as a bar.
const BARS: usize = 20_000;
/// Number of sections into which ticks divide the time axis.
const TICKS: usize = 5;

/// The SVG drawing of a timeline, without the enclosing `svg` element.
pub(super) struct TimeLine {
    pub body: String,
    pub width: f64,
    pub height: f64,
}

impl TimeLine {
    pub fn new(planned: &Prediction, width: f64) -> TimeLine {
        let rows = planned.ranks.len().min(ROWS);
        let whole_s = planned.chosen.predicted_s;
        let scale = match whole_s > 0.0 {
            true => (width - LEFT - MARGIN) / whole_s,
            false => 0.0,
        };
        let mut body = String::new();
        let (from, to) = (TOP, TOP + rows as f64 * ROW);
        axis(&mut body, whole_s, scale, from, to);
        for rank in 0..rows {
            let y = TOP + rank as f64 * ROW;
            let name = escape(&format!("{rank} {}", planned.ranks[rank]));
            let _ = writeln!(
                body,
                "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>",
                LEFT - 6.0,
                y + ROW / 2.0 + 3.5
            );
        }
        let shown = planned.messages.iter().take(BARS);
        let mut by_rank: Vec<Vec<&PlannedMessage>> = vec![Vec::new(); rows];
        for message in shown.filter(|message| message.from < rows) {
            by_rank[message.from].push(message);
        }
        for (rank, messages) in by_rank.into_iter().enumerate() {
            let y = TOP + rank as f64 * ROW + GAP / 2.0;
            row(&mut body, planned, &messages, scale, y);
        }
        TimeLine {
            body,
            width,
            height: to + note(planned, rows).map_or(MARGIN, |_| MARGIN + 12.0),
        }
        .with_note(note(planned, rows))
    }

    fn with_note(mut self, note: Option<String>) -> TimeLine {
        if let Some(note) = note {
            let y = self.height - 12.0;
            let note = escape(&note);
            let _ = writeln!(
                self.body,
                "<text x=\"{LEFT:.0}\" y=\"{y:.0}\" fill=\"#555\">{note}</text>"
            );
        }
        self
    }
}

/// Remark on ranks and messages that are too many to be drawn; `None` if all are drawn.
fn note(planned: &Prediction, rows: usize) -> Option<String> {
    let (ranks, messages) = (planned.ranks.len(), planned.messages.len());
    match (ranks > rows, messages > BARS) {
        (false, false) => None,
        (true, false) => Some(format!("the first {rows} of {ranks} ranks")),
        (_, true) => Some(format!(
            "the first {BARS} of {messages} messages, of the first {rows} of {ranks} ranks"
        )),
    }
}

fn axis(body: &mut String, whole_s: f64, scale: f64, from: f64, to: f64) {
    for tick in 0..=TICKS {
        let at_s = whole_s * tick as f64 / TICKS as f64;
        let x = LEFT + at_s * scale;
        let _ = writeln!(
            body,
            "<line x1=\"{x:.1}\" y1=\"{from:.0}\" x2=\"{x:.1}\" y2=\"{to:.0}\" stroke=\"#ddd\"/>\
             <text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#555\">{}</text>",
            from - 6.0,
            duration(at_s)
        );
    }
}

/// Draws the row of a rank: the messages that it sends, simultaneous ones below each other.
fn row(body: &mut String, planned: &Prediction, messages: &[&PlannedMessage], scale: f64, y: f64) {
    let mut ends_s: Vec<f64> = Vec::new();
    let lanes = messages.iter().map(|message| {
        let is_free = |end_s: &f64| *end_s <= message.begin_s * (1.0 + 1e-9);
        let lane = match ends_s.iter().position(is_free) {
            Some(lane) => lane,
            None if ends_s.len() < LANES => {
                ends_s.push(0.0);
                ends_s.len() - 1
            }
            None => LANES - 1,
        };
        ends_s[lane] = message.end_s;
        lane
    });
    let lanes: Vec<usize> = lanes.collect();
    let high = (ROW - GAP) / ends_s.len().max(1) as f64;
    for (message, lane) in messages.iter().zip(lanes) {
        let x = LEFT + message.begin_s * scale;
        let wide = ((message.end_s - message.begin_s) * scale).max(1.0);
        let told = format!(
            "{} → {}: {}, {} to {}, message {} of those after one another",
            message.from,
            message.to,
            show_size(message.bytes),
            duration(message.begin_s),
            duration(message.end_s),
            message.round
        );
        let _ = writeln!(
            body,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{high:.1}\" fill=\"{}\" stroke=\"#fff\" \
             stroke-width=\"0.4\"><title>{}</title></rect>",
            y + lane as f64 * high,
            colour(message.round, planned.rounds),
            escape(&told)
        );
        if wide > 40.0 && high > 9.0 {
            let _ = writeln!(
                body,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#fff\">→ {}</text>",
                x + wide / 2.0,
                y + (lane as f64 + 0.5) * high + 3.5,
                message.to
            );
        }
    }
}

/// Color of a message by its position in the longest chain of messages (round): blue for the first, purple for the last.
fn colour(round: usize, rounds: usize) -> String {
    let part = match rounds {
        0 | 1 => 0.0,
        _ => (round.saturating_sub(1)) as f64 / (rounds - 1) as f64,
    };
    format!("hsl({:.0} 55% 45%)", 205.0 + 115.0 * part)
}
