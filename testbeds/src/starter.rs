//! Threads that live as long as the process, and start processes for those that do not.
//!
//! The kernel ties a child that is to die with its parent to the *thread* that started it (PR_SET_PDEATHSIG): one that a
//! thread of a test had started would die with that thread. And a child inherits that thread's scheduling.

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

/// A thread that ends with the process.
#[derive(Debug)]
pub(crate) struct Starter(Sender<Job>);

impl Starter {
    /// Starts the thread, which is scheduled as the calling one is now.
    pub(crate) fn new(name: &str) -> io::Result<Starter> {
        let (sender, jobs) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || jobs.into_iter().for_each(|job| job()))?;
        Ok(Starter(sender))
    }

    /// Starts a process where the calling thread is.
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

/// Starts a process that can die with this one: from a thread that lives as long.
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

/// Starts a process in a network namespace, which the calling thread leaves again.
fn spawn_in(namespace: &File, mut command: Command) -> io::Result<Child> {
    let home = own_namespace()?;
    let identity = |file: &File| file.metadata().map(|of| (of.dev(), of.ino()));
    // Moving takes privileges, staying none.
    if identity(&home)? == identity(namespace)? {
        return command.spawn();
    }
    setns(namespace, CloneFlags::CLONE_NEWNET)?;
    let child = command.spawn();
    setns(&home, CloneFlags::CLONE_NEWNET)?;
    child
}
