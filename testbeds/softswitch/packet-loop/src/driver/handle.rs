//! Commands from other threads to the packet loop.

use super::Core;
use nix::sys::eventfd::EventFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Time between two attempts to send a command while the packet loop's backlog of commands is full.
const FULL_BACKLOG_WAIT: Duration = Duration::from_micros(100);

/// A command. The packet loop calls it until it returns true, and runs an iteration of frames between two calls.
pub(super) type Command = Box<dyn FnMut(&mut Core) -> bool + Send>;

/// The error that the switch has stopped, so that no command runs any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the switch has stopped")]
pub struct Stopped;

/// Sends commands to the packet loop.
#[derive(Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    wake: Arc<EventFd>,
}

impl Handle {
    pub(super) fn new(commands: mpsc::Sender<Command>, wake: Arc<EventFd>) -> Self {
        Self { commands, wake }
    }

    /// Runs `command` between two batches of frames, and returns its result. It should take less than
    /// [`super::COMMAND_SLICE`], because no frame moves meanwhile. Use [`Self::run_steps`] for longer work that need not
    /// be atomic.
    pub async fn run<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let mut command = Some(command);
        self.run_steps(move |core| command.take().map(|command| command(core)))
            .await
    }

    /// Runs `step` between batches of frames until it returns a result. Other commands wait until then.
    pub async fn run_steps<R: Send + 'static>(
        &self,
        mut step: impl FnMut(&mut Core) -> Option<R> + Send + 'static,
    ) -> Result<R, Stopped> {
        let (answer, result) = oneshot::channel();
        let mut answer = Some(answer);
        let command: Command = Box::new(move |core| {
            // The work is finished even if the caller has stopped waiting.
            let Some(result) = step(core) else {
                return false;
            };
            drop(answer.take().map(|answer| answer.send(result)));
            true
        });
        self.commands.send(command).await.map_err(|_| Stopped)?;
        self.wake();
        result.await.map_err(|_| Stopped)
    }

    /// Like [`Self::run`], but blocks the calling thread. Unlike tokio's blocking calls, it may be called on a
    /// runtime's thread.
    pub fn run_blocking<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut Core) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let (answer, result) = std::sync::mpsc::sync_channel(1);
        let mut run = Some(command);
        let mut command: Command = Box::new(move |core| {
            if let Some(run) = run.take() {
                drop(answer.send(run(core)));
            }
            true
        });
        loop {
            match self.commands.try_send(command) {
                Ok(()) => break,
                Err(mpsc::error::TrySendError::Closed(_)) => return Err(Stopped),
                Err(mpsc::error::TrySendError::Full(returned)) => {
                    command = returned;
                    std::thread::sleep(FULL_BACKLOG_WAIT);
                }
            }
        }
        self.wake();
        result.recv().map_err(|_| Stopped)
    }

    fn wake(&self) {
        // Fails only if the counter is full, and then the event is set anyway.
        let _ = self.wake.write(1);
    }
}
