//! Threads that live as long as the process, and start processes on behalf of shorter-lived threads.
//!
//! The kernel ties a child that is to die with its parent process to the *thread* that started it (PR_SET_PDEATHSIG): a
//! child started by a test's thread would die with that thread. A child also inherits the thread's scheduling.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Command};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Sender};
use std::thread;

use nix::sched::{CloneFlags, setns};
use nix::unistd::{getpid, gettid};

type Job = Box<dyn FnOnce() + Send>;

/// A thread that lives as long as the process, and starts child processes.
#[derive(Debug)]
pub(crate) struct Starter(Sender<Job>);

impl Starter {
    /// Starts a thread of this name with the scheduling of the calling thread.
    pub(crate) fn new(name: &str) -> io::Result<Starter> {
        let (sender, jobs) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || jobs.into_iter().for_each(|job| job()))?;
        Ok(Starter(sender))
    }

    /// Starts a child process in the calling thread's network namespace.
    pub(crate) fn spawn(&self, command: Command) -> io::Result<Child> {
        let namespace = own_namespace()?;
        let (sender, started) = mpsc::sync_channel(1);
        let job = move || {
            let _ = sender.send(spawn_in(&namespace, command));
        };
        let gone = || io::Error::other("the thread that starts processes has ended");
        self.0.send(Box::new(job)).map_err(|_| gone())?;
        started.recv().map_err(|_| gone())?
    }
}

/// Starts a child process, which may be set to die with this process, from a thread that lives as long as this process.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    static STARTER: LazyLock<io::Result<Starter>> = LazyLock::new(|| Starter::new("starter"));
    if getpid() == gettid() {
        return command.spawn();
    }
    match &*STARTER {
        Ok(starter) => starter.spawn(command),
        Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
    }
}

/// The network namespace of the calling thread.
fn own_namespace() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// Starts a child process in a network namespace, which the calling thread enters for this and leaves again.
fn spawn_in(namespace: &File, mut command: Command) -> io::Result<Child> {
    let home = own_namespace()?;
    let identity = |file: &File| file.metadata().map(|of| (of.dev(), of.ino()));
    // Entering another namespace requires privileges, staying does not.
    if identity(&home)? == identity(namespace)? {
        return command.spawn();
    }
    setns(namespace, CloneFlags::CLONE_NEWNET)?;
    let child = command.spawn();
    setns(&home, CloneFlags::CLONE_NEWNET)?;
    child
}
