//! Two hosts with a cable between them, in one process: a thread each, with a network namespace of its own.

use std::process::Command;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, ensure};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;

pub const NEAR: &str = "10.9.0.1";
pub const FAR: &str = "10.9.0.2";
/// For RoCE's MTU of 4,096.
const LINK_MTU: u32 = 4200;

/// The cable.
pub struct Cable;

impl Cable {
    /// Lays it: `near` is here, at [`NEAR`].
    pub fn lay() -> Result<Self> {
        ip(&format!(
            "link add near mtu {LINK_MTU} type veth peer name far mtu {LINK_MTU}"
        ))?;
        ip(&format!("address add {NEAR}/24 dev near"))?;
        ip("link set near up")?;
        Ok(Self)
    }

    /// Does something at its other end, `far`, at [`FAR`].
    pub fn beyond<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<JoinHandle<Result<T>>> {
        let (ready, is_ready) = mpsc::channel();
        let (go, may_go) = mpsc::channel();
        let thread = thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            ready.send(gettid())?;
            may_go.recv()?;
            ip(&format!("address add {FAR}/24 dev far"))?;
            ip("link set far up")?;
            work()
        });
        let there = is_ready.recv().context("no namespace")?;
        ip(&format!("link set far netns {there}"))?;
        go.send(())?;
        Ok(thread)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        // It goes with the namespace, too.
        let _ = ip("link delete near");
    }
}

pub fn ip(arguments: &str) -> Result<()> {
    let status = Command::new("ip")
        .args(arguments.split_whitespace())
        .status()
        .context("cannot run ip")?;
    ensure!(status.success(), "ip {arguments} failed");
    Ok(())
}
