//! Reads `metrics` of a command: series of numbers to extract from the command's output.

use regex_lite::Regex;

use crate::diagnostic::{Code, Sink, Spanned, enumerate_names};
use crate::file::schema::reader::{self, Fields};
use crate::file::schema::shape::{Object, Shape, may};
use crate::file::yaml::{Entry, Node};
use crate::model::expect::Measure;
use crate::model::expect::metric::{CommandMetric, DURATION};
use crate::model::workload::commands::{Series, SeriesSource};
use crate::units::{self, Dimension};

pub(super) static SERIES: Object = Object {
    what: "a metric",
    keys: &[
        may("regex", Shape::Text, "its first group is the number"),
        may(
            "json",
            Shape::Text,
            "a JSON pointer to the number (RFC 6901)",
        ),
        may(
            "unit",
            Shape::Text,
            "of the number: `ms`, `kB`, `%` …; none if it counts",
        ),
    ],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Vec<Series> {
    let entries: &[Entry] = reader::map(sink, node, "`metrics`").unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| series(sink, entry))
        .collect()
}

fn series(sink: &mut Sink<'_>, entry: &Entry) -> Option<Series> {
    let is_good = reader::check_name(sink, &entry.key, entry.key_span, "a metric");
    let mut taken = CommandMetric::words().chain([DURATION]);
    if taken.any(|word| word == entry.key) {
        let message = format!("`{}` is a built-in metric of every command", entry.key);
        sink.error(Code::Duplicate, entry.key_span, message)
            .hint("give this metric another name");
    }
    let fields = reader::fields(sink, &entry.value, &SERIES)?;
    let source = match (fields.get("regex"), fields.get("json")) {
        (Some(node), None) => SeriesSource::Regex(with_group(sink, node)?),
        (None, Some(_)) => SeriesSource::Json(pointer(sink, &fields)?),
        (found, _) => {
            let found = if found.is_some() { "both" } else { "neither" };
            let message = format!("a metric needs one of `regex` and `json`; found {found}");
            sink.error(Code::WrongType, fields.span, message)
                .hint("write for example `{regex: 'took ([0-9.]+) ms', unit: ms}`");
            return None;
        }
    };
    let (measure, factor) = match fields.optional("unit", |_| fields.text(sink, "unit"))? {
        Some(unit) => factor(sink, &unit)?,
        None => (Measure::Number, 1.0),
    };
    is_good.then(|| Series {
        name: entry.key.clone(),
        source,
        measure,
        factor,
    })
}

/// Reads a regular expression, and checks that it compiles.
pub(super) fn pattern(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<String> {
    let text = reader::text(sink, node, what)?;
    match Regex::new(&text.value) {
        Ok(_) => Some(text.value),
        Err(error) => {
            let message = format!("{what} is not a valid regular expression: {error}");
            sink.error(Code::OutOfRange, text.span, message)
                .hint("the syntax is Rust's, without Unicode classes: https://docs.rs/regex-lite/latest/regex_lite/#syntax");
            None
        }
    }
}

fn with_group(sink: &mut Sink<'_>, node: &Node) -> Option<String> {
    let text = pattern(sink, node, "`regex`")?;
    let groups = Regex::new(&text).map_or(0, |regex| regex.captures_len());
    if groups < 2 {
        sink.error(
            Code::OutOfRange,
            node.span,
            "`regex` has no group, but its first group must match the number",
        )
        .hint(r"put the number in parentheses, for example `'Requests per second: +([0-9.]+)'`");
        return None;
    }
    Some(text)
}

/// Reads a JSON pointer (RFC 6901): empty, or parts that each begin with a slash.
fn pointer(sink: &mut Sink<'_>, fields: &Fields<'_>) -> Option<String> {
    let text = fields.text(sink, "json")?;
    if !text.value.is_empty() && !text.value.starts_with('/') {
        sink.error(
            Code::OutOfRange,
            text.span,
            format!("`{}` is not a JSON pointer", text.value),
        )
        .hint(format!("write `/{}`", text.value.replace('.', "/")));
        return None;
    }
    Some(text.value)
}

/// The quantity that a unit measures (such as a duration), and the unit's factor to the base unit; reports an unknown unit.
fn factor(sink: &mut Sink<'_>, text: &Spanned<String>) -> Option<(Measure, f64)> {
    if text.value == "%" {
        return Some((Measure::Number, 0.01));
    }
    if let Some((dimension, factor)) = units::unit(&text.value) {
        let measure = match dimension {
            Dimension::Duration => Measure::Duration,
            Dimension::Rate => Measure::Rate,
            Dimension::Size => Measure::Size,
        };
        return Some((measure, factor as f64));
    }
    let message = format!("`{}` is not a unit", text.value);
    let hint = units::rate_unit(&text.value).unwrap_or_else(|| {
        format!(
            "units are {}; a count has none",
            enumerate_names(units::names().chain(["%"]))
        )
    });
    sink.error(Code::Unit, text.span, message).hint(hint);
    None
}
