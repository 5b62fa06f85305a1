//! A service: started and awaited before the timeline begins, watched, stopped when the last driver has ended.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use scenario::workload::commands::{self, Ready, When};
use testbeds::command::{Program, exit_code};

pub(super) use testbeds::command::describe_exit as describe;

use super::{CommandError, Prepared};

/// How often is looked whether a service is ready.
const LOOK: Duration = Duration::from_millis(5);
/// How long the drivers may go on after a service has ended: one that serves one client ends a little before it.
const AFTERMATH: Duration = Duration::from_millis(200);
/// How many lines of its output say why a service ended.
const LAST_WORDS: usize = 3;

/// A service that runs.
pub(super) struct Service {
    pub prepared: Arc<Prepared>,
    program: Program,
    /// Of a preparation, which has ended as it should; or of a service that ended by itself, as it may.
    pub exit: Option<i32>,
    /// When it was found that it has.
    ended: Option<Instant>,
}

impl Service {
    /// Starts it, and waits until it is ready.
    pub fn start(prepared: Arc<Prepared>, ready: &Ready) -> Result<Service, CommandError> {
        let program = prepared.start(1).map_err(|error| prepared.failed(error))?;
        let mut service = Service {
            prepared,
            program,
            exit: None,
            ended: None,
        };
        service.await_ready(ready)?;
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
                return Err(CommandError::EndedEarly {
                    name: self.prepared.name().to_owned(),
                    host: self.prepared.host.name().to_owned(),
                    how: self.how_it_ended(code),
                    hint: match code {
                        0 if !is_preparation => {
                            " (a service stays in the foreground: `daemon off;` or the like; a preparation \
                             is `ready: {exit: 0}`)"
                        }
                        _ => "",
                    },
                });
            }
            if Instant::now() >= deadline {
                return Err(CommandError::NotReady {
                    name: self.prepared.name().to_owned(),
                    host: self.prepared.host.name().to_owned(),
                    within_ns: ready.within_ns,
                    what: self.what_is_missing(&ready.when),
                });
            }
            thread::sleep(LOOK);
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
                "it accepts connections at 127.0.0.1:{port} alone, and not at {}:{port}, where other hosts \
                 would find it",
                self.prepared.ip
            ),
            When::Tcp(port) => {
                format!("nobody accepts connections at {}:{port}", self.prepared.ip)
            }
            When::Log(regex) => format!("no line of its output matches `{regex}`"),
            When::File(path) => {
                format!("there is no file {}", self.prepared.expand(path, 1))
            }
            When::Exit(code) => format!("it has not ended with exit code {code}"),
            When::Started => String::new(),
        };
        match self.prepared.output.last_words(LAST_WORDS) {
            Some(words) => format!("{missing}; it said: {words}"),
            None => format!("{missing}; it said nothing"),
        }
    }

    /// An error if it has ended while it was still needed, and nobody expects that.
    pub fn check(&mut self) -> Result<(), CommandError> {
        if self.exit.is_some() {
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
        Err(CommandError::EndedInMidRun {
            name: self.prepared.name().to_owned(),
            host: self.prepared.host.name().to_owned(),
            how: self.how_it_ended(code),
        })
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

    /// Asks it to end, unless it has; the result is false if it had to be killed.
    pub fn stop(&mut self) -> Result<bool, CommandError> {
        if self.exit.is_some() {
            return Ok(true);
        }
        let ended = self.try_wait()?;
        let obeyed = match ended {
            Some(code) => {
                self.exit = Some(code);
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

fn signal(declared: commands::Signal) -> Signal {
    match declared {
        commands::Signal::Term => Signal::SIGTERM,
        commands::Signal::Int => Signal::SIGINT,
        commands::Signal::Quit => Signal::SIGQUIT,
        commands::Signal::Hup => Signal::SIGHUP,
        commands::Signal::Kill => Signal::SIGKILL,
    }
}
