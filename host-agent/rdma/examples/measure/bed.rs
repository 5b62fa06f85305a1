//! Hosts in one process: one thread each, with its own network namespace.

use std::process::Command;
use std::thread::JoinHandle;

use anyhow::{Context, Result, ensure};
use test_support::namespace::{beyond, ip, remove};

pub const NEAR: &str = "10.9.0.1";
pub const FAR: &str = "10.9.0.2";
/// Link MTU for RoCE's path MTU of 4,096.
const LINK_MTU: u32 = 4200;

/// A cable between two hosts: its end `near` is in this namespace, at [`NEAR`].
pub struct Cable;

impl Cable {
    /// Creates the cable, and runs `work` at its other end, `far`, at [`FAR`].
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

/// A bridge with hosts at rate-limited links in both directions: bursts of 16 KiB, queues of 256 KiB.
pub struct Bridge;

impl Bridge {
    pub fn lay() -> Self {
        // One processor receives all frames, so that the frames of a flow stay in order. Kernels before 6.3 lack this setting.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let mask = format!("{:x}", u32::MAX >> (32 - processors.min(32)));
        let _ = std::fs::write("/proc/sys/net/core/rps_default_mask", mask);
        ip("link add hub type bridge stp_state 0 forward_delay 0 mcast_snooping 0");
        ip(&format!("link set hub mtu {LINK_MTU} up"));
        Self
    }

    /// Runs `work` at a host with interface `nic` plus its number, and address 10.9.0. plus its number plus 1.
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
            // Foreign programs use the loopback interface.
            ip("link set lo up");
            ip(&format!("address add 10.9.0.{}/24 dev {its}", number + 1));
            ip(&format!("link set {its} up"));
            limit(&its, rate)?;
            work()
        }))
    }
}

/// One of two hosts with several interfaces at rate-limited links; each knows the other's addresses.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// 0 or 1.
    pub number: usize,
    pub nics: usize,
    pub rate: &'static str,
}

impl Node {
    pub fn nic(&self, nic: usize) -> String {
        format!("nic{}{nic}", self.number)
    }
}

impl Bridge {
    /// Runs `work` at a host with several interfaces, in a thread.
    pub fn node<T: Send + 'static>(
        &self,
        node: Node,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<JoinHandle<Result<T>>> {
        for nic in 0..node.nics {
            let (name, mac) = (node.nic(nic), mac(node.number, nic));
            let port = format!("port{}{nic}", node.number);
            ip(&format!(
                "link add {port} mtu {LINK_MTU} type veth peer name {name} mtu {LINK_MTU} address {mac}"
            ));
            ip(&format!("link set {port} master hub up"));
            limit(&port, node.rate)?;
        }
        let (go, may_go) = std::sync::mpsc::channel();
        let thread = beyond(&node.nic(0), move || {
            let there = nix::unistd::gettid();
            go.send(there).context("who waits for it")?;
            // The last interface appears after all others.
            let last = node.nic(node.nics - 1);
            let mut looks = 0..1000;
            while !has(&last)? {
                ensure!(looks.next().is_some(), "{last} does not come");
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            for nic in 0..node.nics {
                let name = node.nic(nic);
                ip(&format!(
                    "address add {}/16 dev {name}",
                    address(node.number, nic)
                ));
                ip(&format!("link set {name} up"));
                limit(&name, node.rate)?;
                // Several interfaces in one network would answer ARP requests for each other's addresses.
                for other in 0..node.nics {
                    let (ip_there, mac) =
                        (address(1 - node.number, other), mac(1 - node.number, other));
                    ip(&format!(
                        "neighbour add {ip_there} lladdr {mac} dev {name} nud permanent"
                    ));
                }
            }
            work()
        });
        let there = may_go.recv().context("the host")?;
        for nic in 1..node.nics {
            ip(&format!("link set {} netns {there}", node.nic(nic)));
        }
        Ok(thread)
    }

    /// Removes the bridge.
    pub fn take(self) {
        remove("hub");
    }

    /// Removes a host's links.
    pub fn leave(&self, node: Node) {
        for nic in 0..node.nics {
            remove(&format!("port{}{nic}", node.number));
        }
    }
}

/// Whether this thread's namespace has an interface.
fn has(name: &str) -> Result<bool> {
    let devices = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let mut devices = devices.lines();
    Ok(devices.any(|line| line.trim_start().starts_with(&format!("{name}:"))))
}

fn address(node: usize, nic: usize) -> String {
    format!("10.9.{}.{}", node + 1, nic + 1)
}

fn mac(node: usize, nic: usize) -> String {
    format!("02:00:00:00:{:02x}:{:02x}", node + 1, nic + 1)
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
