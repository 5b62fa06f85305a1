//! Reads the state of an existing interface before weir takes it, takes it, and restores it.

use serde::{Deserialize, Serialize};

use super::{EdgeError, Mark};
use crate::net::{Found, Lasting, Merging, NetError, Netlink};

/// Maximum MTU of a taken interface, in bytes: the switch takes no longer payload.
const MTU_LIMIT: u32 = 9216;

/// State of an existing interface before weir took it, limited to what taking it changes. Promiscuous mode is not
/// included: it belongs to the switch's socket and ends with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    interface: String,
    /// Index of the interface, which identifies it when it is restored: its name may have changed by then.
    index: u32,
    up: bool,
    arp: bool,
    mtu: u32,
    ipv6_off: Option<bool>,
    merging: Merging,
    /// Maximum GRO frame length in bytes; `None` (not to be changed) if the interface is no virtual Ethernet interface.
    gro_max_size: Option<u32>,
}

impl Before {
    /// Reads the state of two interfaces between which weir is to be put, and changes nothing. While the returned marks exist,
    /// no other weir takes the interfaces.
    pub fn read_pair(
        netlink: &Netlink,
        interfaces: [&str; 2],
    ) -> Result<([Before; 2], [Mark; 2]), EdgeError> {
        let [a, b] = interfaces;
        if a == b {
            return Err(EdgeError::Same(a.to_owned()));
        }
        let mark = |name| Mark::set(name, netlink.find(name)?.index);
        let marks = [mark(a)?, mark(b)?];
        let (one, other) = (Before::read(netlink, a)?, Before::read(netlink, b)?);
        if one.mtu != other.mtu {
            return Err(EdgeError::Mtus(
                a.to_owned(),
                b.to_owned(),
                one.mtu,
                other.mtu,
            ));
        }
        Ok(([one, other], marks))
    }

    fn read(netlink: &Netlink, name: &str) -> Result<Before, EdgeError> {
        let found = netlink.find(name)?;
        let interface = name.to_owned();
        if found.loopback {
            return Err(EdgeError::Loopback { interface });
        }
        if found.master.is_some() {
            return Err(EdgeError::Master { interface });
        }
        Before::from_found(netlink, name, &found)
    }

    /// Makes an interface's state from `found`, without regard to its bridge; refuses an interface that cannot be taken.
    pub(super) fn from_found(
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
        match netlink.lasting(name, found)? {
            Some(Lasting::Address(address)) => {
                return Err(EdgeError::Address { interface, address });
            }
            Some(what) => return Err(EdgeError::Lasting { interface, what }),
            None => {}
        }
        Ok(Before {
            index: found.index,
            up: found.up,
            arp: found.arp,
            mtu: found.mtu,
            ipv6_off: netlink.ipv6_is_off(name)?,
            merging: netlink.merging(name)?,
            gro_max_size: found.gro_max_size.filter(|_| found.is_veth),
            interface,
        })
    }

    /// Name that the interface had.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Makes the interface an end of a wire through weir: this machine sends no own frames there, and no frames are merged.
    pub fn take(&self, netlink: &Netlink) -> Result<(), EdgeError> {
        let name = &self.interface;
        let refused = EdgeError::of_change;
        // The kernel would answer ARP for any address of this machine, even on an interface without addresses.
        netlink.set_arp(name, false).map_err(refused)?;
        if self.ipv6_off == Some(false) {
            netlink.set_ipv6_off(name, true).map_err(refused)?;
        }
        netlink
            .set_merging(name, self.merging, true)
            .map_err(refused)?;
        if self.gro_max_size.is_some() {
            // Both listeners have to get the frames in the same order.
            netlink.one_order(name).map_err(refused)?;
        }
        netlink.set_up(name, true).map_err(refused)
    }

    /// Restores the interface as far as possible and returns the failures. An interface that no longer exists is no failure.
    pub fn give_back(&self, netlink: &Netlink) -> Vec<NetError> {
        let name = match netlink.name_of(self.index) {
            Ok(Some(name)) => name,
            Ok(None) => return Vec::new(),
            Err(error) => return vec![error],
        };
        let failed = self.give_back_as(netlink, &name);
        let is_gone = !failed.is_empty() && matches!(netlink.name_of(self.index), Ok(None));
        if is_gone { Vec::new() } else { failed }
    }

    fn give_back_as(&self, netlink: &Netlink, name: &str) -> Vec<NetError> {
        let mut tried = Vec::new();
        if let Some(size) = self.gro_max_size {
            tried.push(netlink.set_gro_max_size(name, size));
        }
        tried.push(netlink.set_merging(name, self.merging, false));
        tried.push(netlink.set_arp(name, self.arp));
        // Enabling IPv6 restores the link-local address.
        if self.ipv6_off == Some(false) {
            tried.push(netlink.set_ipv6_off(name, false));
        }
        tried.push(netlink.set_up(name, self.up));
        tried.into_iter().filter_map(Result::err).collect()
    }
}
