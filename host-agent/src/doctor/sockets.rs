//! Finds the processes that use a UDP port, for `weir doctor`.

use std::collections::BTreeSet;
use std::fs;

/// A process that has a socket at a given UDP port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Number of the process; `None` if this process may not inspect it.
    pub process: Option<u32>,
    /// Name of the process.
    pub name: String,
    /// Whether the process also has a packet socket, as a rank has.
    pub hears_frames: bool,
}

/// The processes that use a UDP port in the current network namespace.
pub fn holders(port: u16) -> Vec<Holder> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut sockets = bound(&read("/proc/self/net/udp"), port);
    sockets.extend(bound(&read("/proc/self/net/udp6"), port));
    if sockets.is_empty() {
        return Vec::new();
    }
    let packets: BTreeSet<u64> = read("/proc/self/net/packet")
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().last()?.parse().ok())
        .collect();
    let mut holders = Vec::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(number) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let own = open_sockets(number);
        let held: Vec<u64> = own.intersection(&sockets).copied().collect();
        if held.is_empty() {
            continue;
        }
        held.iter().for_each(|socket| {
            sockets.remove(socket);
        });
        holders.push(Holder {
            process: Some(number),
            name: read(&format!("/proc/{number}/comm")).trim().to_owned(),
            hears_frames: !own.is_disjoint(&packets),
        });
    }
    if !sockets.is_empty() {
        holders.push(Holder {
            process: None,
            name: "another user's".to_owned(),
            hears_frames: false,
        });
    }
    holders
}

/// Inodes of the sockets bound to a port, by the text of the kernel's socket table.
fn bound(table: &str, port: u16) -> BTreeSet<u64> {
    let inode = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (_, local) = words.get(1)?.rsplit_once(':')?;
        let is_bound = u16::from_str_radix(local, 16).ok()? == port;
        is_bound.then(|| words.get(9)?.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(inode).collect()
}

/// Inodes of the sockets that a process has open; empty if this process may not inspect it.
fn open_sockets(process: u32) -> BTreeSet<u64> {
    let files = fs::read_dir(format!("/proc/{process}/fd"));
    let links = files.into_iter().flatten().flatten();
    let inode = |link: std::path::PathBuf| {
        let name = link.to_str()?.strip_prefix("socket:[")?;
        name.strip_suffix(']')?.parse().ok()
    };
    links
        .filter_map(|file| fs::read_link(file.path()).ok())
        .filter_map(inode)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;

    #[test]
    fn the_owner_of_a_port_is_found() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = socket.local_addr().unwrap().port();
        let found = holders(port);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].process, Some(std::process::id()));
        assert!(!found[0].hears_frames && !found[0].name.is_empty());
        drop(socket);
        assert_eq!(holders(port), []);
    }
}
