//! How an interface was before it was taken.

use serde::{Deserialize, Serialize};

use super::{EdgeError, Mark};
use crate::net::{Found, Lasting, Merging, NetError, Netlink};

/// The longest payload that the switch takes.
const MTU_LIMIT: u32 = 9216;

/// How an interface was before it was taken, as far as taking it changes it. Promiscuous mode is not here: it belongs to the
/// switch's socket, and goes with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    interface: String,
    /// What it is known by when it is put back: another may have its name by then, or it another name.
    index: u32,
    up: bool,
    arp: bool,
    mtu: u32,
    ipv6_off: Option<bool>,
    merging: Merging,
    /// Where it is to be changed: of a virtual Ethernet interface.
    gro_max_size: Option<u32>,
}

impl Before {
    /// Looks at two interfaces that are to be the ends of a wire, and changes nothing; nobody else takes them while their marks
    /// are there.
    pub fn of_pair(
        netlink: &Netlink,
        interfaces: [&str; 2],
    ) -> Result<([Before; 2], [Mark; 2]), EdgeError> {
        let [a, b] = interfaces;
        if a == b {
            return Err(EdgeError::Same(a.to_owned()));
        }
        let mark = |name| Mark::set(name, netlink.find(name)?.index);
        let marks = [mark(a)?, mark(b)?];
        let (one, other) = (Before::of(netlink, a)?, Before::of(netlink, b)?);
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

    /// Puts it back; what fails does not keep the rest from being tried. Where it is gone there is nothing to put back.
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
        // Its own address comes with it again.
        if self.ipv6_off == Some(false) {
            tried.push(netlink.set_ipv6_off(name, false));
        }
        tried.push(netlink.set_up(name, self.up));
        tried.into_iter().filter_map(Result::err).collect()
    }
}
