//! Counts the results of the tests, read from the lines that cargo and the test programs print.

use std::collections::BTreeSet;
use std::path::Path;

/// Totals of a run of the tests. Each test is counted once, in the last result line of its program:
/// a test that starts another test program and prints its output adds nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Totals {
    done: Counts,
    /// Last result line of the running test program; `None` before its first result line.
    current: Option<Counts>,
    /// Whether the running test program has begun to run tests.
    has_begun: bool,
    /// Name of the running test program.
    program: String,
    /// Failed tests: (test program, test).
    failures: BTreeSet<(String, String)>,
    /// Ignored tests, as `test: reason`.
    ignored: BTreeSet<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts {
            passed,
            failed,
            skipped,
        } = self.done;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

impl Totals {
    /// Reads all output lines, and passes each line to `show` when it arrives.
    pub fn read(
        lines: impl Iterator<Item = std::io::Result<String>>,
        mut show: impl FnMut(&str),
    ) -> std::io::Result<Totals> {
        let mut totals = Totals::default();
        for line in lines {
            let line = line?;
            totals.line(&line);
            show(&line);
        }
        totals.next_program("");
        Ok(totals)
    }

    /// Number of tests that passed or failed.
    pub fn ran(&self) -> usize {
        self.done.passed + self.done.failed
    }

    /// The failed tests, as (test program, test).
    pub fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.failures
            .iter()
            .map(|(program, test)| (program.as_str(), test.as_str()))
    }

    /// Counts skipped tests, which the harness counted as passed; a failed test stays failed. Each line of `notes` has
    /// a test program, a test, and the skipped part with its reason. Returns all reasons, those of ignored tests too.
    pub fn take_skips(&mut self, notes: &str) -> BTreeSet<String> {
        let mut tests = BTreeSet::new();
        let mut reasons = self.ignored.clone();
        for note in notes.lines() {
            let mut fields = note.splitn(3, '\t').map(str::to_owned);
            if let (Some(program), Some(test), Some(reason)) =
                (fields.next(), fields.next(), fields.next())
            {
                tests.insert((program, test));
                reasons.insert(reason);
            }
        }
        let skipped = tests.difference(&self.failures).count();
        self.done.passed = self.done.passed.saturating_sub(skipped);
        self.done.skipped += skipped;
        reasons
    }

    fn line(&mut self, line: &str) {
        let trimmed = line.trim_start();
        // `Running tests/it/main.rs (target/debug/deps/it-0123456789abcdef)`
        if let Some(running) = trimmed.strip_prefix("Running ")
            && let Some((_, path)) = running.rsplit_once('(')
        {
            let path = Path::new(path.trim_end_matches(')'));
            let name = path.file_name().unwrap_or_default();
            self.next_program(&name.to_string_lossy());
        } else if let Some(krate) = trimmed.strip_prefix("Doc-tests ") {
            self.next_program(&format!("documentation of {krate}"));
        } else if let Some(test) = line.strip_prefix("test ")
            && let Some(test) = test.strip_suffix(" ... FAILED")
        {
            let failure = (self.program.clone(), test.to_owned());
            self.failures.insert(failure);
        } else if let Some(test) = line.strip_prefix("test ")
            && let Some((test, reason)) = test.split_once(" ... ignored")
        {
            let reason = reason.strip_prefix(", ").unwrap_or("ignored");
            self.ignored.insert(format!("{test}: {reason}"));
        } else if line.starts_with("running ") && line.trim_end_matches('s').ends_with(" test") {
            self.has_begun = true;
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.current = Some(Counts::parse(counts));
        }
    }

    fn next_program(&mut self, program: &str) {
        let has_begun = std::mem::take(&mut self.has_begun);
        let last = self.current.take().unwrap_or_else(|| {
            // The program was killed or aborted: its last lines name the test that caused it.
            if has_begun {
                let failure = (
                    self.program.clone(),
                    "it ended before its result line".to_owned(),
                );
                self.failures.insert(failure);
            }
            Counts {
                failed: usize::from(has_begun),
                ..Counts::default()
            }
        });
        self.done.passed += last.passed;
        self.done.failed += last.failed;
        self.done.skipped += last.skipped;
        program.clone_into(&mut self.program);
    }
}

impl Counts {
    /// Parses the result line of a test program: `ok. 12 passed; 0 failed; 1 ignored; …`
    fn parse(text: &str) -> Counts {
        let mut counts = Counts::default();
        for part in text.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(count), Some(what)) = (words.next(), words.next()) else {
                continue;
            };
            let Ok(count) = count.parse() else { continue };
            match what {
                "passed" => counts.passed = count,
                "failed" => counts.failed = count,
                "ignored" => counts.skipped = count,
                _ => {}
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(output: &str) -> Totals {
        Totals::read(output.lines().map(|line| Ok(line.to_owned())), |_| {}).unwrap()
    }

    #[test]
    fn each_test_is_counted_once() {
        let mut totals = totals(
            "   Compiling weir v0.1.0
     Running unittests src/lib.rs (target/debug/deps/weir-11)
running 3 tests
test a ... ok
test b ... ok
test c ... ignored, slow
test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/cli.rs (target/debug/deps/cli-22)
running 3 tests
test a ... ok
test b ... FAILED
test c ... ok
test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
   Doc-tests weir
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
",
        );
        assert_eq!(totals.to_string(), "5 passed, 1 failed, 1 skipped");
        assert!(totals.failures().eq([("cli-22", "b")]));
        // `a` of one program skips twice, and so does a test that fails afterwards.
        let notes = "cli-22\ta\tfirst: no redis\ncli-22\ta\tsecond: no mn\ncli-22\tb\tb: no mn\n\n";
        let reasons = totals.take_skips(notes);
        let expected = ["b: no mn", "c: slow", "first: no redis", "second: no mn"];
        assert!(reasons.iter().eq(&expected), "{reasons:?}");
        assert_eq!(totals.to_string(), "4 passed, 1 failed, 2 skipped");
    }

    #[test]
    fn a_program_that_aborts_has_failed() {
        let totals = totals(
            "     Running tests/it/main.rs (target/debug/deps/it-44)
running 2 tests
test a ... ok

thread 'b' has overflowed its stack
     Running tests/cli.rs (target/debug/deps/cli-55)
running 1 test
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.2s
",
        );
        assert_eq!(totals.to_string(), "1 passed, 1 failed, 0 skipped");
        let failures: Vec<_> = totals.failures().collect();
        assert_eq!(failures, [("it-44", "it ended before its result line")]);
    }

    #[test]
    fn output_of_a_nested_test_program_is_not_counted() {
        let totals = totals(
            "     Running tests/it/main.rs (target/debug/deps/it-33)
running 2 tests
test a ... FAILED
test b ... ok

failures:

---- a stdout ----
running 1 test
test a ... FAILED
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 8 filtered out; finished in 0.1s

failures:
    a

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.2s
",
        );
        assert_eq!(totals.to_string(), "1 passed, 1 failed, 0 skipped");
        assert_eq!(totals.failures().count(), 1);
    }
}
