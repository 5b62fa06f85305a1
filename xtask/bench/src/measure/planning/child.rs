//! Starts the process that measures a point of the planning benchmark, and reads the JSON that it prints.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::point::COMMAND;

/// Path of this program, which measures a point with the command [`COMMAND`].
pub struct Child(PathBuf);

impl Child {
    pub fn new() -> Result<Child> {
        let path = std::env::current_exe().context("cannot find the path of this program")?;
        Ok(Child(path))
    }

    /// Runs the measuring process with these arguments, and parses the JSON that it prints.
    pub fn run(&self, arguments: &[&str]) -> Result<Value> {
        let report = self.run_within(arguments, Duration::MAX)?;
        report.with_context(|| format!("{} does not end", arguments.join(" ")))
    }

    /// Like [`Child::run`]; `None` if the process takes longer than `most`.
    pub fn run_within(&self, arguments: &[&str], most: Duration) -> Result<Option<Value>> {
        eprintln!("  {} …", arguments.join(" "));
        let mut command = Command::new(&self.0);
        command.arg(COMMAND).args(arguments).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .context("cannot start the measuring process")?;
        // With a time limit, the process prints a single line, which fits into the pipe. Without a limit, the output is
        // read while the process runs.
        let start = Instant::now();
        while most < Duration::MAX && child.try_wait()?.is_none() {
            if start.elapsed() > most {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            bail!("{}: {}", arguments.join(" "), output.status);
        }
        let text = String::from_utf8(output.stdout)?;
        let value = serde_json::from_str(&text).with_context(|| format!("it printed {text:?}"))?;
        Ok(Some(value))
    }
}

/// The number at the JSON pointer `path` in a value.
pub fn number(value: &Value, path: &str) -> Result<f64> {
    let found = value.pointer(path).and_then(Value::as_f64);
    found.with_context(|| format!("{path} is not a number in {value}"))
}

/// The text at the JSON pointer `path` in a value.
pub fn text<'v>(value: &'v Value, path: &str) -> Result<&'v str> {
    let found = value.pointer(path).and_then(Value::as_str);
    found.with_context(|| format!("{path} is not a text in {value}"))
}

/// The list at the JSON pointer `path` in a value.
pub fn list<'v>(value: &'v Value, path: &str) -> Result<&'v [Value]> {
    let found = value.pointer(path).and_then(Value::as_array);
    let found = found.with_context(|| format!("{path} is not a list in {value}"))?;
    Ok(found)
}

/// The Boolean at the JSON pointer `path` in a value.
pub fn holds(value: &Value, path: &str) -> Result<bool> {
    let found = value.pointer(path).and_then(Value::as_bool);
    found.with_context(|| format!("{path} is not true or false in {value}"))
}

/// Mean of the number that `of` reads from each value.
pub fn mean(values: &[Value], of: impl Fn(&Value) -> Result<f64>) -> Result<f64> {
    ensure!(!values.is_empty(), "no values: they have no mean");
    let sum: Result<f64> = values.iter().map(of).sum();
    Ok(sum? / values.len() as f64)
}

/// Maximum of the number that `of` reads from each value.
pub fn most(values: &[Value], of: impl Fn(&Value) -> Result<f64>) -> Result<f64> {
    let all: Result<Vec<f64>> = values.iter().map(of).collect();
    Ok(all?.into_iter().fold(f64::NEG_INFINITY, f64::max))
}

/// Number of values that have true at the JSON pointer `path`.
pub fn count(values: &[Value], path: &str) -> Result<usize> {
    let all: Result<Vec<bool>> = values.iter().map(|value| holds(value, path)).collect();
    Ok(all?.into_iter().filter(|holds| *holds).count())
}
