//! Network namespaces. A descriptor holds a namespace, not a process: no process has to be kept alive, and nothing is
//! left behind.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns, unshare};

use crate::ioctl;

/// A network namespace, which exists at least as long as this value.
#[derive(Debug, Clone)]
pub struct Namespace {
    fd: Arc<OwnedFd>,
}

impl Namespace {
    /// Creates a network namespace and brings its loopback interface up.
    pub fn new() -> io::Result<Namespace> {
        on_scratch_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            ioctl::loopback_up()?;
            Namespace::current()
        })
    }

    /// The network namespace of the calling thread.
    pub fn current() -> io::Result<Namespace> {
        Ok(Namespace {
            fd: Arc::new(File::open("/proc/thread-self/ns/net")?.into()),
        })
    }

    /// Opens an existing network namespace by its file, such as `/proc/PID/ns/net`.
    pub fn open(path: &std::path::Path) -> io::Result<Namespace> {
        let file: OwnedFd = File::open(path)?.into();
        let namespace = Namespace { fd: Arc::new(file) };
        // Only entering it shows whether the file is a network namespace.
        namespace.run(|| Ok(()))?;
        Ok(namespace)
    }

    /// Runs `work` in this network namespace on a separate thread, so that the calling thread does not move. Sockets
    /// that `work` opens and returns stay in this namespace.
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
