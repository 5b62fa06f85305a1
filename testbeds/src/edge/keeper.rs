//! The keeper process: restores the interfaces that weir has taken when the process that took them has ended.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::SigSet;
use serde::{Deserialize, Serialize};

use super::{Before, EdgeError, Mark, Splice};
use crate::net::Netlink;

/// Line that the keeper writes once it knows the state of all interfaces.
const READY: &str = "ready";
/// Maximum size of the message that sends the interfaces' state to the keeper, in bytes.
const MESSAGE_LIMIT: u64 = 1 << 20;

/// State of all interfaces that weir takes, before it takes them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct TakenState {
    /// State of each interface that is an end of the wire through weir.
    pub before: Vec<Before>,
    /// The host that weir was put in front of; `None`: weir is between two existing interfaces.
    pub splice: Option<Splice>,
}

/// The running keeper process. Dropping this value makes the keeper restore all interfaces, and waits for it.
#[derive(Debug)]
pub struct Keeper {
    child: Option<Child>,
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> EdgeError {
    move |source| EdgeError::Keeper { what, source }
}

impl Keeper {
    /// Starts the keeper, `weir` with its hidden command, and sends it the interfaces' state before anything is
    /// changed. The keeper holds the marks on the interfaces until it has restored the interfaces.
    pub fn start(
        weir: &Path,
        command: &str,
        kept: &TakenState,
        marks: &[Mark],
    ) -> Result<Keeper, EdgeError> {
        let mut keeper = Command::new(weir);
        keeper
            .arg(command)
            // Ctrl-C is for the process that the keeper watches.
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

    /// Makes the keeper restore all interfaces, and waits for it.
    pub fn finish(mut self) -> Result<(), EdgeError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), EdgeError> {
        let Some(mut child) = self.child.take() else {
            return Ok(());
        };
        // Closing the keeper's input makes it restore everything.
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
        // Callers that need the result call `finish`.
        let _ = self.end();
    }
}

/// Body of the keeper process: reads the interfaces' state, waits until all writers of its input are gone, restores the state.
pub fn keep() -> Result<(), EdgeError> {
    // Signals that end other processes must not leave interfaces changed. Only SIGKILL can.
    SigSet::all()
        .thread_block()
        .map_err(|errno| failed("cannot block signals")(errno.into()))?;
    let mut input = BufReader::new(io::stdin().lock());
    let mut message = String::new();
    let asked = input.by_ref().take(MESSAGE_LIMIT).read_line(&mut message);
    asked.map_err(failed("cannot hear how interfaces are"))?;
    let kept: TakenState = serde_json::from_str(&message)
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
