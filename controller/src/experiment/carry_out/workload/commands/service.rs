//! Runs a service: a program that is ready before the timeline begins, and is stopped when the last driver has finished.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use scenario::model::workload::commands::{self, Ready, When};
use scenario::units::show_duration;
use testbeds::command::{Census, Handle, Program, Remains, exit_code};

use super::super::{Order, OrderProgress};
pub(super) use testbeds::command::describe_exit as describe;

use super::super::error::CommandError;
use super::Prepared;

/// Interval between checks whether a service is ready.
const POLL: Duration = Duration::from_millis(5);
/// How long drivers may run after a service has ended: a service for a single client ends a little before this client.
const AFTERMATH: Duration = Duration::from_millis(200);
/// If a service ends within this time after weir's check found it ready, the check itself may have been the cause.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Number of last output lines that the message on a service's end shows.
const LAST_WORDS: usize = 3;

/// Remark on a program that a fault asked to end, and that weir then had to kill.
pub(super) const DISOBEYED: &str = "it did not end after its stop signal, and was killed";

/// State of a service that faults act on.
#[derive(Debug)]
enum Faulted {
    /// No fault acts on the service, or the fault was undone.
    No,
    /// A fault stops the service, which has to end before the deadline.
    Stopping {
        deadline: Instant,
        remains: Option<Remains>,
    },
    /// A fault has ended the service.
    Down,
    /// The service was started again, and has to be ready before the deadline.
    Starting { deadline: Instant },
}

/// A service of the workload, and its present process.
pub(super) struct Service {
    pub prepared: Arc<Prepared>,
    program: Program,
    /// Exit code of a preparation that succeeded, or of a service that ended by itself; `None` while it runs.
    pub exit: Option<i32>,
    /// When weir noticed that the service had ended by itself; `None` if it runs.
    ended: Option<Instant>,
    /// When the service was found ready for the first time.
    ready_at: Option<Instant>,
    faulted: Faulted,
    /// Number of times that a fault ended the service.
    pub ended_by_faults: u64,
    /// Number of times that the service was started.
    pub starts: u32,
}

impl Service {
    /// Starts a service, and waits until `ready` holds.
    pub fn start(prepared: Arc<Prepared>, ready: &Ready) -> Result<Service, CommandError> {
        let program = prepared.start(1).map_err(|error| prepared.failed(error))?;
        let mut service = Service {
            prepared,
            program,
            exit: None,
            ended: None,
            ready_at: None,
            faulted: Faulted::No,
            ended_by_faults: 0,
            starts: 1,
        };
        service.await_ready(ready)?;
        service.ready_at = Some(Instant::now());
        tracing::info!(service = service.prepared.name(), "service is ready");
        Ok(service)
    }

    fn await_ready(&mut self, ready: &Ready) -> Result<(), CommandError> {
        let deadline = Instant::now() + Duration::from_nanos(ready.within_ns);
        loop {
            let status = self.try_wait()?;
            if let When::Exit(wanted) = ready.when {
                if status == Some(i32::from(wanted)) {
                    self.exit = status;
                    self.prepared.watch.run_is_over();
                    return Ok(());
                }
            } else if self.is_ready(&ready.when) {
                return Ok(());
            }
            if let Some(code) = status {
                let is_preparation = matches!(ready.when, When::Exit(_));
                let hint = match code {
                    0 if !is_preparation => {
                        " (a service stays in the foreground: `daemon off;` or the like; a preparation \
                         is `ready: {exit: 0}`)"
                    }
                    _ => "",
                };
                return Err(self.has_ended("before it was ready", code, hint.to_owned()));
            }
            if Instant::now() >= deadline {
                return Err(CommandError::NotReady {
                    name: self.prepared.name().to_owned(),
                    host: self.prepared.host.name().to_owned(),
                    within_ns: ready.within_ns,
                    what: self.what_is_missing(&ready.when),
                });
            }
            thread::sleep(POLL);
        }
    }

    fn is_ready(&self, when: &When) -> bool {
        match when {
            When::Started => true,
            When::Tcp(port) => self.accepts(self.prepared.ip, *port),
            When::Log(_) => self.prepared.watch.is_ready(),
            When::File(path) => {
                let path = self.prepared.expand(path, 1);
                self.prepared.folder().join(path).exists()
            }
            When::Exit(_) => false,
        }
    }

    fn accepts(&self, ip: Ipv4Addr, port: u16) -> bool {
        let address = SocketAddrV4::new(ip, port).into();
        let connect = || -> io::Result<()> {
            TcpStream::connect_timeout(&address, Duration::from_millis(200)).map(drop)
        };
        self.prepared.host.namespace().run(connect).is_ok()
    }

    fn what_is_missing(&self, when: &When) -> String {
        let missing = match when {
            When::Tcp(port) if self.accepts(Ipv4Addr::LOCALHOST, *port) => format!(
                "it accepts connections only at 127.0.0.1:{port}, not at {}:{port}, where other hosts connect",
                self.prepared.ip
            ),
            When::Tcp(port) => {
                format!(
                    "no program accepts connections at {}:{port}",
                    self.prepared.ip
                )
            }
            When::Log(regex) => format!("no line of its output matches `{regex}`"),
            When::File(path) => {
                format!("there is no file {}", self.prepared.expand(path, 1))
            }
            When::Exit(code) => format!("it has not exited with code {code}"),
            When::Started => String::new(),
        };
        match self.prepared.output.last_words(LAST_WORDS) {
            Some(words) => format!("{missing}; its last output: {words}"),
            None => format!("{missing}; it printed nothing"),
        }
    }

    /// Returns an error if the service has ended by itself while it was still needed.
    pub fn check(&mut self) -> Result<(), CommandError> {
        // The effect of a fault is not a failure of the service.
        if self.exit.is_some() || !matches!(self.faulted, Faulted::No) {
            return Ok(());
        }
        let Some(code) = self.try_wait()? else {
            return Ok(());
        };
        if self.prepared.end_is_expected {
            self.exit = Some(code);
            return Ok(());
        }
        if self.ended.get_or_insert_with(Instant::now).elapsed() < AFTERMATH {
            return Ok(());
        }
        let hint = self.after_its_probe();
        let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
        Err(self.has_ended("during the run", code, hint))
    }

    fn has_ended(&self, when: &'static str, code: i32, hint: String) -> CommandError {
        CommandError::Ended {
            name: self.prepared.name().to_owned(),
            host: self.prepared.host.name().to_owned(),
            when,
            how: self.how_it_ended(code),
            hint,
        }
    }

    /// Hint for a service that ended as soon as it was ready: the check of `ready: {tcp: …}` may have been the only connection
    /// that it serves. `None` if that is not the case.
    pub fn after_its_probe(&self) -> Option<String> {
        let ready = self.prepared.command.ready.as_ref()?;
        let When::Tcp(port) = ready.when else {
            return None;
        };
        let lived = self.ended?.duration_since(self.ready_at?);
        let is_at_once = lived < AT_ONCE && matches!(self.faulted, Faulted::No);
        is_at_once.then(|| {
            format!(
                "`ready: {{tcp: {port}}}` makes weir connect to check whether the service is ready; if the service ends after one connection, write `ready: {{log: REGEX}}` or `ready: started`"
            )
        })
    }

    /// Message that `ready: {tcp: …}` has connected to the service, and how to avoid that; `None` for other checks.
    pub fn was_probed(&self) -> Option<String> {
        let ready = self.prepared.command.ready.as_ref()?;
        let (When::Tcp(port), Some(_)) = (&ready.when, self.ready_at) else {
            return None;
        };
        Some(format!(
            "`ready: {{tcp: {port}}}` has connected to service `{}`: if the service serves only one connection, write `ready: {{log: REGEX}}` or `ready: started`",
            self.prepared.name()
        ))
    }

    /// Begins to carry out an order of a fault on the service.
    pub fn order(&mut self, order: Order) -> OrderProgress {
        let is_down = matches!(self.faulted, Faulted::Down);
        let is_starting = matches!(self.faulted, Faulted::Starting { .. });
        let has_ended = self.exit.is_some() || matches!(self.try_wait(), Ok(Some(_)));
        match order {
            Order::Start => self.start_again(),
            _ if is_down => OrderProgress::Absent("a fault had ended it".to_owned()),
            _ if has_ended => OrderProgress::Absent("it had ended by itself".to_owned()),
            _ if is_starting => OrderProgress::Absent("it was not ready again".to_owned()),
            Order::Pause => of_handle(Some(&self.program.handle()), Handle::pause, "stopped"),
            Order::Resume => of_handle(
                Some(&self.program.handle()),
                Handle::resume,
                "running again",
            ),
            Order::Kill { .. } => {
                let progress = of_handle(Some(&self.program.handle()), Handle::kill, "killed");
                self.is_down(progress)
            }
            Order::Stop { .. } => {
                let stop = self.prepared.command.stop;
                let handle = self.program.handle();
                self.faulted = Faulted::Stopping {
                    deadline: Instant::now() + Duration::from_nanos(stop.within_ns),
                    remains: handle.remains().ok().flatten(),
                };
                handle.signal(signal(stop.signal));
                OrderProgress::Pending
            }
        }
    }

    /// Progress of the last order to stop or to start the service.
    pub fn progress(&mut self) -> OrderProgress {
        match &mut self.faulted {
            Faulted::Stopping { deadline, remains } => {
                let (is_late, remains) = (Instant::now() >= *deadline, remains.take());
                let remark = match self.try_wait() {
                    Err(error) => return self.is_down(OrderProgress::failed(error)),
                    Ok(Some(_)) => None,
                    Ok(None) if is_late => {
                        let killed =
                            of_handle(Some(&self.program.handle()), Handle::kill, "killed");
                        if let OrderProgress::Unseen(_) = killed {
                            return self.is_down(killed);
                        }
                        Some(DISOBEYED.to_owned())
                    }
                    Ok(None) => {
                        if let Faulted::Stopping { remains: kept, .. } = &mut self.faulted {
                            *kept = remains;
                        }
                        return OrderProgress::Pending;
                    }
                };
                self.is_down(ended(remains, remark))
            }
            Faulted::Starting { deadline } => {
                let is_late = Instant::now() >= *deadline;
                self.is_ready_again(is_late)
            }
            Faulted::Down | Faulted::No => OrderProgress::done(0),
        }
    }

    /// Records that a fault has ended the service, and returns `progress`.
    fn is_down(&mut self, progress: OrderProgress) -> OrderProgress {
        self.faulted = Faulted::Down;
        self.ended_by_faults += 1;
        // The first process has ended; other processes that were seen alive may live on for a while.
        if !matches!(progress, OrderProgress::Unseen(_))
            && let Err(error) = self.program.wait()
        {
            return OrderProgress::failed(error);
        }
        self.prepared.watch.run_is_over();
        progress
    }

    fn start_again(&mut self) -> OrderProgress {
        self.prepared.watch.starts_again();
        match self.prepared.start(1) {
            Ok(program) => self.program = program,
            Err(error) => return OrderProgress::failed(error),
        }
        self.starts += 1;
        self.ended = None;
        let within = self.prepared.command.ready.as_ref();
        let within = within.map_or(0, |ready| ready.within_ns);
        self.faulted = Faulted::Starting {
            deadline: Instant::now() + Duration::from_nanos(within),
        };
        OrderProgress::Pending
    }

    /// Progress of a service's restart. If it is not ready in time, that is a result of the fault, and does not end the run.
    fn is_ready_again(&mut self, is_late: bool) -> OrderProgress {
        let Some(ready) = self.prepared.command.ready.clone() else {
            return OrderProgress::done(1);
        };
        let why = match self.try_wait() {
            Err(error) => error.to_string(),
            Ok(Some(code)) => format!(
                "it ended before it was ready again: {}",
                self.how_it_ended(code)
            ),
            Ok(None) if self.is_ready(&ready.when) => {
                self.faulted = Faulted::No;
                tracing::info!(service = self.prepared.name(), "service is ready again");
                return OrderProgress::done(1);
            }
            Ok(None) if is_late => format!(
                "it was not ready again within {}: {}",
                show_duration(ready.within_ns),
                self.what_is_missing(&ready.when)
            ),
            Ok(None) => return OrderProgress::Pending,
        };
        OrderProgress::Unseen(why)
    }

    fn try_wait(&mut self) -> Result<Option<i32>, CommandError> {
        let status = self.program.try_wait();
        let status = status.map_err(|error| self.prepared.failed(error))?;
        Ok(status.map(exit_code))
    }

    fn how_it_ended(&self, code: i32) -> String {
        let how = describe(code);
        match self.prepared.output.last_words(LAST_WORDS) {
            Some(words) => format!("{how}: {words}"),
            None => how,
        }
    }

    /// Asks the service to end, if it still runs; returns false if weir had to kill it.
    pub fn stop(&mut self) -> Result<bool, CommandError> {
        if self.exit.is_some() || matches!(self.faulted, Faulted::Down) {
            return Ok(true);
        }
        let ended = self.try_wait()?;
        let obeyed = match ended {
            Some(code) => {
                self.exit = Some(code);
                self.ended.get_or_insert_with(Instant::now);
                true
            }
            None => {
                let stop = self.prepared.command.stop;
                let within = Duration::from_nanos(stop.within_ns);
                let stopped = self.program.stop(signal(stop.signal), within);
                stopped.map_err(|error| self.prepared.failed(error))?
            }
        };
        self.prepared.watch.run_is_over();
        Ok(obeyed)
    }
}

/// Applies `act` to all processes of a program, and checks that all are `what` afterwards. `handle`: `None` if it has none.
pub(super) fn of_handle(
    handle: Option<&Handle>,
    act: impl FnOnce(&Handle) -> io::Result<Option<Census>>,
    what: &str,
) -> OrderProgress {
    let seen = handle.map_or(Ok(None), act);
    OrderProgress::from_census(seen.map(Option::unwrap_or_default), what)
}

/// Result of an order to stop a program whose first process has ended: done if none of its other processes is left.
pub(super) fn ended(remains: Option<Remains>, remark: Option<String>) -> OrderProgress {
    let seen = remains.map_or(Ok(Census::default()), Remains::end);
    match OrderProgress::from_census(seen, "gone") {
        OrderProgress::Done { processes, .. } => OrderProgress::Done { processes, remark },
        other => other,
    }
}

pub(super) fn signal(declared: commands::Signal) -> Signal {
    match declared {
        commands::Signal::Term => Signal::SIGTERM,
        commands::Signal::Int => Signal::SIGINT,
        commands::Signal::Quit => Signal::SIGQUIT,
        commands::Signal::Hup => Signal::SIGHUP,
        commands::Signal::Kill => Signal::SIGKILL,
    }
}
