//! A driver: a program that runs, and runs again, on a thread of its own, so that nothing stands between one run and the
//! next.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use scenario::workload::commands::Repeat;
use testbeds::command::{Handle, Remains, exit_code};
use testbeds::host::ProcessError;

use super::super::{Order, Progress};
use super::{Prepared, service};
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
    /// How many were ended by a fault, and are in none of the others.
    pub ended_by_faults: u64,
}

/// A driver that runs.
pub(super) struct Driver {
    prepared: Arc<Prepared>,
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
    /// A fault keeps it from running.
    is_held: bool,
    /// A fault ends the present run.
    is_ended_by_fault: bool,
    /// What was left to a fault to see to: until when the present run may take to end, and its processes.
    stopping: Option<(Instant, Option<Remains>)>,
    /// How often it was started.
    starts: u64,
    /// How often that was when a fault ended a run, which is to be begun anew.
    starts_before: Option<u64>,
}

impl Driver {
    /// Starts it.
    pub fn start(prepared: Arc<Prepared>, repeat: Repeat) -> Driver {
        let shared = Arc::new(Shared::default());
        let (own, runs) = (Arc::clone(&shared), Arc::clone(&prepared));
        let thread = thread::spawn(move || own.run(&runs, repeat));
        Driver {
            prepared,
            shared,
            thread: Some(thread),
        }
    }

    /// Whether it has ended; an error if it could not be started.
    pub fn has_ended(&mut self) -> Result<bool, ProcessError> {
        if self
            .thread
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
        {
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

    /// Begins to carry out what a fault does to it. Between two runs it has no processes, and is kept from the next.
    pub fn order(&mut self, order: Order) -> Progress {
        if self.is_over() {
            return Progress::Absent("it had ended by itself".to_owned());
        }
        let mut state = self.shared.lock();
        let running = state.running.clone();
        let progress = match order {
            Order::Pause => {
                state.is_held = true;
                service::of_handle(running.as_ref(), Handle::pause, "stopped")
            }
            Order::Resume => {
                state.is_held = false;
                service::of_handle(running.as_ref(), Handle::resume, "running again")
            }
            Order::Kill { for_good } => {
                state.holds(for_good);
                let progress = service::of_handle(running.as_ref(), Handle::kill, "killed");
                state.ends_run(progress != Progress::done(0));
                progress
            }
            Order::Stop { for_good } => {
                state.holds(for_good);
                match running {
                    None => Progress::done(0),
                    Some(handle) => {
                        let stop = self.prepared.command.stop;
                        let remains = handle.remains().ok().flatten();
                        state.ends_run(remains.is_some());
                        let deadline = Instant::now() + Duration::from_nanos(stop.within_ns);
                        state.stopping = Some((deadline, remains));
                        handle.signal(service::signal(stop.signal));
                        Progress::Pending
                    }
                }
            }
            Order::Start => {
                state.is_held = false;
                match state.starts_before {
                    Some(_) => Progress::Pending,
                    None => Progress::done(0),
                }
            }
        };
        drop(state);
        self.shared.stopped.notify_all();
        progress
    }

    /// How far a stop or a start is.
    pub fn progress(&mut self) -> Progress {
        let is_over = self.is_over();
        let mut state = self.shared.lock();
        let Some((deadline, remains)) = state.stopping.take() else {
            let has_begun = state
                .starts_before
                .is_none_or(|before| state.starts > before);
            return match (has_begun, is_over) {
                (true, _) => Progress::done(1),
                (false, true) => Progress::Unseen("it did not run again".to_owned()),
                (false, false) => Progress::Pending,
            };
        };
        let mut remark = None;
        if state.running.is_some() {
            if Instant::now() < deadline {
                state.stopping = Some((deadline, remains));
                return Progress::Pending;
            }
            remark = Some(service::DISOBEYED.to_owned());
        }
        let running = state.running.clone();
        drop(state);
        if let Some(handle) = running {
            let killed = service::of_handle(Some(&handle), Handle::kill, "killed");
            if let Progress::Unseen(why) = killed {
                return Progress::Unseen(why);
            }
        }
        service::ended(remains, remark)
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

impl State {
    /// A fault ends it: until it is started again, or for good.
    fn holds(&mut self, for_good: bool) {
        self.is_held = true;
        self.is_stopped = for_good;
    }

    /// Whether that ends a run in its middle.
    fn ends_run(&mut self, in_run: bool) {
        self.is_ended_by_fault = in_run;
        self.starts_before = in_run.then_some(self.starts);
    }
}

impl Shared {
    fn run(&self, prepared: &Prepared, repeat: Repeat) -> Result<(), ProcessError> {
        let first = Instant::now();
        let pause = Duration::from_nanos(repeat.pause_ns);
        let mut number = 1;
        loop {
            let (mut program, began) = {
                let is_held = |state: &mut State| state.is_held && !state.is_stopped;
                let state = self.stopped.wait_while(self.lock(), is_held);
                let mut state = state.unwrap_or_else(PoisonError::into_inner);
                if state.is_stopped {
                    return Ok(());
                }
                state.runs.began_ns.push(now_ns());
                let began = Instant::now();
                let program = prepared.start(number)?;
                state.running = Some(program.handle());
                state.starts += 1;
                (program, began)
            };
            let (status, ended) = program.wait()?;
            prepared.watch.run_is_over();
            let code = exit_code(status);
            let took = ended.duration_since(began);
            let mut state = self.lock();
            state.running = None;
            if std::mem::take(&mut state.is_ended_by_fault) {
                // It is begun anew, unless the fault is for good.
                state.runs.ended_by_faults += 1;
                continue;
            }
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
            number += 1;
        }
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
