//! Hosts in one process: a thread each, with a network namespace of its own.

use std::process::Command;
use std::thread::JoinHandle;

use anyhow::{Context, Result, ensure};
use test_support::namespace::{beyond, ip, remove};

pub const NEAR: &str = "10.9.0.1";
pub const FAR: &str = "10.9.0.2";
/// For RoCE's MTU of 4,096.
const LINK_MTU: u32 = 4200;

/// A cable between two hosts: `near` is here, at [`NEAR`].
pub struct Cable;

impl Cable {
    /// Lays it, and does something at its other end, `far`, at [`FAR`].
    pub fn lay<T: Send + 'static>(
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> (Self, JoinHandle<Result<T>>) {
        ip(&format!(
            "link add near mtu {LINK_MTU} type veth peer name far mtu {LINK_MTU}"
        ));
        ip(&format!("address add {NEAR}/24 dev near"));
        ip("link set near up");
        let far = beyond("far", move || {
            ip(&format!("address add {FAR}/24 dev far"));
            ip("link set far up");
            work()
        });
        (Self, far)
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        remove("near");
    }
}

/// A bridge with hosts at links of a rate, in both directions: bursts of 16 KiB, queues of 256 KiB.
pub struct Bridge;

impl Bridge {
    pub fn lay() -> Self {
        ip("link add hub type bridge stp_state 0 forward_delay 0 mcast_snooping 0");
        ip(&format!("link set hub mtu {LINK_MTU} up"));
        Self
    }

    /// Does something at a host: its interface is `nic` and its number, its address 10.9.0. and its number more than 0.
    pub fn host<T: Send + 'static>(
        &self,
        number: usize,
        rate: &'static str,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<JoinHandle<Result<T>>> {
        let (port, nic) = (format!("port{number}"), format!("nic{number}"));
        ip(&format!(
            "link add {port} mtu {LINK_MTU} type veth peer name {nic} mtu {LINK_MTU}"
        ));
        ip(&format!("link set {port} master hub up"));
        limit(&port, rate)?;
        let its = nic.clone();
        Ok(beyond(&nic, move || {
            ip(&format!("address add 10.9.0.{}/24 dev {its}", number + 1));
            ip(&format!("link set {its} up"));
            limit(&its, rate)?;
            work()
        }))
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
