//! Reads numbers and ranges of numbers: `3`, `[3, 10..20, 40..]`.

use std::ops::RangeInclusive;

use super::reader;
use super::shape::Shape;
use crate::diagnostic::{Code, Sink};
use crate::file::yaml::{Kind, Node};

/// The shape of a number, a range, or a list of numbers and ranges.
pub(super) const RANGES: Shape = Shape::Either(&[Shape::Value, Shape::List(&Shape::Value)]);

/// The kind of item that a list of numbers counts, with words for messages.
pub(super) struct Numbering {
    /// The key with the numbers: `ordinals`.
    pub key: &'static str,
    /// Word for one number, with its article: `an ordinal`.
    pub one: &'static str,
    /// Word for the numbered item: `packet`.
    pub of: &'static str,
    /// The range of valid numbers.
    pub all: RangeInclusive<u32>,
    /// The hint on how to write the numbers.
    pub hint: &'static str,
}

impl Numbering {
    /// Reads ranges that must not overlap, in the order of the file; a range without an end extends to the largest number.
    pub fn read(&self, sink: &mut Sink<'_>, node: &Node) -> Option<Vec<RangeInclusive<u32>>> {
        let items = match &node.kind {
            Kind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        if items.is_empty() {
            let message = format!("`{}` must name at least one {}", self.key, self.of);
            sink.error(Code::OutOfRange, node.span, message);
            return None;
        }
        let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
        for item in items {
            let range = self.range(sink, item)?;
            if let Some(other) = ranges
                .iter()
                .find(|other| range.start() <= other.end() && other.start() <= range.end())
            {
                let both = range.start().max(other.start());
                let message = format!("{} {both} is named twice", self.of);
                sink.error(Code::Duplicate, item.span, message);
                return None;
            }
            ranges.push(range);
        }
        Some(ranges)
    }

    fn range(&self, sink: &mut Sink<'_>, node: &Node) -> Option<RangeInclusive<u32>> {
        let Kind::Text { value, .. } = &node.kind else {
            let bounds = Shape::Integer((*self.all.start()).into(), (*self.all.end()).into());
            let one = reader::number(sink, node, self.one, &bounds)?;
            let one = u32::try_from(one.value).ok()?;
            return Some(one..=one);
        };
        let (first, last) = (u64::from(*self.all.start()), u64::from(*self.all.end()));
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let bounds = value.split_once("..").and_then(|(low, high)| {
            let high = match high.trim() {
                "" => last,
                high => number(high)?,
            };
            Some((number(low)?, high))
        });
        match bounds {
            Some((low, high)) if low < first || high > last => {
                let message = format!(
                    "{} must lie between {first} and {last}; found {value}",
                    self.one
                );
                sink.error(Code::OutOfRange, node.span, message);
                None
            }
            Some((low, high)) if low <= high => {
                Some(u32::try_from(low).ok()?..=u32::try_from(high).ok()?)
            }
            Some((low, high)) => {
                let message = format!("the range {low}..{high} is empty");
                sink.error(Code::OutOfRange, node.span, message);
                None
            }
            None => {
                let message = format!("`{value}` is neither {} nor a range of them", self.one);
                sink.error(Code::WrongType, node.span, message)
                    .hint(self.hint);
                None
            }
        }
    }
}
