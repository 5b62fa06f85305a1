//! Parses expectations: `sum comparison sum`, where sums have `+ - * /`, parentheses and units.

mod catalogue;
mod foreign;

use std::collections::BTreeSet;

use crate::diagnostic::{Code, Sink, Span, enumerate_names, few_names, nearest};
use crate::file::schema::Declared;
use crate::file::yaml::{Kind, Node, locate};
use crate::model::disruption::Disruption;
use crate::model::expect::{Comparison, Expectation, Measure, Metric, Operator, Term};
use crate::model::trigger::Trigger;
use crate::model::{Fault, Scenario};
use crate::units::{self, Dimension};

/// Maximum nesting depth of parentheses in an expectation.
const MAX_DEPTH: usize = 16;

/// The reason why a line is not an expectation, and the range of bytes in the line that is wrong.
struct Problem {
    start: usize,
    end: usize,
    code: Code,
    message: String,
    hint: Option<String>,
}

/// Reads all lines of `expect`, until the maximum number of shown errors is reached.
pub(crate) fn read(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    declared: &Declared,
    lines: &[Node],
) -> Vec<Expectation> {
    let catalogue = catalogue::metrics(scenario);
    let is_series = |metric: &&Metric| matches!(metric, Metric::Series { .. });
    let series = catalogue.iter().filter(is_series);
    let known = Known {
        series: series
            .map(|metric| (metric.to_string(), metric.clone()))
            .collect(),
        catalogue,
        scenario,
        declared,
    };
    let mut read = Vec::new();
    for node in lines {
        if sink.is_full() {
            break;
        }
        read.extend(parse(sink, &known, node));
    }
    read
}

/// Reads all conditions of `abort_if` and of steps: comparisons of metrics that are known while the run goes on.
pub(crate) fn read_while_running(
    sink: &mut Sink<'_>,
    scenario: &Scenario,
    declared: &Declared,
    lines: &[Node],
) -> Vec<Expectation> {
    let conditions = read(sink, scenario, declared, lines);
    for condition in &conditions {
        let later = condition.metrics().find(|(metric, _)| !metric.is_live());
        if let Some((metric, span)) = later {
            let message = format!("the value of `{metric}` is known only after the run");
            sink.error(Code::Expectation, span, message)
                .hint("use a metric that is known during the run: `fault.ID.fired`, `.observed`, `.missed` or `.collateral`, `trigger.NAME.on`, `probe.NAME.…` or `run.wall`");
        } else if condition.metrics().next().is_none() {
            let message = "this condition names no metric, so it never changes";
            sink.error(Code::Expectation, condition.span, message)
                .hint("compare a metric, such as `fault.ID.fired > 100`");
        }
    }
    conditions
}

/// The metrics that an expectation of this scenario may name.
struct Known<'a> {
    catalogue: BTreeSet<Metric>,
    /// The series of numbers that the workload's commands declare: name of each metric, and the metric.
    series: Vec<(String, Metric)>,
    scenario: &'a Scenario,
    declared: &'a Declared,
}

impl Known<'_> {
    fn find(&self, name: &str) -> Option<Metric> {
        if let Ok(metric) = name.parse::<Metric>() {
            let is_known = self.catalogue.contains(&metric) || self.is_refused(&metric);
            return is_known.then_some(metric);
        }
        // Only the file states the measure of a declared series.
        let mut series = self.series.iter();
        series
            .find(|(known, _)| known == name)
            .map(|(_, metric)| metric.clone())
    }

    /// The hint for a metric that the run does not have: the nearest name, or names that begin in the same way.
    fn hint(&self, name: &str) -> Option<String> {
        let known: Vec<String> = self.catalogue.iter().map(Metric::to_string).collect();
        let known = || known.iter().map(String::as_str);
        if let Some(hint) = foreign::hint(name, &|metric| known().any(|known| known == metric)) {
            return Some(hint);
        }
        if let Some(near) = nearest(name, known()) {
            return Some(format!("did you mean `{near}`?"));
        }
        let mut stem = name;
        while let Some((shorter, _)) = stem.rsplit_once('.') {
            stem = shorter;
            let alike = known().filter(|metric| {
                let rest = metric.strip_prefix(stem);
                rest.is_some_and(|rest| rest.starts_with('.'))
            });
            let alike: Vec<&str> = alike.collect();
            match alike.as_slice() {
                [] => {}
                [one] => return Some(format!("available: `{one}`")),
                _ => return Some(format!("available: {}", few_names(alike))),
            }
        }
        let mut groups: Vec<&str> = known().filter_map(|name| name.split('.').next()).collect();
        groups.dedup();
        Some(format!(
            "metrics of this run begin with {}; docs/scenarios.md lists them",
            enumerate_names(groups)
        ))
    }

    /// Whether the metric belongs to a declared item that was refused, so that an error is already reported.
    fn is_refused(&self, metric: &Metric) -> bool {
        let Known {
            scenario, declared, ..
        } = self;
        match metric {
            Metric::Fault { id, .. } => {
                let is_read = |fault: &Fault| fault.id == id.as_str();
                let is_declared = declared.faults.iter().any(|fault| fault == id.as_str());
                let is_other = |other: &Disruption| other.id == id.as_str();
                let is_known = scenario.faults.iter().any(is_read)
                    || scenario.disruptions.iter().any(is_other);
                is_declared && !is_known
            }
            Metric::Trigger { name, .. } => {
                let is_read = |trigger: &Trigger| trigger.name == name.as_str();
                let is_declared = declared.triggers.iter().any(|t| t == name.as_str());
                is_declared && !scenario.triggers.iter().any(is_read)
            }
            Metric::Flow { name, .. } => {
                // The name of an expanded flow begins with the name of its declaration.
                let of = |flow: &&String| name.as_str().split('.').next() == Some(flow.as_str());
                let is_read = |flow: &String| scenario.flows.iter().any(|f| f.declared == *flow);
                declared
                    .flows
                    .iter()
                    .find(of)
                    .is_some_and(|flow| !is_read(flow))
            }
            Metric::Client { .. }
            | Metric::Training(_)
            | Metric::Command { .. }
            | Metric::Series { .. } => declared.workload_is_refused,
            Metric::Probe { .. } => declared.probes_are_refused,
            Metric::Run(_) | Metric::Switch { .. } => false,
        }
    }
}

fn parse(sink: &mut Sink<'_>, known: &Known<'_>, node: &Node) -> Option<Expectation> {
    let Kind::Text { value, .. } = &node.kind else {
        return None;
    };
    if known.declared.workload_is_refused && value.contains("command.") {
        // The measure of the refused item's series is unknown.
        return None;
    }
    let file = sink.source().text;
    let place = |start, end| locate(file, node, start, end);
    let mut parser = Parser {
        text: value,
        at: 0,
        depth: 0,
        known,
        place: &place,
    };
    match parser.expectation() {
        Ok((left, comparison, right)) => Some(Expectation {
            text: value.clone(),
            span: node.span,
            left,
            comparison,
            right,
        }),
        Err(problem) => {
            let span = place(problem.start, problem.end);
            let diagnostic = sink.error(problem.code, span, problem.message);
            if let Some(hint) = problem.hint {
                diagnostic.hint(hint);
            }
            None
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    known: &'a Known<'a>,
    place: &'a dyn Fn(usize, usize) -> Span,
}

impl<'a> Parser<'a> {
    fn expectation(&mut self) -> Result<(Term, Comparison, Term), Problem> {
        let left = self.sum()?;
        let middle = self.at;
        let comparison = self.comparison()?;
        let behind = self.at;
        let right = self.sum()?;
        let sides = [&self.text[..middle], &self.text[behind..self.at]].map(str::trim);
        self.space();
        if self.at < self.text.len() {
            let message = format!("unexpected `{}` after the comparison", self.rest());
            let mut problem = self.problem(self.at, self.text.len(), &message);
            problem.hint = Some("write each comparison on a line of its own".to_owned());
            return Err(problem);
        }
        let counted = match (left.is_count(), right.is_count()) {
            (true, _) if right.is_share() => Some((&left, sides)),
            (_, true) if left.is_share() => Some((&right, [sides[1], sides[0]])),
            _ => None,
        };
        if let Some((term, [count, share])) = counted {
            let message =
                format!("`{count}` is a count, and `{share}` is a share: they cannot be compared");
            let mut problem = self.problem(0, self.text.len(), &message);
            problem.hint = Some(match foreign::whole(term) {
                Some(whole) => {
                    let [left, right] = sides.map(|side| match side == count {
                        true => format!("{side} / {whole}"),
                        false => side.to_owned(),
                    });
                    format!("write `{left} {comparison} {right}`")
                }
                None => "write a whole number, or divide the count by the total".to_owned(),
            });
            return Err(problem);
        }
        if left.measure() != right.measure() {
            let message = format!(
                "`{left}` is a {}, and `{right}` is a {}: they cannot be compared",
                left.measure(),
                right.measure()
            );
            let mut problem = self.problem(0, self.text.len(), &message);
            let unit_of =
                |term: &Term, text: &str, other: &Term| match (term, other.measure().dimension()) {
                    (
                        Term::Constant {
                            measure: Measure::Number,
                            ..
                        },
                        Some(dimension),
                    ) => units::parse(text, dimension).err()?.hint(),
                    (Term::Constant { .. }, None) => {
                        Some("write the number without a unit".to_owned())
                    }
                    _ => None,
                };
            problem.hint =
                unit_of(&right, sides[1], &left).or_else(|| unit_of(&left, sides[0], &right));
            return Err(problem);
        }
        Ok((left, comparison, right))
    }

    fn comparison(&mut self) -> Result<Comparison, Problem> {
        self.space();
        let known = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        for (sign, comparison) in known {
            if self.take(sign) {
                return Ok(comparison);
            }
        }
        let message = match self.text[..self.at].trim() {
            "" => "a comparison is missing".to_owned(),
            before => format!("nothing is compared with `{before}`"),
        };
        let mut problem = self.problem(self.at, self.text.len(), &message);
        problem.hint =
            Some("write `==`, `!=`, `<`, `<=`, `>` or `>=` and a value after it".to_owned());
        Err(problem)
    }

    fn sum(&mut self) -> Result<Term, Problem> {
        self.chain(
            &[("+", Operator::Add), ("-", Operator::Subtract)],
            Self::product,
        )
    }

    fn product(&mut self) -> Result<Term, Problem> {
        self.chain(
            &[("*", Operator::Multiply), ("/", Operator::Divide)],
            Self::factor,
        )
    }

    fn chain(
        &mut self,
        operators: &[(&str, Operator)],
        operand: fn(&mut Self) -> Result<Term, Problem>,
    ) -> Result<Term, Problem> {
        self.space();
        let start = self.at;
        let mut left = operand(self)?;
        loop {
            self.space();
            let Some((_, operator)) = operators.iter().find(|(sign, _)| self.take(sign)) else {
                return Ok(left);
            };
            let right = operand(self)?;
            let measure = combine(*operator, left.measure(), right.measure()).ok_or_else(|| {
                let message = format!(
                    "`{left}` is a {}, and `{right}` is a {}: `{operator}` cannot combine them",
                    left.measure(),
                    right.measure()
                );
                let mut problem = self.problem(start, self.at, &message);
                let hint = "add and subtract values of one kind; multiply and divide by numbers";
                problem.hint = Some(hint.to_owned());
                problem
            })?;
            left = Term::Binary {
                operator: *operator,
                left: Box::new(left),
                right: Box::new(right),
                measure,
            };
        }
    }

    fn factor(&mut self) -> Result<Term, Problem> {
        self.space();
        let start = self.at;
        if self.take("(") {
            self.depth += 1;
            if self.depth > MAX_DEPTH {
                let message = format!("parentheses nest deeper than {MAX_DEPTH}");
                return Err(self.problem(start, self.at, &message));
            }
            let inner = self.sum()?;
            self.depth -= 1;
            self.space();
            if !self.take(")") {
                return Err(self.problem(start, self.text.len(), "this `(` has no `)`"));
            }
            return Ok(inner);
        }
        match self.rest().chars().next() {
            Some(c) if c.is_ascii_digit() => self.constant(),
            Some(c) if c.is_ascii_alphabetic() => self.metric(),
            _ => {
                let message = match self.rest() {
                    "" => "a metric or a number is missing at the end".to_owned(),
                    rest => format!("expected a metric or a number; found `{rest}`"),
                };
                let mut problem = self.problem(start, self.text.len(), &message);
                problem.hint = Some("write for example `fault.ID.fired == 3`".to_owned());
                Err(problem)
            }
        }
    }

    fn constant(&mut self) -> Result<Term, Problem> {
        let start = self.at;
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '%' | 'µ');
        let mut word = self.word(is_part);
        // `Gbit/s` contains the sign of division.
        if word.ends_with("bit") && self.take("/s") {
            word = &self.text[start..self.at];
        }
        if let Ok(value) = word.replace('_', "").parse::<f64>() {
            return Ok(Term::Constant {
                value,
                measure: Measure::Number,
                is_share: false,
            });
        }
        if let Some(Ok(percent)) = word.strip_suffix('%').map(str::parse::<f64>) {
            return Ok(Term::Constant {
                value: percent / 100.0,
                measure: Measure::Number,
                is_share: true,
            });
        }
        let dimensions = [
            (Dimension::Duration, Measure::Duration),
            (Dimension::Size, Measure::Size),
            (Dimension::Rate, Measure::Rate),
        ];
        for (dimension, measure) in dimensions {
            if let Ok(value) = units::parse(word, dimension) {
                return Ok(Term::Constant {
                    value: value as f64,
                    measure,
                    is_share: false,
                });
            }
        }
        let mut problem = self.problem(
            start,
            self.at,
            &format!("`{word}` is not a number, or its unit is unknown"),
        );
        problem.code = Code::Unit;
        problem.hint = units::hint_for(word).or_else(|| {
            Some("write for example `20ms`, `64KiB`, `1Gbit/s`, `0.9` or `90%`".to_owned())
        });
        Err(problem)
    }

    fn metric(&mut self) -> Result<Term, Problem> {
        let start = self.at;
        let name = self.word(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
        match self.known.find(name) {
            Some(metric) => {
                let span = (self.place)(start, self.at);
                Ok(Term::Metric { metric, span })
            }
            None => {
                let mut problem =
                    self.problem(start, self.at, &format!("this run has no metric `{name}`"));
                problem.code = Code::UnknownName;
                problem.hint = self.known.hint(name);
                Err(problem)
            }
        }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    fn word(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn problem(&self, start: usize, end: usize, message: &str) -> Problem {
        Problem {
            start,
            end,
            code: Code::Expectation,
            message: message.to_owned(),
            hint: None,
        }
    }
}

fn combine(operator: Operator, left: Measure, right: Measure) -> Option<Measure> {
    match operator {
        Operator::Add | Operator::Subtract => (left == right).then_some(left),
        Operator::Multiply if left == Measure::Number => Some(right),
        Operator::Multiply => (right == Measure::Number).then_some(left),
        Operator::Divide if left == right => Some(Measure::Number),
        Operator::Divide => (right == Measure::Number).then_some(left),
    }
}
