//! Probe requests by a program of the user: exit code 0 within the timeout is a good answer, and its running time the latency.

use std::fmt;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

use super::Outcome;
use crate::command::{CommandOutput, Handle, Program, User, describe_exit, exit_code};
use crate::host::{Host, ProcessError};

/// Number of the program's last output lines that are reported when a request fails.
const LAST_WORDS: usize = 2;

/// A program of the user that makes one probe request per run.
#[derive(Clone)]
pub struct ProbeProgram {
    /// Host in which the program runs.
    pub host: Host,
    /// User as whom the program runs; `None`: the root of the sandbox.
    pub user: Option<User>,
    /// Returns the command line for the request with this number, from 1.
    pub command: Arc<dyn Fn(u32) -> Command + Send + Sync>,
    /// The command line as written by the user.
    pub text: String,
}

struct Exit {
    at: Instant,
    code: i32,
    last_words: Option<String>,
}

impl ProbeProgram {
    /// Runs the program to its end. `started` gets a handle to kill it; if nobody takes the handle, the program is killed at
    /// once.
    fn run(&self, number: u32, started: oneshot::Sender<Handle>) -> Result<Exit, ProcessError> {
        let output = CommandOutput::new("", None, Box::new(|_, _| {}));
        let output = Arc::new(output.map_err(|source| ProcessError::Io {
            host: self.host.name().to_owned(),
            what: "cannot keep an output",
            source,
        })?);
        let command = (self.command)(number);
        let mut program = Program::start(&self.host, command, self.user, &output)?;
        if let Err(handle) = started.send(program.handle()) {
            handle.signal(Signal::SIGKILL);
        }
        let (status, at) = program.wait()?;
        Ok(Exit {
            at,
            code: exit_code(status),
            last_words: output.last_words(LAST_WORDS),
        })
    }
}

/// Kills the program of a request when the request ends, for whatever reason.
struct Leash(Handle);

impl Drop for Leash {
    fn drop(&mut self) {
        // Without effect if the program has ended.
        self.0.signal(Signal::SIGKILL);
    }
}

/// Makes the request with this number, and returns the program's running time. The program is killed after `limit`.
pub(super) async fn run(program: &ProbeProgram, number: u32, limit: Duration) -> Outcome {
    let sent = Instant::now();
    let (sender, started) = oneshot::channel();
    let own = program.clone();
    let mut run = spawn_blocking(move || own.run(number, sender));
    let leash = started.await.map(Leash);
    let ran = match timeout_at((sent + limit).into(), &mut run).await {
        Ok(ran) => ran,
        Err(_) => {
            drop(leash);
            run.await
        }
    };
    match ran {
        Ok(Ok(ended)) => {
            let took = ended.at.duration_since(sent);
            (took, judge(&ended, took, limit))
        }
        Ok(Err(error)) => (sent.elapsed(), Err(error.to_string())),
        Err(error) => (sent.elapsed(), Err(error.to_string())),
    }
}

fn judge(ended: &Exit, took: Duration, limit: Duration) -> Result<(), String> {
    // After the limit, the exit code only shows that the program was killed.
    let how = match (took > limit, ended.code) {
        (false, 0) => return Ok(()),
        (false, code) => describe_exit(code),
        (true, _) => format!("it did not finish within {limit:?}"),
    };
    Err(match &ended.last_words {
        Some(words) => format!("{how}: {}", words.replace('\n', "; ")),
        None => how,
    })
}

impl fmt::Debug for ProbeProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ProbeProgram");
        shown.field("text", &self.text).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(took_ms: u64, code: i32, words: Option<&str>) -> Result<(), String> {
        let ended = Exit {
            at: Instant::now(),
            code,
            last_words: words.map(str::to_owned),
        };
        judge(
            &ended,
            Duration::from_millis(took_ms),
            Duration::from_millis(50),
        )
    }

    #[test]
    fn a_good_answer_is_exit_code_0_in_time() {
        assert_eq!(judged(50, 0, Some("words")), Ok(()));
        let error = |text: &str| Err(text.to_owned());
        assert_eq!(judged(9, 7, Some("a\nb")), error("exit code 7: a; b"));
        assert_eq!(judged(9, 139, None), error("ended by SIGSEGV"));
        assert_eq!(judged(51, 0, None), error("it did not finish within 50ms"));
        assert_eq!(
            judged(60, 137, Some("still at it")),
            error("it did not finish within 50ms: still at it")
        );
    }
}
