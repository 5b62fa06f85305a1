//! `p4info`: compares our P4Info for p4c's sample programs, message by message, with the P4Info in p4c's repository.

use super::corpus::{self, Corpus};
use super::suite::{Suite, SuiteGoal};
use anyhow::Result;
use std::path::PathBuf;

pub const NAMES: &[&str] = &["p4info"];

/// Compares our P4Info with every expected P4Info of a v1model or PSA program.
pub fn run(corpus: &Corpus) -> Result<Vec<Suite>> {
    let samples = corpus.path(super::samples::SAMPLES);
    let outputs = "testdata/p4_16_samples_outputs";
    let mut goldens: Vec<(PathBuf, String)> = Vec::new();
    for path in corpus.files(outputs, ".p4info.txtpb")? {
        let golden = std::fs::read_to_string(&path)?;
        let program = corpus::name_below(&path, &corpus.path(outputs)).replace(".p4info.txtpb", "");
        let ours = ["psa", "v1model"];
        if ours
            .iter()
            .any(|arch| golden.contains(&format!("  arch: \"{arch}\"")))
            && super::samples::is_ours(&samples.join(&program))
        {
            goldens.push((samples.join(program), golden));
        }
    }
    let cases = corpus::run_cases(
        &goldens,
        |(program, _)| corpus::name_below(program, &samples),
        |(program, golden)| {
            let compiled = corpus::compile(program)
                .map_err(|found| found.short().lines().next().unwrap_or("").to_owned())?;
            let message = p4rt::p4info::to_proto(&compiled.p4info);
            let ours = TextMessage::parse(&mut p4rt::text::p4info(&message).lines());
            let theirs = TextMessage::parse(&mut golden.lines());
            ours.difference(&theirs, "").map_or(Ok(()), Err)
        },
    );
    Ok(vec![Suite {
        name: NAMES[0],
        goal: SuiteGoal::Percent(98.0),
        cases,
        apart: Vec::new(),
    }])
}

/// Message in protobuf's text format, as (field name, value), sorted by names; repeated fields keep their order.
#[derive(Debug, Default, PartialEq)]
struct TextMessage(Vec<(String, Value)>);

#[derive(Debug, PartialEq)]
enum Value {
    Scalar(String),
    Message(TextMessage),
}

impl TextMessage {
    fn parse(lines: &mut dyn Iterator<Item = &str>) -> TextMessage {
        let mut fields = Vec::new();
        while let Some(line) = lines.next() {
            let line = line.trim();
            if line == "}" {
                break;
            }
            if line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_suffix(" {") {
                let inner = TextMessage::parse(lines);
                // p4c writes an empty type_info if it finds no types. It has no meaning.
                if name != "type_info" || inner != TextMessage::default() {
                    fields.push((name.to_owned(), Value::Message(inner)));
                }
            } else if let Some((name, value)) = line.split_once(": ") {
                fields.push((name.to_owned(), Value::Scalar(value.to_owned())));
            }
        }
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        TextMessage(fields)
    }

    /// Path and values of the first field in which two messages differ; `None` if the messages are equal.
    fn difference(&self, golden: &TextMessage, path: &str) -> Option<String> {
        for (at, (name, ours)) in self.0.iter().enumerate() {
            let Some((wanted, theirs)) = golden.0.get(at) else {
                return Some(format!("{path}: `{name}` is not in the golden file"));
            };
            let path = format!("{path}/{name}");
            match (ours, theirs) {
                _ if name != wanted => {
                    return Some(format!("{path}: the golden file has `{wanted}`"));
                }
                (Value::Scalar(a), Value::Scalar(b)) if a != b => {
                    return Some(format!("{path}: {a}, golden {b}"));
                }
                (Value::Message(a), Value::Message(b)) => {
                    if let Some(difference) = a.difference(b, &path) {
                        return Some(difference);
                    }
                }
                (Value::Scalar(_), Value::Scalar(_)) => {}
                _ => return Some(format!("{path}: a message and a scalar")),
            }
        }
        let missing = golden.0.get(self.0.len())?;
        Some(format!(
            "{path}: `{}` is only in the golden file",
            missing.0
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> TextMessage {
        TextMessage::parse(&mut text.lines())
    }

    #[test]
    fn the_first_difference_is_named() {
        let ours = parse("a {\n  x: 1\n  y: \"z\"\n}\n");
        assert_eq!(
            ours.difference(&parse("a {\n  y: \"z\"\n  x: 1\n}\ntype_info {\n}\n"), ""),
            None
        );
        assert_eq!(
            ours.difference(&parse("a {\n  x: 2\n  y: \"z\"\n}\n"), "")
                .as_deref(),
            Some("/a/x: 1, golden 2")
        );
        assert_eq!(
            ours.difference(&parse("a {\n  x: 1\n  y: \"z\"\n}\nb: 1\n"), "")
                .as_deref(),
            Some(": `b` is only in the golden file")
        );
    }

    #[test]
    fn repeated_fields_keep_their_order() {
        assert_ne!(parse("a: 1\na: 2\n"), parse("a: 2\na: 1\n"));
    }
}
