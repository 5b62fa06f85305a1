//! Resolves an IP address to the Ethernet address of the next hop, with the kernel's ARP table (RFC 826).

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

/// The kernel's ARP table, for the network namespace of the calling thread.
const ARP: &str = "/proc/thread-self/net/arp";
const ROUTES: &str = "/proc/thread-self/net/route";
/// `NTF_COM` of linux/if_arp.h: flag of an ARP table entry that has an Ethernet address.
const COMPLETE: u32 = 0x2;
/// The discard port (RFC 863), to which a datagram is sent so that the kernel sends an ARP request.
const DISCARD: u16 = 9;
/// Number of polls of the ARP table, and their interval: the kernel itself sends three requests in three seconds.
const LOOKS: u32 = 60;
const LOOK: Duration = Duration::from_millis(50);

/// Reason why an IP address cannot be resolved to an Ethernet address.
#[derive(Debug, thiserror::Error)]
pub enum NeighbourError {
    /// No host has answered the ARP request.
    #[error("no host on the interface {interface} answers ARP for {ip}")]
    Silent {
        /// Address in the ARP request: the peer, or the router on the path to it.
        ip: Ipv4Addr,
        /// Name of the interface on which the request was sent.
        interface: String,
    },
    /// No route leads to the peer through this interface.
    #[error("no route leads to {ip} through the interface {interface}")]
    Unreachable {
        /// IP address of the peer.
        ip: Ipv4Addr,
        /// Name of the interface.
        interface: String,
    },
    /// A system call, or the reading of the ARP table, failed.
    #[error("cannot resolve the Ethernet address of a peer: {0}")]
    Io(#[from] io::Error),
}

/// Ethernet address to which frames for a peer are sent. If the kernel does not know it, it sends an ARP request.
///
/// # Errors
/// [`NeighbourError`], if the address is not known within three seconds.
pub fn resolve(interface: &str, peer: Ipv4Addr) -> Result<[u8; 6], NeighbourError> {
    let routes = std::fs::read_to_string(ROUTES)?;
    let hop = next_hop(&routes, interface, peer).ok_or_else(|| NeighbourError::Unreachable {
        ip: peer,
        interface: interface.to_owned(),
    })?;
    let mut asked = None;
    for _ in 0..LOOKS {
        if let Some(mac) = in_table(&std::fs::read_to_string(ARP)?, interface, hop) {
            return Ok(mac);
        }
        // The packet itself does not matter: it makes the kernel send an ARP request.
        if asked.is_none() {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.send_to(&[], (hop, DISCARD))?;
            asked = Some(socket);
        }
        std::thread::sleep(LOOK);
    }
    Err(NeighbourError::Silent {
        ip: hop,
        interface: interface.to_owned(),
    })
}

/// Finds the Ethernet address of an IP address in /proc/net/arp: address, type, flags, Ethernet address, mask, device.
fn in_table(table: &str, interface: &str, ip: Ipv4Addr) -> Option<[u8; 6]> {
    table.lines().skip(1).find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, flags, mac, _, device] = words[..] else {
            return None;
        };
        let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
        if device != interface || address.parse() != Ok(ip) || flags & COMPLETE == 0 {
            return None;
        }
        let mac: pnet::util::MacAddr = mac.parse().ok()?;
        Some(mac.octets())
    })
}

/// Next hop to a peer by /proc/net/route (device, destination, gateway, …, mask, all little-endian): the peer itself or a
/// router, by the longest mask.
fn next_hop(routes: &str, interface: &str, peer: Ipv4Addr) -> Option<Ipv4Addr> {
    let routes = routes.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
        let (to, via, mask) = (number(1)?, number(2)?, number(7)?);
        let peer = u32::from_le_bytes(peer.octets());
        (words[0] == interface && peer & mask == to).then_some((mask.count_ones(), via))
    });
    let (_, via) = routes.max_by_key(|(ones, _)| *ones)?;
    Some(match via {
        0 => peer,
        via => via.to_le_bytes().into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
IP address       HW type     Flags       HW address            Mask     Device
10.0.0.2         0x1         0x2         52:54:00:00:00:02     *        eth0
10.0.0.3         0x1         0x0         00:00:00:00:00:00     *        eth0
10.0.0.2         0x1         0x2         52:54:00:00:00:09     *        eth1
";

    const WAYS: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth1\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
";

    #[test]
    fn complete_entries_of_the_interface_count() {
        let of = |interface, last| in_table(TABLE, interface, Ipv4Addr::new(10, 0, 0, last));
        assert_eq!(of("eth0", 2), Some([0x52, 0x54, 0, 0, 0, 2]));
        assert_eq!(of("eth1", 2), Some([0x52, 0x54, 0, 0, 0, 9]));
        assert_eq!(of("eth0", 3), None);
        assert_eq!(of("eth0", 4), None);
    }

    #[test]
    fn the_longest_mask_decides_the_next_hop() {
        let hop = |interface, ip: [u8; 4]| next_hop(WAYS, interface, ip.into());
        assert_eq!(hop("eth0", [10, 0, 0, 7]), Some(Ipv4Addr::new(10, 0, 0, 7)));
        assert_eq!(hop("eth0", [8, 8, 8, 8]), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(
            hop("eth1", [192, 168, 0, 3]),
            Some(Ipv4Addr::new(192, 168, 0, 3))
        );
        assert_eq!(hop("eth1", [10, 0, 0, 7]), None);
    }
}
