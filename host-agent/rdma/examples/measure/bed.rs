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

/// A bridge with hosts at links of a rate, in both directions: bursts of 16 KiB, queues of 256 KiB.
pub struct Bridge;

impl Bridge {
    pub fn lay() -> Result<Self> {
        ip("link add hub type bridge stp_state 0 forward_delay 0 mcast_snooping 0")?;
        ip(&format!("link set hub mtu {LINK_MTU} up"))?;
        Ok(Self)
    }

    /// Does something at a host: its interface is `nic` and its number, its address 10.9.0. and its number more than 0.
    pub fn host<T: Send + 'static>(
        &self,
        number: usize,
        rate: &str,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<JoinHandle<Result<T>>> {
        let (port, nic) = (format!("port{number}"), format!("nic{number}"));
        ip(&format!(
            "link add {port} mtu {LINK_MTU} type veth peer name {nic} mtu {LINK_MTU}"
        ))?;
        ip(&format!("link set {port} master hub up"))?;
        limit(&port, rate)?;
        let (ready, is_ready) = mpsc::channel();
        let (go, may_go) = mpsc::channel();
        let rate = rate.to_owned();
        let its = nic.clone();
        let thread = thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET)?;
            ready.send(gettid())?;
            may_go.recv()?;
            ip(&format!("address add 10.9.0.{}/24 dev {its}", number + 1))?;
            ip(&format!("link set {its} up"))?;
            limit(&its, &rate)?;
            work()
        });
        let there = is_ready.recv().context("no namespace")?;
        ip(&format!("link set {nic} netns {there}"))?;
        go.send(())?;
        Ok(thread)
    }
}

fn limit(interface: &str, rate: &str) -> Result<()> {
    let arguments =
        format!("qdisc add dev {interface} root tbf rate {rate} burst 16kb limit 256kb");
    let status = Command::new("tc").args(arguments.split(' ')).status();
    ensure!(
        status.context("cannot run tc")?.success(),
        "tc {arguments} failed"
    );
    Ok(())
}

pub fn ip(arguments: &str) -> Result<()> {
    let status = Command::new("ip")
        .args(arguments.split_whitespace())
        .status()
        .context("cannot run ip")?;
    ensure!(status.success(), "ip {arguments} failed");
    Ok(())
}
