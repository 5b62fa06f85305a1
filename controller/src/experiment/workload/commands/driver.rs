//! A driver: a program that runs, and runs again, on a thread of its own, so that nothing stands between one run and the
//! next.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use scenario::workload::commands::Repeat;
use testbeds::command::{Handle, exit_code};
use testbeds::host::ProcessError;

use super::Prepared;
use crate::experiment::fleet::now_ns;

/// How a driver's runs went.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    /// When each began, in nanoseconds since 1970.
    pub began_ns: Vec<u64>,
    /// How long each took, in ns.
    pub durations_ns: Vec<f64>,
    /// The first exit code that was not 0; 0 if there was none.
    pub exit: i32,
    /// How many had another exit code than 0.
    pub failures: u64,
}

/// A driver that runs.
pub(super) struct Driver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<(), ProcessError>>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Default)]
struct State {
    runs: Runs,
    running: Option<Handle>,
    is_stopped: bool,
}

impl Driver {
    /// Starts it.
    pub fn start(prepared: Arc<Prepared>, repeat: Repeat) -> Driver {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let thread = thread::spawn(move || own.run(&prepared, repeat));
        Driver {
            shared,
            thread: Some(thread),
        }
    }

    /// Whether it has ended; an error if it could not be started.
    pub fn has_ended(&mut self) -> Result<bool, ProcessError> {
        if self.thread.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return Ok(false);
        }
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended.map(|()| true),
            // It has been asked before; a thread of ours does not panic.
            _ => Ok(true),
        }
    }

    /// Whether it has ended, however.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// How its runs went so far.
    pub fn runs(&self) -> Runs {
        self.shared.lock().runs.clone()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let handle = {
            let mut state = self.shared.lock();
            state.is_stopped = true;
            state.running.take()
        };
        self.shared.stopped.notify_all();
        if let Some(handle) = handle {
            handle.signal(Signal::SIGKILL);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self, prepared: &Prepared, repeat: Repeat) -> Result<(), ProcessError> {
        let first = Instant::now();
        let pause = Duration::from_nanos(repeat.pause_ns);
        for number in 1.. {
            let (mut program, began) = {
                let mut state = self.lock();
                if state.is_stopped {
                    return Ok(());
                }
                state.runs.began_ns.push(now_ns());
                let began = Instant::now();
                let program = prepared.start(number)?;
                state.running = Some(program.handle());
                (program, began)
            };
            let (status, ended) = program.wait()?;
            prepared.watch.run_is_over();
            let code = exit_code(status);
            let took = ended.duration_since(began);
            let mut state = self.lock();
            state.running = None;
            state.runs.durations_ns.push(took.as_nanos() as f64);
            if code != 0 {
                state.runs.failures += 1;
                if state.runs.exit == 0 {
                    state.runs.exit = code;
                }
            }
            let is_last = repeat.times.is_some_and(|times| number >= times)
                || repeat.for_ns.is_some_and(|length| {
                    (first.elapsed() + pause).as_nanos() >= u128::from(length)
                });
            if is_last || self.pauses(state, pause) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits; the result says whether it is to stop.
    fn pauses(&self, state: MutexGuard<'_, State>, pause: Duration) -> bool {
        if pause.is_zero() {
            return state.is_stopped;
        }
        let waited = self
            .stopped
            .wait_timeout_while(state, pause, |state| !state.is_stopped);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_stopped
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
