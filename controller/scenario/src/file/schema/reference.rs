//! Writes the reference page of the file format: one table for each kind of mapping, from the tables by which files are
//! checked.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::shape::{Alternative, Object, Shape};
use super::{SCENARIO, workload};

/// The reference page as Markdown, without its first heading.
#[must_use]
pub fn reference() -> String {
    let mut page = String::new();
    let mut told = BTreeSet::new();
    let mut pending: Vec<Section> = vec![
        Section::Of(&SCENARIO),
        Section::Of(&workload::WORKLOAD_FILE),
    ];
    while !pending.is_empty() {
        let section = pending.remove(0);
        if !told.insert(section.title()) {
            continue;
        }
        // A section's subsections follow it, before those of earlier sections.
        let found = section.write(&mut page);
        pending.splice(0..0, found);
    }
    page
}

/// A section of the reference page, with its own table.
enum Section {
    Of(&'static Object),
    /// The alternatives that a key accepts, under the key's name.
    Alternatives(&'static str, Vec<Alternative>),
}

impl Section {
    fn title(&self) -> String {
        match self {
            Section::Of(object) => object.what.to_owned(),
            Section::Alternatives(key, _) => format!("`{key}`"),
        }
    }

    /// Writes the section to the page, and returns the sections to which its table refers.
    fn write(self, page: &mut String) -> Vec<Section> {
        let mut found = Vec::new();
        let title = self.title();
        let _ = write!(
            page,
            "\n## {}{}\n\n",
            title[..1].to_uppercase(),
            &title[1..]
        );
        match self {
            Section::Of(object) => {
                page.push_str("| key | is | |\n|---|---|---|\n");
                for key in object.keys {
                    let mark = if key.is_needed { " (needed)" } else { "" };
                    let is = written(key.name, &key.shape, &mut found);
                    let default = key.written_default();
                    let default = default.map_or_else(String::new, |value| format!("; `{value}`"));
                    let (name, about) = (key.name, key.about);
                    let _ = writeln!(page, "| `{name}`{mark} | {is} | {about}{default} |");
                }
            }
            Section::Alternatives(_, ways) => {
                page.push_str("| one of | takes | |\n|---|---|---|\n");
                for way in ways {
                    let takes = match &way.payload {
                        Some(payload) => written(way.word, payload, &mut found),
                        None => "–".to_owned(),
                    };
                    let takes = match (&way.payload, way.may_be_alone) {
                        (Some(_), true) => format!("nothing, or {takes}"),
                        _ => takes,
                    };
                    let _ = writeln!(page, "| `{}` | {takes} | {} |", way.word, way.about);
                }
            }
        }
        found
    }
}

/// Text on the values that a key of this shape accepts; `found` receives the sections to which the text refers.
fn written(key: &'static str, shape: &Shape, found: &mut Vec<Section>) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::Name(what) => format!("the name of {what}"),
        Shape::Names(what) => format!("the name of {what}, or a list of names"),
        Shape::Bool => "true or false".to_owned(),
        Shape::Integer(low, high) if low == high => low.to_string(),
        Shape::Integer(low, u64::MAX) => format!("a whole number from {low}"),
        Shape::Integer(low, high) => format!("a whole number, {low} to {high}"),
        Shape::Quantity(dimension, 0, u64::MAX) => {
            format!("a {dimension}, such as `{}`", dimension.example())
        }
        Shape::Quantity(dimension, low, high) => {
            // Bounds beyond a thousand seconds are shown in whole seconds.
            let whole = |end: u64| {
                end - if end > 1_000_000_000_000 {
                    end % 1_000_000_000
                } else {
                    0
                }
            };
            let [zero, from, to] = [0, *low, whole(*high)].map(|end| dimension.show(end));
            match (low, high) {
                (0, _) => format!("a {dimension}, at most {to}"),
                (1, &u64::MAX) => format!("a {dimension}, more than {zero}"),
                (1, _) => format!("a {dimension}, more than {zero} and at most {to}"),
                (_, &u64::MAX) => format!("a {dimension}, at least {from}"),
                _ => format!("a {dimension}, {from} to {to}"),
            }
        }
        Shape::Probability => "a probability: `0.01`, `1%`".to_owned(),
        Shape::Number(f64::MIN, f64::MAX) => "a number".to_owned(),
        Shape::Number(f64::MIN_POSITIVE, f64::MAX) => "a number above 0".to_owned(),
        Shape::Number(low, f64::MAX) => format!("a number from {low}"),
        Shape::Number(low, high) => format!("a number, {low} to {high}"),
        Shape::Value => "a number or text".to_owned(),
        Shape::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(" or ")
        }
        Shape::Object(object) => {
            found.push(Section::Of(object));
            link(object.what)
        }
        Shape::At(shape) => written(key, shape, found),
        Shape::List(item) => format!("a list: {}", written(key, item, found)),
        Shape::Map(value) => format!("by name: {}", written(key, value, found)),
        Shape::Either(shapes) => {
            let shapes: Vec<String> = shapes
                .iter()
                .map(|shape| written(key, shape, found))
                .collect();
            shapes.join("; or ")
        }
        Shape::Variant(ways) => {
            found.push(Section::Alternatives(key, ways()));
            link(&format!("`{key}`"))
        }
    }
}

/// A link to a section of the page: `[a step](#a-step)`
fn link(title: &str) -> String {
    let anchor = title.replace('`', "").replace(' ', "-");
    format!("[{title}](#{anchor})")
}
