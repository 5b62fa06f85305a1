//! Links as virtual Ethernet: each host has a separate namespace; the switches' ends of the links are in the bed's namespace.

use std::collections::BTreeMap;

use scenario::model::topology::{BURST_BYTES, Link, QUEUE_BYTES, Topology};

use super::recording::PortInterface;
use super::{Attachment, BedError, Options};
use crate::host::Host;
use crate::net::{Counters, Interface, LinkEnd, Netlink, Rate};

/// Name of the interface that each host has in its namespace.
pub const HOST_INTERFACE: &str = "eth0";
/// Interface group of the switches' interfaces, which are removed together: `weir` in ASCII.
const GROUP: u32 = u32::from_be_bytes(*b"weir");
/// Prefix length of the IP network that all hosts share, in bits.
const PREFIX: u8 = 16;

pub struct VethLinks {
    hosts: BTreeMap<String, (Host, Netlink)>,
    /// Interface name and rate of the link in bit/s, by switch name and port number.
    ports: BTreeMap<(String, u32), (String, u64)>,
    /// Netlink connection to the namespace of the switches' interfaces.
    ours: Netlink,
}

impl VethLinks {
    pub fn up(topology: &Topology, options: &Options) -> Result<VethLinks, BedError> {
        let ours = Netlink::open()?;
        let mut hosts = BTreeMap::new();
        for host in &topology.hosts {
            let namespace = Host::new(&host.name)?;
            let netlink = Netlink::open_in(namespace.namespace())?;
            hosts.insert(host.name.clone(), (namespace, netlink));
        }
        let mut links = VethLinks {
            hosts,
            ports: BTreeMap::new(),
            ours,
        };
        for (number, link) in topology.links.iter().enumerate() {
            links.connect(topology, number, link, options)?;
        }
        Ok(links)
    }

    fn connect(
        &mut self,
        topology: &Topology,
        number: usize,
        link: &Link,
        options: &Options,
    ) -> Result<(), BedError> {
        // A switch's end has a name of its own; a host's end is `eth0` in the host's namespace.
        let names = [format!("weir{number}a"), format!("weir{number}b")];
        let ends = [0, 1].map(|side| match self.hosts.get(&link.ends[side]) {
            Some((host, _)) => LinkEnd {
                name: HOST_INTERFACE,
                namespace: Some(host.namespace()),
            },
            None => LinkEnd {
                name: &names[side],
                namespace: None,
            },
        });
        self.ours.connect(ends, GROUP)?;
        for (end, name) in link.ends.iter().zip(&names) {
            if topology.has_switch(end) {
                let port = topology
                    .ports(end)
                    .find(|port| std::ptr::eq(port.link, link));
                let port = port
                    .ok_or_else(|| BedError::Unknown(format!("port of {end} on link {number}")))?;
                self.bring_up(&self.ours, name, switch_mac(number), link, None)?;
                // A capture and its switch are two listeners, and a host's kernel sends from every processor. An agent sends
                // from one thread, so its frames keep their order; and one order would count its bytes without their headers.
                if options.kernel_ip {
                    self.ours.one_order(name)?;
                }
                let number = port.number;
                let interface = (name.to_owned(), link.rate_bps);
                self.ports.insert((end.clone(), number), interface);
            } else {
                let host = topology
                    .host(end)
                    .ok_or_else(|| BedError::Unknown(format!("host {end}")))?;
                let (_, netlink) = self
                    .hosts
                    .get(end)
                    .ok_or_else(|| BedError::Unknown(format!("host {end}")))?;
                let address = options.kernel_ip.then_some((host.ip, PREFIX));
                self.bring_up(netlink, HOST_INTERFACE, host.mac.0, link, address)?;
                if options.kernel_ip {
                    let others = topology
                        .hosts
                        .iter()
                        .filter(|other| other.name != host.name);
                    let others = others.map(|other| (other.ip, other.mac.0));
                    netlink.add_neighbours(HOST_INTERFACE, others)?;
                }
            }
        }
        Ok(())
    }

    fn bring_up(
        &self,
        netlink: &Netlink,
        name: &str,
        mac: [u8; 6],
        link: &Link,
        address: Option<(std::net::Ipv4Addr, u8)>,
    ) -> Result<(), BedError> {
        netlink.configure(&Interface {
            name: name.into(),
            mac,
            mtu: link.mtu,
            address,
            arp: false,
        })?;
        let rate = Rate {
            rate_bps: link.rate_bps,
            burst_bytes: BURST_BYTES,
            limit_bytes: QUEUE_BYTES,
        };
        Ok(netlink.limit_rate(name, rate)?)
    }

    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.get(name).map(|host| &host.0)
    }

    pub fn port(&self, switch: &str, port: u32) -> Option<Attachment> {
        let (interface, _) = self.ports.get(&(switch.to_owned(), port))?;
        Some(Attachment::Interface(interface.clone()))
    }

    pub fn port_interface(&self, switch: &str, port: u32) -> Option<PortInterface> {
        let (name, rate_bps) = self.ports.get(&(switch.to_owned(), port))?;
        Some(PortInterface {
            name: name.clone(),
            rate_bps: Some(*rate_bps),
        })
    }

    pub fn host_counters(&self, host: &str) -> Result<Counters, BedError> {
        let (_, netlink) = self
            .hosts
            .get(host)
            .ok_or_else(|| BedError::Unknown(format!("host {host}")))?;
        Ok(netlink.counters(HOST_INTERFACE)?)
    }
}

impl Drop for VethLinks {
    fn drop(&mut self) {
        // A host's interface disappears with its namespace; links between switches are in this one. A failure has no effect: the
        // sandbox removes its namespace at its end.
        let _ = self.ours.remove_group(GROUP);
    }
}

/// MAC address of a switch's port on the link with this index; no frame is ever sent to it.
fn switch_mac(link: usize) -> [u8; 6] {
    let [high, low] = (link as u16).to_be_bytes();
    [0x02, 0x57, 0x45, 0xFF, high, low]
}
