//! Runs a driver: a separate thread starts its program again and again, so that no other work of weir delays the next run.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use scenario::model::workload::commands::Repeat;
use testbeds::command::{Handle, Remains, exit_code};
use testbeds::host::ProcessError;

use super::super::{Order, OrderProgress};
use super::{Prepared, service};
use crate::experiment::fleet::now_ns;

/// Results of the finished runs of a driver.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    /// When each run of the driver's program began, in nanoseconds since 1970.
    pub began_ns: Vec<u64>,
    /// How long each run took, in nanoseconds.
    pub durations_ns: Vec<f64>,
    /// The first exit code that was not 0; 0 if all runs ended with 0.
    pub exit: i32,
    /// Number of runs whose exit code was not 0.
    pub failures: u64,
    /// Number of runs that a fault ended; the other fields do not count them.
    pub ended_by_faults: u64,
}

/// A driver whose thread runs its program.
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
    /// Whether a fault prevents that the program is started again.
    is_held: bool,
    /// Whether a fault ends the present run, which then counts as ended by a fault.
    is_ended_by_fault: bool,
    /// While a fault stops the present run: the deadline after which the run is killed, and the run's processes.
    stopping: Option<(Instant, Option<Remains>)>,
    /// Number of times that the driver's program was started.
    starts: u64,
    /// Value of `starts` when a fault ended a run, to be repeated unless the fault is for good; `None` if no fault ended a run.
    starts_before: Option<u64>,
}

impl Driver {
    /// Starts the thread that runs the driver's program as often as `repeat` says.
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

    /// Whether all runs of the driver are finished; an error if its program could not be started.
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
            // The result was returned before; this thread does not panic.
            _ => Ok(true),
        }
    }

    /// Whether all runs of the driver are finished, with or without an error.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Begins to carry out an order of a fault. Between two runs there is no process, and only the next run is prevented.
    pub fn order(&mut self, order: Order) -> OrderProgress {
        if self.is_over() {
            return OrderProgress::Absent("it had ended by itself".to_owned());
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
                state.ends_run(progress != OrderProgress::done(0));
                progress
            }
            Order::Stop { for_good } => {
                state.holds(for_good);
                match running {
                    None => OrderProgress::done(0),
                    Some(handle) => {
                        let stop = self.prepared.command.stop;
                        let remains = handle.remains().ok().flatten();
                        state.ends_run(remains.is_some());
                        let deadline = Instant::now() + Duration::from_nanos(stop.within_ns);
                        state.stopping = Some((deadline, remains));
                        handle.signal(service::signal(stop.signal));
                        OrderProgress::Pending
                    }
                }
            }
            Order::Start => {
                state.is_held = false;
                match state.starts_before {
                    Some(_) => OrderProgress::Pending,
                    None => OrderProgress::done(0),
                }
            }
        };
        drop(state);
        self.shared.stopped.notify_all();
        progress
    }

    /// Progress of the last order to stop or to start the driver.
    pub fn progress(&mut self) -> OrderProgress {
        let is_over = self.is_over();
        let mut state = self.shared.lock();
        let Some((deadline, remains)) = state.stopping.take() else {
            let has_begun = state
                .starts_before
                .is_none_or(|before| state.starts > before);
            return match (has_begun, is_over) {
                (true, _) => OrderProgress::done(1),
                (false, true) => OrderProgress::Unseen("it did not run again".to_owned()),
                (false, false) => OrderProgress::Pending,
            };
        };
        let mut remark = None;
        if state.running.is_some() {
            if Instant::now() < deadline {
                state.stopping = Some((deadline, remains));
                return OrderProgress::Pending;
            }
            remark = Some(service::DISOBEYED.to_owned());
        }
        let running = state.running.clone();
        drop(state);
        if let Some(handle) = running {
            let killed = service::of_handle(Some(&handle), Handle::kill, "killed");
            if let OrderProgress::Unseen(why) = killed {
                return OrderProgress::Unseen(why);
            }
        }
        service::ended(remains, remark)
    }

    /// Results of the runs that have finished so far.
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
    /// Prevents further starts of the program: until [`Order::Start`], or, with `for_good`, until the end.
    fn holds(&mut self, for_good: bool) {
        self.is_held = true;
        self.is_stopped = for_good;
    }

    /// Records whether the order of a fault ends a run of the program (`in_run`), or came between two runs.
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
                // The run is repeated, unless the fault is for good.
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

    /// Waits between two runs; returns whether the driver must not run again.
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
