//! The schema as a reference page: a table for each mapping, generated from the tables by which the readers refuse files.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::shape::{Alternative, Object, Shape};
use super::{SCENARIO, workload};

/// The page as Markdown, below its first heading.
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

/// A part of the page with its own table.
enum Section {
    Of(&'static Object),
    /// Alternatives, by the key that takes them.
    Alternatives(&'static str, Vec<Alternative>),
}

impl Section {
    fn title(&self) -> String {
        match self {
            Section::Of(object) => object.what.to_owned(),
            Section::Alternatives(key, _) => format!("`{key}`"),
        }
    }

    /// Writes the section, and returns the sections that it refers to.
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
                    let _ = writeln!(page, "| `{}`{mark} | {is} | {} |", key.name, key.about);
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

/// The value of a key, in words.
fn written(key: &'static str, shape: &Shape, found: &mut Vec<Section>) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::Name => "a name".to_owned(),
        Shape::Names => "a name, or a list of names".to_owned(),
        Shape::Bool => "true or false".to_owned(),
        Shape::Integer(low, high) if low == high => low.to_string(),
        Shape::Integer(low, u64::MAX) => format!("a whole number from {low}"),
        Shape::Integer(low, high) => format!("a whole number, {low} to {high}"),
        Shape::Quantity(dimension) => format!("a {dimension}, such as `{}`", dimension.example()),
        Shape::Probability => "a probability: `0.01`, `1%`".to_owned(),
        Shape::Number => "a number".to_owned(),
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

/// `[a step](#a-step)`
fn link(title: &str) -> String {
    let anchor = title.replace('`', "").replace(' ', "-");
    format!("[{title}](#{anchor})")
}
