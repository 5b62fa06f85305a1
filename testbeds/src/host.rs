//! A host of the testbed is a network namespace. A [`Process`] runs in it; dropping this value kills the process.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpid, getppid};

pub use crate::namespace::Namespace;
use crate::sandbox::priority;
use crate::starter;

/// A host of the testbed: a name and a network namespace.
#[derive(Debug, Clone)]
pub struct Host {
    name: String,
    namespace: Namespace,
    /// Whether the host's link carries bundles of frames.
    takes_bundles: bool,
}

/// Environment variable with which agents choose how they exchange frames with an interface.
const IO_VARIABLE: &str = "WEIR_IO";

impl Host {
    /// Creates a host that has only a loopback interface.
    pub fn new(name: impl Into<String>) -> io::Result<Host> {
        Ok(Host {
            name: name.into(),
            namespace: Namespace::new()?,
            takes_bundles: false,
        })
    }

    /// Declares that the host's link carries bundles, packets that stand for many frames.
    pub fn declare_bundles(&mut self) {
        self.takes_bundles = true;
    }

    /// Whether the host's link was declared to carry bundles.
    pub fn takes_bundles(&self) -> bool {
        self.takes_bundles
    }

    /// Makes agents that the command starts send bundles from the start (`WEIR_IO=bundles`) if the host's link was declared to carry
    /// them, unless `WEIR_IO` is set.
    pub(crate) fn choose_io(&self, command: &mut Command) {
        let is_set = std::env::var_os(IO_VARIABLE).is_some()
            || command.get_envs().any(|(name, _)| name == IO_VARIABLE);
        if self.takes_bundles && !is_set {
            command.env(IO_VARIABLE, frames::Io::Bundles.to_string());
        }
    }

    /// Name of the host.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Network namespace of the host.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Starts a process in this host.
    pub fn spawn(&self, mut command: Command) -> Result<Process, ProcessError> {
        self.choose_io(&mut command);
        let namespace = self.namespace.clone();
        // SAFETY: setns(2) is async-signal-safe, and the closure only reads a descriptor that it keeps open.
        unsafe {
            command.pre_exec(move || {
                setns(&namespace, CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
            });
        }
        Process::spawn(&self.name, command)
    }
}

/// Errors of a process that runs in a host.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// The process could not be started.
    #[error("{host}: cannot start {program}: {source}")]
    Spawn {
        /// Name of the host in which the process was to run.
        host: String,
        /// Name of the program.
        program: String,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// Waiting for the process or writing to it failed.
    #[error("{host}: {what}: {source}")]
    Io {
        /// Name of the host in which the process runs.
        host: String,
        /// The operation that failed, as text.
        what: &'static str,
        /// Error that the operating system reported.
        source: io::Error,
    },
}

/// Result of reading a process's standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A line of text without its line end. A line longer than [`LINE_LIMIT`] comes in pieces.
    Line(String),
    /// The process wrote no complete line within the timeout.
    TimedOut,
    /// The process has closed its standard output.
    End,
}

/// Length of the longest output line that is kept in one piece, in bytes.
pub const LINE_LIMIT: u64 = 1 << 20;
/// Maximum number of unread output lines; beyond it, the process blocks when it writes.
const LINES_WAITING: usize = 1024;
/// Number of bytes that are kept from the end of a process's standard error.
const STDERR_LIMIT: usize = 64 << 10;

/// Time to wait until all processes in the group of a killed process are gone. They die at once, except for scheduling delays.
const GROUP_DIES: Duration = Duration::from_secs(1);

/// A running process. Dropping it kills the process and the processes that it started in its process group.
#[derive(Debug)]
pub struct Process {
    host: String,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    stderr_reader: Option<thread::JoinHandle<()>>,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts a process in the calling thread's namespaces; [`Host::spawn`] starts it in a host. The new process also
    /// dies when the calling process is killed.
    pub fn spawn(host: &str, command: Command) -> Result<Process, ProcessError> {
        Process::start(host, command, starter::spawn)
    }

    /// Like [`Process::spawn`], but for a switch: it runs with real-time priority if the sandbox may grant that.
    pub(crate) fn spawn_switch(host: &str, command: Command) -> Result<Process, ProcessError> {
        Process::start(host, command, priority::spawn)
    }

    /// Starts a process by `spawn`, from a thread that lives as long as this process: the child dies with that thread.
    fn start(
        host: &str,
        mut command: Command,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
    ) -> Result<Process, ProcessError> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let parent = getpid();
        // SAFETY: prctl(2) and getppid(2) are async-signal-safe and the closure touches nothing else.
        unsafe {
            command.pre_exec(move || {
                prctl::set_pdeathsig(Signal::SIGKILL)?;
                // The parent may have died before prctl(2) took effect.
                match getppid() == parent {
                    true => Ok(()),
                    false => Err(Errno::ESRCH.into()),
                }
            });
        }
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child = spawn(command).map_err(|source| ProcessError::Spawn {
            host: host.into(),
            program,
            source,
        })?;
        let (sender, lines) = mpsc::sync_channel(LINES_WAITING);
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || read_lines(stdout, &sender));
        }
        let stderr = Arc::new(Mutex::new(VecDeque::new()));
        let stderr_reader = child.stderr.take().map(|source| {
            let tail = Arc::clone(&stderr);
            thread::spawn(move || read_tail(source, &tail))
        });
        let stdin = child.stdin.take();
        Ok(Process {
            host: host.into(),
            child,
            stdin,
            lines,
            stderr,
            stderr_reader,
            status: None,
        })
    }

    /// Name of the host in which the process runs.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads the next line of the process's standard output, and waits for it for up to `timeout`.
    pub fn next_line(&mut self, timeout: Duration) -> Output {
        match self.lines.recv_timeout(timeout) {
            Ok(line) => Output::Line(line),
            Err(RecvTimeoutError::Timeout) => Output::TimedOut,
            Err(RecvTimeoutError::Disconnected) => Output::End,
        }
    }

    /// Writes a line to the standard input of the process.
    pub fn write_line(&mut self, line: &str) -> Result<(), ProcessError> {
        let result = match &mut self.stdin {
            Some(stdin) => writeln!(stdin, "{line}").and_then(|()| stdin.flush()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        };
        result.map_err(|source| ProcessError::Io {
            host: self.host.clone(),
            what: "cannot write to a process",
            source,
        })
    }

    /// Closes the standard input of the process.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Exit status of the process; `None`: it still runs.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, ProcessError> {
        if self.status.is_none() {
            self.status = self.child.try_wait().map_err(|source| ProcessError::Io {
                host: self.host.clone(),
                what: "cannot wait for a process",
                source,
            })?;
        }
        Ok(self.status)
    }

    /// Waits for the end of the process and discards its output; `None`: it still runs after the timeout.
    pub fn wait(&mut self, timeout: Duration) -> Result<Option<ExitStatus>, ProcessError> {
        let deadline = Instant::now() + timeout;
        loop {
            // A process blocked in a write of its output would never end.
            while self.lines.try_recv().is_ok() {}
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            thread::sleep(left.min(Duration::from_millis(5)));
        }
    }

    /// The end of the process's standard error as text; complete once the process has ended.
    pub fn stderr(&mut self) -> String {
        if self.status.is_some()
            && let Some(reader) = self.stderr_reader.take()
        {
            let deadline = Instant::now() + Duration::from_millis(500);
            // A grandchild may still hold the pipe; then the text so far must do.
            while !reader.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
        }
        let mut tail = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(tail.make_contiguous()).into_owned()
    }

    /// Asks the process to end, by SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Suspends the process: it stays alive but does not run.
    pub fn suspend(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Continues the process after [`Process::suspend`].
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills the process and waits until it has ended.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            self.signal(Signal::SIGKILL);
            self.status = self.child.wait().ok();
            self.wait_for_its_group();
        }
    }

    /// Kills the process and its group without waiting for their end: their network ports may take a while to close.
    pub fn strike(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Whether the process and all of its process group have ended.
    pub fn has_died_with_its_group(&mut self) -> Result<bool, ProcessError> {
        let group = Pid::from_raw(self.child.id() as libc::pid_t);
        Ok(self.try_wait()?.is_some() && killpg(group, None).is_err())
    }

    /// Waits until the other processes of the group have died: a signal takes effect a moment after it is sent, and
    /// waitpid(2) only waits for the group's leader, our child.
    fn wait_for_its_group(&self) {
        let group = Pid::from_raw(self.child.id() as libc::pid_t);
        let give_up = Instant::now() + GROUP_DIES;
        while killpg(group, None).is_ok() && Instant::now() < give_up {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn signal(&self, signal: Signal) {
        // After a wait, the process id may belong to another process.
        if self.status.is_none() {
            let _ = killpg(Pid::from_raw(self.child.id() as libc::pid_t), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn read_lines(source: impl Read, to: &SyncSender<String>) {
    let mut source = BufReader::new(source);
    let mut line = Vec::new();
    loop {
        line.clear();
        match source
            .by_ref()
            .take(LINE_LIMIT)
            .read_until(b'\n', &mut line)
        {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if to
            .send(String::from_utf8_lossy(&line).into_owned())
            .is_err()
        {
            return;
        }
    }
}

fn read_tail(mut source: impl Read, tail: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = source.read(&mut buffer) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&buffer[..count]);
        let excess = tail.len().saturating_sub(STDERR_LIMIT);
        tail.drain(..excess);
    }
}

/// Lets a child process inherit a descriptor; returns the descriptor's number in the child.
///
/// For [`crate::link`]: `command.arg("--link-fd").arg(inherit(&mut command, fd).to_string())`.
pub fn inherit(command: &mut Command, fd: OwnedFd) -> i32 {
    let number = fd.as_raw_fd();
    // SAFETY: fcntl(2) is async-signal-safe; the closure owns the descriptor, so it is open until the command is dropped.
    unsafe {
        command.pre_exec(move || {
            nix::fcntl::fcntl(
                &fd,
                nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::empty()),
            )?;
            Ok(())
        });
    }
    number
}
