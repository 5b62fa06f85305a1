//! Runs a program of the user in a host, and controls the program and all processes that it started there.
#![allow(unsafe_code)]

use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpid, getppid};

use super::tree::{Census, Tree};
use super::{CommandOutput, Stream, User};
use crate::host::{Host, ProcessError};
use crate::starter;

/// Time to wait for the end of a program's output after the program has ended: another process may hold the output open.
const OUTPUT_AFTER_END: Duration = Duration::from_millis(500);

/// A running program. Dropping it kills the program and the processes that it started in its process group.
#[derive(Debug)]
pub struct Program {
    host: String,
    child: Child,
    handle: Handle,
    readers: Vec<JoinHandle<()>>,
    status: Option<ExitStatus>,
}

/// Handle that sends signals to a program from any thread, without effect once the program has ended.
#[derive(Debug, Clone)]
pub struct Handle(Arc<Mutex<Option<Pid>>>);

impl Program {
    /// Starts a program in a host, as `user`, or as the sandbox's root if `user` is `None`. The machine's name is the
    /// host's name: many programs look it up and use its address as their own.
    pub fn start(
        host: &Host,
        mut command: Command,
        user: Option<User>,
        output: &Arc<CommandOutput>,
    ) -> Result<Program, ProcessError> {
        let program = command.get_program().to_string_lossy().into_owned();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        host.choose_io(&mut command);
        let namespace = host.namespace().clone();
        let name = host.name().as_bytes().to_owned();
        let map = user.map(User::map);
        let parent = getpid();
        // SAFETY: the closure makes system calls alone, which are async-signal-safe, with texts that were made before.
        unsafe {
            command.pre_exec(move || {
                setns(&namespace, CloneFlags::CLONE_NEWNET)?;
                unshare(CloneFlags::CLONE_NEWUTS)?;
                Errno::result(libc::sethostname(name.as_ptr().cast(), name.len()))?;
                if let Some(map) = &map {
                    map.enter()?;
                }
                reset_signals()?;
                prctl::set_pdeathsig(Signal::SIGKILL)?;
                // The parent may have died before prctl(2) took effect.
                match getppid() == parent {
                    true => Ok(()),
                    false => Err(Errno::ESRCH.into()),
                }
            });
        }
        let mut child = starter::spawn(command).map_err(|source| ProcessError::Spawn {
            host: host.name().to_owned(),
            program,
            source,
        })?;
        let mut readers = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            readers.push(reader(Stream::Stdout, stdout, output));
        }
        if let Some(stderr) = child.stderr.take() {
            readers.push(reader(Stream::Stderr, stderr, output));
        }
        let pid = Pid::from_raw(child.id() as libc::pid_t);
        Ok(Program {
            host: host.name().to_owned(),
            child,
            handle: Handle(Arc::new(Mutex::new(Some(pid)))),
            readers,
            status: None,
        })
    }

    /// A handle that sends signals to the program from any thread.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits for the program's end; returns its exit status and its time. Then kills the rest of its process group.
    pub fn wait(&mut self) -> Result<(ExitStatus, Instant), ProcessError> {
        let pid = Pid::from_raw(self.child.id() as libc::pid_t);
        while self.status.is_none() {
            match waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
                Ok(_) => break,
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(self.error(errno.into())),
            }
        }
        let ended = Instant::now();
        Ok((self.reap()?, ended))
    }

    /// Exit status of the program; `None`: it still runs. If it has ended, kills the rest of its process group.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, ProcessError> {
        if self.status.is_some() {
            return Ok(self.status);
        }
        let pid = Pid::from_raw(self.child.id() as libc::pid_t);
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT | WaitPidFlag::WNOHANG;
        match waitid(Id::Pid(pid), flags) {
            Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => Ok(None),
            Ok(_) => self.reap().map(Some),
            Err(errno) => Err(self.error(errno.into())),
        }
    }

    /// Asks the program to end by `signal`, and kills it after `within`. Returns false if it had to be killed.
    pub fn stop(&mut self, signal: Signal, within: Duration) -> Result<bool, ProcessError> {
        self.handle.signal(signal);
        let deadline = Instant::now() + within;
        while self.try_wait()?.is_none() {
            if Instant::now() >= deadline {
                self.handle.signal(Signal::SIGKILL);
                self.wait()?;
                return Ok(signal == Signal::SIGKILL);
            }
            thread::sleep(Duration::from_millis(2));
        }
        Ok(true)
    }

    /// Reaps the program once it has ended. Until then, the kernel does not reuse its process id and its group's id.
    fn reap(&mut self) -> Result<ExitStatus, ProcessError> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let status = {
            let mut pid = self.handle.lock();
            if let Some(pid) = pid.take() {
                // ESRCH: no process is left.
                let _ = killpg(pid, Signal::SIGKILL);
            }
            self.child.wait()
        };
        let status = status.map_err(|source| self.error(source))?;
        self.status = Some(status);
        let deadline = Instant::now() + OUTPUT_AFTER_END;
        for reader in self.readers.drain(..) {
            while !reader.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_micros(200));
            }
        }
        Ok(status)
    }

    fn error(&self, source: io::Error) -> ProcessError {
        ProcessError::Io {
            host: self.host.clone(),
            what: "cannot wait for a process",
            source,
        }
    }
}

/// Restores the default action of all signals. A weir that was started in the background or by nohup ignores some, and a
/// service that inherits this cannot be stopped by its own signal. Makes system calls only, as required between fork and exec.
fn reset_signals() -> io::Result<()> {
    for signal in
        Signal::iterator().filter(|signal| ![Signal::SIGKILL, Signal::SIGSTOP].contains(signal))
    {
        // SAFETY: the default has no handler that could be unsafe.
        unsafe { nix::sys::signal::signal(signal, SigHandler::SigDfl) }?;
    }
    Ok(())
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.status.is_none() {
            self.handle.signal(Signal::SIGKILL);
            let _ = self.wait();
        }
    }
}

impl Handle {
    /// Sends a signal to the program and its process group.
    pub fn signal(&self, signal: Signal) {
        if let Some(pid) = *self.lock() {
            let _ = killpg(pid, signal);
        }
    }

    /// Suspends the program and all its descendants, and returns their number; `None` if the program has ended.
    pub fn pause(&self) -> io::Result<Option<Census>> {
        self.with_tree(Tree::stop)
    }

    /// Continues the program and all its descendants, and returns their number; `None` if the program has ended.
    pub fn resume(&self) -> io::Result<Option<Census>> {
        self.with_tree(Tree::go_on)
    }

    /// Kills the program and all its descendants; `None` if it has ended. The caller still has to wait for the dead program.
    pub fn kill(&self) -> io::Result<Option<Census>> {
        self.with_tree(Tree::kill)
    }

    /// The program's current processes, for [`Remains::end`]; `None` if the program has ended.
    pub fn remains(&self) -> io::Result<Option<Remains>> {
        let pid = self.lock();
        pid.map(Tree::new).transpose().map(|tree| tree.map(Remains))
    }

    /// Runs `act` on the program's processes, under a lock that keeps the program from being reaped and its id from reuse.
    fn with_tree<T>(&self, act: impl FnOnce(&mut Tree) -> io::Result<T>) -> io::Result<Option<T>> {
        let pid = self.lock();
        let Some(pid) = *pid else { return Ok(None) };
        act(&mut Tree::new(pid)?).map(Some)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Pid>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The processes that a program had at one time, usually when it was asked to end.
#[derive(Debug)]
pub struct Remains(Tree);

impl Remains {
    /// Kills those of the processes that still exist, and checks that they are gone.
    pub fn end(mut self) -> io::Result<Census> {
        self.0.kill_found()?;
        Ok(Census {
            processes: self.0.count(),
            others: self.0.survivors()?,
        })
    }
}

fn reader(
    stream: Stream,
    mut source: impl Read + Send + 'static,
    output: &Arc<CommandOutput>,
) -> JoinHandle<()> {
    let output = Arc::clone(output);
    thread::spawn(move || {
        let mut lines = output.lines(stream);
        let mut buffer = [0; 16 << 10];
        loop {
            match source.read(&mut buffer) {
                Ok(0) => return lines.end(),
                Ok(count) => lines.take(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return lines.end(),
            }
        }
    })
}

/// Exit status in a shell's form: the exit code, or 128 plus the number of the signal that ended the program.
pub fn exit_code(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => -1,
    }
}

/// Text for users that describes an exit code.
pub fn describe_exit(code: i32) -> String {
    match Signal::try_from(code - 128) {
        Ok(signal) => format!("ended by {}", signal.as_str()),
        Err(_) => format!("exit code {code}"),
    }
}
