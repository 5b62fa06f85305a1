//! Makes the names of hosts known to programs that use the resolver: `curl http://web/`.

use std::fs;
use std::io;

use nix::mount::{MsFlags, mount};
use scenario::model::topology::Topology;

use super::Scratch;

const FILE: &str = "/etc/hosts";

/// Adds the hosts' names before the names in /etc/hosts, for all processes in this sandbox and none outside.
pub fn publish_names(topology: &Topology, scratch: &Scratch) -> io::Result<()> {
    let before = fs::read_to_string(FILE)?;
    let path = scratch.path().join("hosts");
    fs::write(&path, text(topology, &before))?;
    let none: Option<&str> = None;
    mount(Some(&path), FILE, none, MsFlags::MS_BIND, none)?;
    Ok(())
}

fn text(topology: &Topology, before: &str) -> String {
    let hosts = topology.hosts.iter();
    let own: String = hosts
        .map(|host| format!("{} {}\n", host.ip, host.name))
        .collect();
    own + before
}
