//! Facts about a host, read from the kernel without judgment, for `weir doctor`.

use std::fs;
use std::io;
use std::net::Ipv4Addr;

use pnet::datalink;
use pnet::ipnetwork::IpNetwork;

use super::sockets::{Holder, holders};
use crate::frames::{Io, Link, Mac, open_interface};

/// Bit numbers of the capabilities `CAP_NET_ADMIN` and `CAP_NET_RAW` (linux/capability.h).
const NET_ADMIN: u32 = 12;
const NET_RAW: u32 = 13;

/// Facts about a host that matter to its use as a rank.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// Whether this process may open raw sockets.
    pub net_raw: bool,
    /// Whether this process may request larger receive buffers than the system's limit.
    pub net_admin: bool,
    /// `net.core.rmem_max`, the limit of receive buffers in bytes; `None` if unknown.
    pub receive_limit: Option<u64>,
    /// Names of all interfaces of the host.
    pub names: Vec<String>,
    /// The interface to be checked; `None` if it does not exist.
    pub interface: Option<Interface>,
    /// Result of opening the interface by rings; `None` if the interface does not exist.
    pub rings: Option<OpenResult>,
    /// Result of opening the interface by system calls; `None` if the interface does not exist.
    pub calls: Option<OpenResult>,
    /// Result of opening the interface by pnet; `None` if the interface does not exist.
    pub pnet: Option<OpenResult>,
    /// The routes of the host's main routing table.
    pub routes: Vec<Route>,
    /// The entries of the host's neighbor (ARP) table.
    pub neighbours: Vec<Neighbour>,
    /// Processes that use the UDP port of aggregation frames.
    pub holders: Vec<Holder>,
}

/// A network interface of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Whether the interface is up.
    pub is_up: bool,
    /// Whether the interface's link has a carrier.
    pub has_carrier: bool,
    /// Ethernet address of the interface, if it has one.
    pub mac: Option<Mac>,
    /// IPv4 addresses of the interface.
    pub addresses: Vec<Ipv4Addr>,
    /// MTU of the interface in bytes; `None` if unknown.
    pub mtu: Option<u32>,
}

/// Success of opening an interface, or the reason of the failure.
pub type OpenResult = Result<(), String>;

/// A route of the routing table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Name of the output interface.
    pub interface: String,
    /// Destination network of the route.
    pub network: Ipv4Addr,
    /// Mask of the destination network.
    pub mask: Ipv4Addr,
    /// Gateway of the route; `None` if the network is directly connected.
    pub gateway: Option<Ipv4Addr>,
    /// Metric of the route: of two otherwise equal routes, the one with the lower metric applies.
    pub metric: u32,
}

/// An entry of the host's neighbor (ARP) table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// IPv4 address of the neighbor.
    pub ip: Ipv4Addr,
    /// Name of the interface behind which the neighbor is.
    pub interface: String,
    /// Ethernet address of the neighbor; `None` if it has not answered.
    pub mac: Option<Mac>,
}

/// Collects facts about the host, for an interface of this network namespace.
pub fn facts(interface: &str) -> Facts {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = capabilities(&status);
    let all = datalink::interfaces();
    let found = all.iter().find(|found| found.name == interface);
    let open = |io| match open_interface(interface, io) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    // Read this before opening the interface, which uses the port for a moment.
    let holders = holders(wire::UDP_PORT);
    Facts {
        net_raw: capabilities >> NET_RAW & 1 == 1,
        net_admin: capabilities >> NET_ADMIN & 1 == 1,
        receive_limit: fs::read_to_string("/proc/sys/net/core/rmem_max")
            .ok()
            .and_then(|text| text.trim().parse().ok()),
        names: all.iter().map(|found| found.name.clone()).collect(),
        interface: found.map(|found| Interface {
            name: found.name.clone(),
            is_up: found.is_up(),
            // IFF_RUNNING may be up to a second late.
            has_carrier: found.is_lower_up(),
            mac: found
                .mac
                .filter(|mac| !mac.is_zero())
                .map(|mac| Mac(mac.octets())),
            addresses: found
                .ips
                .iter()
                .filter_map(|ip| match ip {
                    IpNetwork::V4(ip) => Some(ip.ip()),
                    IpNetwork::V6(_) => None,
                })
                .collect(),
            mtu: mtu(interface).ok(),
        }),
        rings: found.map(|_| open(Io::Rings)),
        calls: found.map(|_| open(Io::Calls)),
        pnet: found.map(|_| open(Io::Pnet)),
        routes: routes(&fs::read_to_string("/proc/self/net/route").unwrap_or_default()),
        neighbours: neighbours(&fs::read_to_string("/proc/self/net/arp").unwrap_or_default()),
        holders,
    }
}

/// Effective capabilities, as a bitmap, in the text of a process's `/proc/…/status`.
fn capabilities(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0)
}

/// Parses an IPv4 address as the kernel writes it: a hexadecimal word in the host's byte order.
fn address(text: &str) -> Option<Ipv4Addr> {
    let bits = u32::from_str_radix(text, 16).ok()?;
    Some(Ipv4Addr::from(bits.to_ne_bytes()))
}

fn routes(table: &str) -> Vec<Route> {
    let route = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let gateway = address(words.get(2)?)?;
        let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
        // RTF_UP.
        (flags & 1 == 1).then_some(())?;
        Some(Route {
            interface: (*words.first()?).to_owned(),
            network: address(words.get(1)?)?,
            gateway: (!gateway.is_unspecified()).then_some(gateway),
            metric: words.get(6)?.parse().ok()?,
            mask: address(words.get(7)?)?,
        })
    };
    table.lines().skip(1).filter_map(route).collect()
}

fn neighbours(table: &str) -> Vec<Neighbour> {
    let neighbour = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mac: Mac = words.get(3)?.parse().ok()?;
        Some(Neighbour {
            ip: words.first()?.parse().ok()?,
            interface: (*words.get(5)?).to_owned(),
            mac: (mac != Mac([0; 6])).then_some(mac),
        })
    };
    table.lines().skip(1).filter_map(neighbour).collect()
}

fn mtu(interface: &str) -> io::Result<u32> {
    Link::from_name(interface)?.mtu()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let raw = "Name:\tx\nCapInh:\t0\nCapEff:\t0000000000002000\n";
        assert_eq!(capabilities(raw) >> NET_RAW & 1, 1);
        assert_eq!(capabilities(raw) >> NET_ADMIN & 1, 0);
        assert_eq!(capabilities(""), 0);
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                     eth1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
                     eth2\t0000000A\t00000000\t0000\t0\t0\t0\t00FFFFFF\t0\t0\t0\nbroken\n";
        let found = routes(table);
        assert_eq!(found.len(), 2);
        if cfg!(target_endian = "little") {
            assert_eq!(found[0].gateway, Some(Ipv4Addr::new(10, 0, 0, 1)));
            assert_eq!(found[1].network, Ipv4Addr::new(10, 0, 0, 0));
            assert_eq!(found[1].mask, Ipv4Addr::new(255, 255, 255, 0));
            assert_eq!(found[1].gateway, None);
        }
        let table = "IP address       HW type     Flags       HW address            Mask     Device\n\
                     10.0.0.2         0x1         0x2         02:00:00:00:00:02     *        eth0\n\
                     10.0.0.3         0x1         0x0         00:00:00:00:00:00     *        eth0\n";
        let found = neighbours(table);
        assert_eq!(found[0].mac, Some(Mac([2, 0, 0, 0, 0, 2])));
        assert_eq!(found[1].mac, None);
        assert_eq!(found[1].interface, "eth0");
    }

    #[test]
    fn the_loopback_has_an_mtu() {
        assert!(mtu("lo").unwrap() >= 1500);
        assert!(mtu("no such interface").is_err());
        assert!(mtu("nowhere").is_err());
    }
}
