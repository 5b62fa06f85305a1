//! Network namespaces. A namespace is held by a descriptor, not by a process: there is nothing to start, nothing that can die, and
//! nothing to leave behind.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use crate::ioctl;

/// A network namespace.
#[derive(Debug, Clone)]
pub struct Namespace {
    fd: Arc<OwnedFd>,
}

impl Namespace {
    /// Makes a new one, with its loopback interface up.
    pub fn new() -> io::Result<Namespace> {
        on_scratch_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            ioctl::loopback_up()?;
            Namespace::current()
        })
    }

    /// The calling thread's.
    pub fn current() -> io::Result<Namespace> {
        Ok(Namespace {
            fd: Arc::new(File::open("/proc/thread-self/ns/net")?.into()),
        })
    }

    /// One that exists, by its file.
    pub fn open(path: &std::path::Path) -> io::Result<Namespace> {
        let file: OwnedFd = File::open(path)?.into();
        let namespace = Namespace { fd: Arc::new(file) };
        // Whether it is one is known when it is entered.
        namespace.run(|| Ok(()))?;
        Ok(namespace)
    }

    /// Runs `work` inside, on a thread of its own, so that the calling thread stays where it is. Sockets that `work`
    /// opens and returns keep belonging to this namespace.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        on_scratch_thread(|| {
            setns(&self.fd, CloneFlags::CLONE_NEWNET)?;
            work()
        })
    }
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn on_scratch_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new()
            .name("namespace".into())
            .spawn_scoped(scope, work)?;
        worker
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the work in a namespace panicked")))
    })
}
