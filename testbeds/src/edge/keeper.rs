//! The process that puts interfaces back when the one that has taken them is gone.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::SigSet;
use serde::{Deserialize, Serialize};

use super::{Before, EdgeError, Mark, Splice};
use crate::net::Netlink;

/// What the keeper says when it knows all.
const READY: &str = "ready";
/// More is not how interfaces are.
const MESSAGE_LIMIT: u64 = 1 << 20;

/// What was taken, as it was before.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Kept {
    /// Interfaces.
    pub before: Vec<Before>,
    /// A host that a wire was put in front of.
    pub splice: Option<Splice>,
}

/// The keeper's process. Dropping this has it put everything back, and waits for that.
#[derive(Debug)]
pub struct Keeper {
    child: Option<Child>,
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> EdgeError {
    move |source| EdgeError::Keeper { what, source }
}

impl Keeper {
    /// Starts it, `weir` with its hidden command, and tells it how the interfaces are; nothing has been changed yet.
    /// It holds the marks until it has put them back.
    pub fn start(
        weir: &Path,
        command: &str,
        kept: &Kept,
        marks: &[Mark],
    ) -> Result<Keeper, EdgeError> {
        let mut keeper = Command::new(weir);
        keeper
            .arg(command)
            // Ctrl-C is for the one that it watches.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Mark::inherited(marks, || keeper.spawn());
        let mut child = started.map_err(failed("cannot start it"))?;
        let (stdin, stdout) = (child.stdin.as_mut(), child.stdout.take());
        let mut answer = String::new();
        let told = (|| {
            let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
                return Err(io::ErrorKind::BrokenPipe.into());
            };
            let mut message = serde_json::to_string(kept)?;
            message.push('\n');
            stdin.write_all(message.as_bytes())?;
            BufReader::new(stdout.take(MESSAGE_LIMIT)).read_line(&mut answer)?;
            match answer.trim_end() == READY {
                true => Ok(()),
                false => Err(io::Error::other("it ended")),
            }
        })();
        let keeper = Keeper { child: Some(child) };
        told.map_err(failed("cannot tell it how interfaces are"))?;
        Ok(keeper)
    }

    /// Has everything put back.
    pub fn finish(mut self) -> Result<(), EdgeError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), EdgeError> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        // The end of its input.
        drop(child.stdin.take());
        let output = child
            .wait_with_output()
            .map_err(failed("cannot wait for it"))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(EdgeError::NotBack(said.trim().to_owned()))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // Who wants to know calls `finish`.
        let _ = self.end();
    }
}

/// The keeper itself: reads how interfaces are, waits until nobody is left who could write to it, and puts them back.
pub fn keep() -> Result<(), EdgeError> {
    // What ends others is no reason to leave interfaces as they are not to be. SIGKILL is.
    SigSet::all()
        .thread_block()
        .map_err(|errno| failed("cannot block signals")(errno.into()))?;
    let mut input = BufReader::new(io::stdin().lock());
    let mut message = String::new();
    let asked = input.by_ref().take(MESSAGE_LIMIT).read_line(&mut message);
    asked.map_err(failed("cannot hear how interfaces are"))?;
    let kept: Kept = serde_json::from_str(&message)
        .map_err(|error| failed("cannot hear how interfaces are")(error.into()))?;
    let netlink = Netlink::open()?;
    let spliced = kept.splice.as_ref();
    let spliced = spliced.map(|splice| Ok::<_, EdgeError>((splice, splice.inside()?)));
    let spliced = spliced.transpose()?;
    let said = writeln!(io::stdout(), "{READY}").and_then(|()| io::stdout().flush());
    said.map_err(failed("cannot answer"))?;
    let waited = io::copy(&mut input, &mut io::sink());
    waited.map_err(failed("cannot wait"))?;
    let mut failures = String::new();
    let mut failed = Vec::new();
    if let Some((splice, inside)) = &spliced {
        failed.extend(splice.give_back(&netlink, inside));
    }
    for before in &kept.before {
        failed.extend(before.give_back(&netlink));
    }
    for error in failed {
        let _ = write!(failures, "{error}; ");
    }
    match failures.is_empty() {
        true => Ok(()),
        false => Err(EdgeError::NotBack(
            failures.trim_end_matches("; ").to_owned(),
        )),
    }
}
