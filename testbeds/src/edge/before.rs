//! How an interface was before it was taken.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::EdgeError;
use crate::net::{Found, Merging, NetError, Netlink};

/// The longest payload that the switch takes.
const MTU_LIMIT: u32 = 9216;

/// How an interface was before it was taken, as far as taking it changes it. Promiscuous mode is not here: it belongs to the
/// switch's socket, and goes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    interface: String,
    up: bool,
    arp: bool,
    mtu: u32,
    ipv6_off: Option<bool>,
    merging: Merging,
    /// Where it is to be changed: of a virtual Ethernet interface.
    gro_max_size: Option<u32>,
}

impl Before {
    /// Looks at two interfaces that are to be the ends of a wire, and changes nothing.
    pub fn of_pair(netlink: &Netlink, interfaces: [&str; 2]) -> Result<[Before; 2], EdgeError> {
        let [a, b] = interfaces;
        if a == b {
            return Err(EdgeError::Same(a.to_owned()));
        }
        let (one, other) = (Before::of(netlink, a)?, Before::of(netlink, b)?);
        if one.mtu != other.mtu {
            return Err(EdgeError::Mtus(
                a.to_owned(),
                b.to_owned(),
                one.mtu,
                other.mtu,
            ));
        }
        Ok([one, other])
    }

    fn of(netlink: &Netlink, name: &str) -> Result<Before, EdgeError> {
        let found = netlink.find(name)?;
        let interface = name.to_owned();
        if found.loopback {
            return Err(EdgeError::Loopback { interface });
        }
        if found.master.is_some() {
            return Err(EdgeError::Master { interface });
        }
        Before::of_found(netlink, name, &found)
    }

    /// Looks at one that is, or will be, without a bridge.
    pub(super) fn of_found(
        netlink: &Netlink,
        name: &str,
        found: &Found,
    ) -> Result<Before, EdgeError> {
        let interface = name.to_owned();
        if found.mtu > MTU_LIMIT {
            return Err(EdgeError::Mtu {
                interface,
                mtu: found.mtu,
                limit: MTU_LIMIT,
            });
        }
        let mut addresses = netlink.addresses(name)?.into_iter();
        if let Some(address) = addresses.find(|address| !comes_by_itself(address)) {
            return Err(EdgeError::Address { interface, address });
        }
        Ok(Before {
            up: found.up,
            arp: found.arp,
            mtu: found.mtu,
            ipv6_off: netlink.ipv6_is_off(name)?,
            merging: netlink.merging(name)?,
            gro_max_size: found.gro_max_size.filter(|_| found.is_veth),
            interface,
        })
    }

    /// Which.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Makes it an end of a wire: this machine says nothing there of its own, and nothing merges frames.
    pub fn take(&self, netlink: &Netlink) -> Result<(), EdgeError> {
        let name = &self.interface;
        let refused = EdgeError::of_change;
        // It answers for any address of this machine, also where it has none.
        netlink.set_arp(name, false).map_err(refused)?;
        if self.ipv6_off == Some(false) {
            netlink.set_ipv6_off(name, true).map_err(refused)?;
        }
        netlink
            .set_merging(name, self.merging, true)
            .map_err(refused)?;
        if self.gro_max_size.is_some() {
            // Both listeners are to get frames in one order.
            netlink.one_order(name).map_err(refused)?;
        }
        netlink.set_up(name, true).map_err(refused)
    }

    /// Puts it back; what fails does not keep the rest from being tried.
    pub fn give_back(&self, netlink: &Netlink) -> Vec<NetError> {
        let name = &self.interface;
        let mut tried = Vec::new();
        if let Some(size) = self.gro_max_size {
            tried.push(netlink.set_gro_max_size(name, size));
        }
        tried.push(netlink.set_merging(name, self.merging, false));
        tried.push(netlink.set_arp(name, self.arp));
        // Its own address comes with it again.
        if self.ipv6_off == Some(false) {
            tried.push(netlink.set_ipv6_off(name, false));
        }
        tried.push(netlink.set_up(name, self.up));
        tried.into_iter().filter_map(Result::err).collect()
    }
}

/// IPv6 link-local addresses go and come with IPv6 itself.
fn comes_by_itself(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}
