//! Finds a network interface of the host, with its addresses and its MTU.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use frames::Link;
use pnet::datalink;
use roce::packet::{Address, Mtu};

/// A network interface with an Ethernet and an IPv4 address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Name of the network interface.
    pub name: String,
    /// The kernel's index of the interface.
    pub index: u32,
    /// Ethernet and IPv4 address of the interface.
    pub address: Address,
    /// MTU of the interface in bytes, from the IP header on.
    pub link_mtu: u32,
}

/// Reason why a network interface cannot be used for RDMA.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// No network interface has this name.
    #[error("no interface is named {0}")]
    Missing(String),
    /// No name was given, and no interface that is up has an IPv4 address.
    #[error("no interface has an IPv4 address and is up; name one with --interface")]
    None,
    /// No name was given, and several interfaces are possible; the text names them.
    #[error("several interfaces have an IPv4 address ({0}); name one with --interface")]
    Several(String),
    /// The interface with this name has no Ethernet address.
    #[error("the interface {0} has no Ethernet address")]
    NoEthernet(String),
    /// The interface with this name has no IPv4 address.
    #[error("the interface {0} has no IPv4 address: weir supports RoCEv2 over IPv4 only")]
    NoAddress(String),
    /// The interface's MTU is too small for the smallest path MTU of RDMA.
    #[error("the interface {name} has an MTU of {link_mtu} bytes: RoCEv2 needs at least 336")]
    Short {
        /// Name of the network interface.
        name: String,
        /// MTU of the interface in bytes.
        link_mtu: u32,
    },
    /// A system call about the interface failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Interface {
    /// Finds the interface with this name, or the only one that is up and has an IPv4 address.
    ///
    /// # Errors
    /// [`InterfaceError`], if there is none or it cannot be used.
    pub fn find(name: Option<&str>) -> Result<Self, InterfaceError> {
        let all = datalink::interfaces();
        let found = match name {
            Some(name) => {
                let mut named = all.into_iter().filter(|one| one.name == name);
                let missing = || InterfaceError::Missing(name.to_owned());
                named.next().ok_or_else(missing)?
            }
            None => {
                let usable = |one: &datalink::NetworkInterface| {
                    one.is_up() && !one.is_loopback() && ipv4(one).is_some()
                };
                let mut usable: Vec<_> = all.into_iter().filter(usable).collect();
                if usable.len() > 1 {
                    let names: Vec<String> = usable.into_iter().map(|one| one.name).collect();
                    return Err(InterfaceError::Several(names.join(", ")));
                }
                usable.pop().ok_or(InterfaceError::None)?
            }
        };
        let ip = ipv4(&found).ok_or_else(|| InterfaceError::NoAddress(found.name.clone()))?;
        let no_ethernet = || InterfaceError::NoEthernet(found.name.clone());
        let mac = found.mac.ok_or_else(no_ethernet)?.octets();
        Ok(Self {
            index: found.index,
            address: Address { mac, ip },
            link_mtu: Link::from_name(&found.name)?.mtu()?,
            name: found.name,
        })
    }

    /// All IPv4 addresses of the interfaces in this network namespace, each with the kernel's index of its interface.
    pub fn addresses() -> Vec<(Ipv4Addr, u32)> {
        let all = datalink::interfaces();
        let addresses = all.iter().flat_map(|interface| {
            let ips = interface.ips.iter().map(|network| network.ip());
            ips.filter_map(|ip| match ip {
                IpAddr::V4(ip) => Some((ip, interface.index)),
                IpAddr::V6(_) => None,
            })
        });
        addresses.collect()
    }

    /// The largest RDMA path MTU whose packets fit the interface's MTU.
    ///
    /// # Errors
    /// [`InterfaceError::Short`], if none fits.
    pub fn mtu(&self) -> Result<Mtu, InterfaceError> {
        Mtu::for_link(self.link_mtu as usize).ok_or_else(|| InterfaceError::Short {
            name: self.name.clone(),
            link_mtu: self.link_mtu,
        })
    }
}

fn ipv4(interface: &datalink::NetworkInterface) -> Option<Ipv4Addr> {
    interface.ips.iter().find_map(|network| match network.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    })
}
