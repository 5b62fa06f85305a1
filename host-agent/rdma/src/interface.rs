//! An interface's addresses and MTU.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use frames::Link;
use pnet::datalink;
use roce::packet::{Address, Mtu};

/// An interface with an IPv4 address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number.
    pub index: u32,
    /// Its own addresses.
    pub address: Address,
    /// How long a packet is that it carries, from the IP header on.
    pub link_mtu: u32,
}

/// Why an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// It is not there.
    #[error("there is no interface {0}")]
    Missing(String),
    /// Without a name there must be one with an address.
    #[error("no interface has an IPv4 address and is up; name one with --interface")]
    None,
    /// Several would do.
    #[error("several interfaces have an IPv4 address ({0}); name one with --interface")]
    Several(String),
    /// It has no Ethernet address.
    #[error("the interface {0} has no Ethernet address")]
    NoEthernet(String),
    /// It has no IPv4 address.
    #[error("the interface {0} has no IPv4 address: RoCEv2 is spoken over IPv4 here")]
    NoAddress(String),
    /// Its packets are shorter than those of the smallest MTU.
    #[error(
        "the interface {name} carries {link_mtu} bytes: fewer than the smallest MTU and its headers, 336"
    )]
    Short {
        /// Its name.
        name: String,
        /// How long a packet is.
        link_mtu: u32,
    },
    /// The system does not tell.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Interface {
    /// The interface of this name, or the only one that is up and has an IPv4 address.
    ///
    /// # Errors
    /// [`InterfaceError`]: there is none, or it cannot be used.
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
            link_mtu: Link::of(&found.name)?.mtu()?,
            name: found.name,
        })
    }

    /// All IPv4 addresses of this namespace's interfaces, each with its interface's number.
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

    /// The largest path MTU whose frames it carries.
    ///
    /// # Errors
    /// [`InterfaceError::Short`]: none.
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
