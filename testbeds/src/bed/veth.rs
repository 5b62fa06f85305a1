//! Links as virtual Ethernet: each host has a separate namespace; the switches' ends of the links are in the bed's namespace.

use std::collections::BTreeMap;

use scenario::model::topology::{BURST_BYTES, Link, QUEUE_BYTES, Topology};

use super::recording::PortInterface;
use super::{Attachment, BedError, Options};
use crate::capture::{LinkSize, longest_bundles, page_bytes};
use crate::host::Host;
use crate::net::{Counters, Interface, LinkEnd, Netlink, Rate};

/// Name of the interface that each host has in its namespace.
pub const HOST_INTERFACE: &str = "eth0";
/// Interface group of the switches' interfaces, which are removed together: `weir` in ASCII.
const GROUP: u32 = u32::from_be_bytes(*b"weir");
/// Prefix length of the IP network that all hosts share, in bits.
const PREFIX: u8 = 16;

/// A switch's port.
struct Port {
    interface: String,
    /// Rate of the port's link in bit/s.
    rate_bps: u64,
    takes_bundles: bool,
}

pub struct VethLinks {
    hosts: BTreeMap<String, (Host, Netlink)>,
    /// Ports by switch name and port number.
    ports: BTreeMap<(String, u32), Port>,
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
        // A capture and its switch are two listeners, and a host's kernel sends from every processor. An agent sends from one thread,
        // so its frames keep their order.
        let is_ordered = options.kernel_ip && ours.deliver_on_one_processor(Some(0))?;
        let mut links = VethLinks {
            hosts,
            ports: BTreeMap::new(),
            ours,
        };
        let bundles = match options.bundles && (is_ordered || !options.kernel_ip) {
            true => bundles(topology),
            // Bundles come in one order only with this setting; `one_order` needs finished frames.
            false => vec![None; topology.links.len()],
        };
        for (number, (link, bundles)) in topology.links.iter().zip(bundles).enumerate() {
            if is_ordered {
                links.ours.deliver_on_one_processor(Some(number))?;
            }
            links.connect(topology, number, link, options, bundles)?;
        }
        if is_ordered {
            links.ours.deliver_on_one_processor(None)?;
        }
        Ok(links)
    }

    fn connect(
        &mut self,
        topology: &Topology,
        number: usize,
        link: &Link,
        options: &Options,
        bundles: Option<u32>,
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
        if bundles.is_some() {
            for end in &link.ends {
                if let Some((host, _)) = self.hosts.get_mut(end) {
                    host.declare_bundles();
                }
            }
        }
        for (end, name) in link.ends.iter().zip(&names) {
            if topology.has_switch(end) {
                let port = topology
                    .ports(end)
                    .find(|port| std::ptr::eq(port.link, link));
                let port = port
                    .ok_or_else(|| BedError::Unknown(format!("port of {end} on link {number}")))?;
                let interface = interface(name, switch_mac(number), link, bundles);
                bring_up(&self.ours, &interface, link)?;
                // For agents, one order would count their bytes without their headers.
                if options.kernel_ip && bundles.is_none() {
                    self.ours.one_order(name)?;
                }
                let at = (end.clone(), port.number);
                let port = Port {
                    interface: name.to_owned(),
                    rate_bps: link.rate_bps,
                    takes_bundles: bundles.is_some(),
                };
                self.ports.insert(at, port);
            } else {
                let host = topology
                    .host(end)
                    .ok_or_else(|| BedError::Unknown(format!("host {end}")))?;
                let (_, netlink) = self
                    .hosts
                    .get(end)
                    .ok_or_else(|| BedError::Unknown(format!("host {end}")))?;
                let address = options.kernel_ip.then_some((host.ip, PREFIX));
                let interface = Interface {
                    address,
                    ..interface(HOST_INTERFACE, host.mac.0, link, bundles)
                };
                bring_up(netlink, &interface, link)?;
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

    pub fn host(&self, name: &str) -> Option<&Host> {
        self.hosts.get(name).map(|host| &host.0)
    }

    pub fn port(&self, switch: &str, port: u32) -> Option<Attachment> {
        let port = self.ports.get(&(switch.to_owned(), port))?;
        Some(Attachment::Interface(port.interface.clone()))
    }

    pub fn port_interface(&self, switch: &str, port: u32) -> Option<PortInterface> {
        let port = self.ports.get(&(switch.to_owned(), port))?;
        Some(PortInterface {
            name: port.interface.clone(),
            rate_bps: Some(port.rate_bps),
        })
    }

    pub fn port_takes_bundles(&self, switch: &str, port: u32) -> bool {
        let port = self.ports.get(&(switch.to_owned(), port));
        port.is_some_and(|port| port.takes_bundles)
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

/// Length of the longest bundle on each link of a topology.
fn bundles(topology: &Topology) -> Vec<Option<u32>> {
    // A link between switches has a ring at each end.
    let rings = topology
        .links
        .iter()
        .enumerate()
        .flat_map(|(number, link)| {
            let ends = link.ends.iter().filter(|end| topology.has_switch(end));
            let size = LinkSize {
                rate_bps: Some(link.rate_bps),
                mtu: link.mtu,
            };
            std::iter::repeat_n((number, size), ends.count())
        });
    let (numbers, sizes): (Vec<usize>, Vec<LinkSize>) = rings.unzip();
    let mut bundles = vec![None; topology.links.len()];
    for (number, longest) in numbers
        .into_iter()
        .zip(longest_bundles(&sizes, page_bytes()))
    {
        bundles[number] = longest;
    }
    bundles
}

fn interface(name: &str, mac: [u8; 6], link: &Link, bundles: Option<u32>) -> Interface {
    Interface {
        name: name.into(),
        mac,
        mtu: link.mtu,
        address: None,
        arp: false,
        bundles,
    }
}

fn bring_up(netlink: &Netlink, interface: &Interface, link: &Link) -> Result<(), BedError> {
    netlink.configure(interface)?;
    let rate = Rate {
        rate_bps: link.rate_bps,
        burst_bytes: BURST_BYTES,
        limit_bytes: QUEUE_BYTES,
    };
    Ok(netlink.limit_rate(&interface.name, rate)?)
}

/// MAC address of a switch's port on the link with this index; no frame is ever sent to it.
fn switch_mac(link: usize) -> [u8; 6] {
    let [high, low] = (link as u16).to_be_bytes();
    [0x02, 0x57, 0x45, 0xFF, high, low]
}
