//! Reads a command's output while it runs: finds the line that shows that it is ready, and the numbers of its metrics.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use regex_lite::Regex;
use scenario::model::workload::commands::{Command, Series, SeriesSource, When};
use testbeds::command::Stream;

use crate::experiment::fleet::now_ns;

/// Maximum number of numbers that weir keeps of a series.
pub(super) const MAX_NUMBERS: usize = 1_000_000;
/// Maximum number of characters that a message shows of a match that is not a number.
const MAX_SHOWN: usize = 40;
/// Maximum size of a command's standard output that is parsed as one JSON document, in bytes.
const DOCUMENT_BYTES: usize = 4 << 20;

/// Readiness and numbers that were found in a command's output so far; clones share them.
#[derive(Debug, Clone)]
pub(super) struct Watch(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    ready: Option<Regex>,
    is_ready: bool,
    series: Vec<Watched>,
    /// Standard output of the present run so far; `None` unless a metric reads the output as JSON.
    document: Option<String>,
}

#[derive(Debug)]
struct Watched {
    declared: Series,
    regex: Option<Regex>,
    /// The numbers that were found, in ns, bytes, bit/s, or without a unit.
    numbers: Vec<f64>,
    /// When the command printed each number, in nanoseconds since 1970.
    written_ns: Vec<u64>,
    beyond: bool,
    /// Number of matches of the series' regular expression that are not numbers; `first_unread` is the first of these matches.
    unread: u64,
    first_unread: String,
}

impl Watch {
    pub fn new(command: &Command) -> Watch {
        // The schema has compiled them.
        let compile = |text: &String| Regex::new(text).ok();
        let ready = match command.ready.as_ref().map(|ready| &ready.when) {
            Some(When::Log(text)) => compile(text),
            _ => None,
        };
        let series = command.series.iter().map(|declared| Watched {
            declared: declared.clone(),
            regex: match &declared.source {
                SeriesSource::Regex(text) => compile(text),
                SeriesSource::Json(_) => None,
            },
            numbers: Vec::new(),
            written_ns: Vec::new(),
            beyond: false,
            unread: 0,
            first_unread: String::new(),
        });
        let mut sources = command.series.iter().map(|series| &series.source);
        let wants_document = sources.any(|source| matches!(source, SeriesSource::Json(_)));
        Watch(Arc::new(Mutex::new(State {
            ready,
            is_ready: false,
            series: series.collect(),
            document: wants_document.then(String::new),
        })))
    }

    /// Searches a line of the command's output.
    pub fn line(&self, stream: Stream, line: &str) {
        let mut state = self.lock();
        if !state.is_ready
            && state
                .ready
                .as_ref()
                .is_some_and(|regex| regex.is_match(line))
        {
            state.is_ready = true;
        }
        for watched in &mut state.series {
            let Some(regex) = &watched.regex else {
                continue;
            };
            let found = regex.captures_iter(line).filter_map(|found| found.get(1));
            let found: Vec<&str> = found.map(|group| group.as_str()).collect();
            for text in found {
                match number(text) {
                    Some(number) => watched.add(number),
                    None => watched.misses(text),
                }
            }
        }
        if let (Stream::Stdout, Some(document)) = (stream, &mut state.document)
            && document.len() + line.len() < DOCUMENT_BYTES
        {
            document.push_str(line);
            document.push('\n');
        }
    }

    /// Forgets that the command is ready, because it is restarted.
    pub fn starts_again(&self) {
        self.lock().is_ready = false;
    }

    /// Marks the end of a run: its standard output is complete, and is searched as JSON if a metric needs that.
    pub fn run_is_over(&self) {
        let mut state = self.lock();
        let Some(document) = state.document.as_mut().map(std::mem::take) else {
            return;
        };
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text.trim()).ok();
        let last = || document.lines().rfind(|line| !line.trim().is_empty());
        let Some(json) = read(&document).or_else(|| read(last()?)) else {
            return;
        };
        for watched in &mut state.series {
            let SeriesSource::Json(pointer) = &watched.declared.source else {
                continue;
            };
            let value = json.pointer(pointer).and_then(|value| match value {
                serde_json::Value::String(text) => number(text),
                value => value.as_f64(),
            });
            if let Some(value) = value {
                watched.add(value);
            }
        }
    }

    /// Whether the command has printed the line that shows that it is ready.
    pub fn is_ready(&self) -> bool {
        self.lock().is_ready
    }

    /// Each series with its numbers; an error with the name of a series that has more than [`MAX_NUMBERS`].
    pub fn numbers(&self) -> Result<Vec<(Series, Vec<f64>)>, String> {
        let state = self.lock();
        let numbers = state.series.iter().map(|watched| match watched.beyond {
            true => Err(watched.declared.name.clone()),
            false => Ok((watched.declared.clone(), watched.numbers.clone())),
        });
        numbers.collect()
    }

    /// For each series with matches that are not numbers: its name, the number of such matches, and the first one.
    pub fn unread(&self) -> Vec<(String, u64, String)> {
        let state = self.lock();
        let missed = state.series.iter().filter(|watched| watched.unread > 0);
        let missed = missed.map(|watched| {
            let first = watched.first_unread.clone();
            (watched.declared.name.clone(), watched.unread, first)
        });
        missed.collect()
    }

    /// Each series with its numbers, and the time of each in nanoseconds since 1970.
    pub fn over_time(&self) -> Vec<(Series, Vec<(u64, f64)>)> {
        let state = self.lock();
        let series = state.series.iter().map(|watched| {
            let written = watched.written_ns.iter().copied();
            let points = written.zip(watched.numbers.iter().copied());
            (watched.declared.clone(), points.collect())
        });
        series.collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn add(&mut self, number: f64) {
        if self.numbers.len() >= MAX_NUMBERS {
            self.beyond = true;
            return;
        }
        self.numbers.push(number * self.declared.factor);
        self.written_ns.push(now_ns());
    }

    fn misses(&mut self, text: &str) {
        if self.unread == 0 {
            self.first_unread = text.chars().take(MAX_SHOWN).collect();
        }
        self.unread += 1;
    }
}

/// Parses a number as programs write it: `1,234.5`.
fn number(text: &str) -> Option<f64> {
    let text = text.trim().replace(',', "");
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use scenario::model::workload::Workload;

    use super::*;

    fn watch(metrics: &str) -> Watch {
        let text = format!(
            "weir: 1\nname: x\ntopology: {{star: {{hosts: [a, b]}}}}\nworkload:\n  commands:\n    \
             - {{name: d, host: a, run: x}}\n    \
             - {{name: c, host: a, run: x, ready: {{log: \"^up\"}}, metrics: {metrics}}}\n"
        );
        let scenario = scenario::load("x.yaml", &text).expect("a scenario");
        match scenario.workload {
            Some(Workload::Commands(commands)) => Watch::new(&commands.commands[1]),
            _ => panic!("other commands"),
        }
    }

    fn numbers(watch: &Watch) -> Vec<Vec<f64>> {
        let all = watch.numbers().expect("not too many");
        all.into_iter().map(|(_, numbers)| numbers).collect()
    }

    #[test]
    fn every_match_is_a_number_in_its_unit() {
        let watch =
            watch("{t: {regex: 'time=([0-9.]+) ms', unit: ms}, n: {regex: 'n: ([\\d,]+|x)'}}");
        watch.line(Stream::Stdout, "time=0.5 ms time=2 ms");
        watch.line(Stream::Stderr, "n: 1,234 time=1 ms");
        watch.line(Stream::Stdout, "n: x");
        assert!(!watch.is_ready());
        watch.line(Stream::Stderr, "up");
        assert!(watch.is_ready());
        assert_eq!(numbers(&watch), [vec![500_000.0, 2e6, 1e6], vec![1234.0]]);
        assert_eq!(watch.unread(), [("n".to_owned(), 1, "x".to_owned())]);
    }

    #[test]
    fn json_is_the_whole_output_or_its_last_line() {
        let watch = watch("{a: {json: /a/0}, b: {json: /b, unit: kB}}");
        for line in ["{\"a\": [", "1],", "\"b\": \"2\"}"] {
            watch.line(Stream::Stdout, line);
        }
        watch.line(Stream::Stderr, "noise");
        watch.run_is_over();
        for line in ["starting", "{\"a\": [9]}", "{\"a\": [3], \"b\": null}", ""] {
            watch.line(Stream::Stdout, line);
        }
        watch.run_is_over();
        watch.line(Stream::Stdout, "no JSON at all");
        watch.run_is_over();
        assert_eq!(numbers(&watch), [vec![1.0, 3.0], vec![2000.0]]);
    }
}
