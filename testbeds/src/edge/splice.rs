//! Puts a wire, through weir, between an existing host and its bridge.
//!
//! ```text
//! before   host eth0 ══ outer ── bridge
//! during   host eth0 ══ outer ── weir ── near ══ far ── bridge
//! ```
//!
//! The host is not changed: its interface, addresses and routes stay as they are.

use std::io;
use std::path::PathBuf;

use scenario::model::topology::HostAt;
use serde::{Deserialize, Serialize};

use super::{Before, EdgeError, Mark};
use crate::host::Namespace;
use crate::net::{BridgePort, NetError, Netlink, Sending};

/// An existing host's connection to its bridge, and the virtual Ethernet pair that weir puts in between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Splice {
    /// Name of the other end of the host's interface, which is a port of the bridge.
    outer: String,
    /// Name of the bridge that `outer` belongs to.
    bridge: String,
    /// Settings of `outer` as a port of the bridge.
    port: BridgePort,
    /// Names of our veth pair: `near` is the end of the wire, `far` replaces `outer` in the bridge.
    near: String,
    far: String,
    /// Hardware address of `outer`, which `far` gets too. A bridge without an own address takes the lowest one of its ports.
    /// With another address of `far`, the bridge's address might change, and hosts that know the old one would lose it.
    address: Vec<u8>,
    mtu: u32,
    /// Path of the host's network namespace; `link`: the host's interface; `sending`: that interface's offloads for sending.
    host: PathBuf,
    link: String,
    sending: Sending,
}

/// Maximum number of static forwarding entries of the port: more than one host has.
const ENTRY_LIMIT: usize = 4096;

const OUTER: &str = "the other end of a virtual Ethernet interface, in a bridge of this namespace";

impl Splice {
    /// Finds a host and its connection to a bridge; changes nothing. While the mark exists, no other weir takes the interface.
    pub fn find(netlink: &Netlink, host: &HostAt) -> Result<(Splice, Before, Mark), EdgeError> {
        let path = PathBuf::from(host.namespace.path());
        let no_host = |source: io::Error| EdgeError::NoHost {
            path: path.clone(),
            source,
        };
        let namespace = Namespace::open(&path).map_err(no_host)?;
        let inside = Netlink::open_in(&namespace)?;
        let link = match &host.link {
            Some(link) => link.clone(),
            None => only_link(&inside, &path)?,
        };
        let not_so = |why: &str| EdgeError::NotConnected {
            path: path.clone(),
            link: link.clone(),
            why: format!("{why} ({OUTER} is what it takes)"),
        };
        let own = inside.find(&link)?;
        if !own.is_veth || !own.peer_is_elsewhere {
            return Err(not_so("it is no virtual Ethernet to another namespace"));
        }
        let Some(outer) = own
            .peer
            .map(|peer| netlink.name_of(peer))
            .transpose()?
            .flatten()
        else {
            return Err(not_so("its other end is not in this namespace"));
        };
        let mark = Mark::set(&outer, netlink.find(&outer)?.index)?;
        let found = netlink.find(&outer)?;
        // An index is valid in one namespace only: an index from a third one would name another interface here.
        if !found.is_veth || found.peer != Some(own.index) || !found.peer_is_elsewhere {
            return Err(not_so("its other end is not in this namespace"));
        }
        let bridge = found.master.map(|master| netlink.name_of(master));
        let Some(bridge) = bridge.transpose()?.flatten() else {
            return Err(not_so(&format!("its other end, {outer}, is in no bridge")));
        };
        if !netlink.find(&bridge)?.is_bridge {
            let why = format!("its other end, {outer}, belongs to {bridge}, which is no bridge");
            return Err(not_so(&why));
        }
        let port = netlink.bridge_port(&outer)?;
        let why = match netlink.why_port_is_unique(&outer, &bridge)? {
            None if port.entries() > ENTRY_LIMIT => Some(format!(
                "its bridge was told more than {ENTRY_LIMIT} addresses behind it"
            )),
            why => why,
        };
        if let Some(why) = why {
            return Err(EdgeError::Port {
                interface: outer,
                bridge,
                why,
            });
        }
        let before = Before::from_found(netlink, &outer, &found)?;
        let process = std::process::id();
        let splice = Splice {
            outer,
            bridge,
            port,
            near: format!("weir{process}n"),
            far: format!("weir{process}f"),
            address: found.address.clone(),
            mtu: found.mtu,
            host: path,
            sending: inside.sending(&link)?,
            link,
        };
        Ok((splice, before, mark))
    }

    /// Names of the two interfaces between which weir is: the one towards the host, and the one towards its bridge.
    pub fn ends(&self) -> [&str; 2] {
        [&self.outer, &self.near]
    }

    /// Takes the host off its bridge, and adds the far end of our veth pair to the bridge instead.
    pub fn take(&self, netlink: &Netlink) -> Result<(Before, Mark), EdgeError> {
        let refused = EdgeError::of_change;
        netlink
            .create_veth(&self.near, &self.far)
            .map_err(refused)?;
        for end in [&self.near, &self.far] {
            netlink.set_mtu(end, self.mtu).map_err(refused)?;
        }
        // The host's kernel has to finish the frames that it sends, and this kernel those that come from the bridge.
        self.inside()?
            .set_sending(&self.link, None)
            .map_err(refused)?;
        netlink.set_sending(&self.far, None).map_err(refused)?;
        netlink
            .set_ipv6_off(&self.far, true)
            .or_else(without_ipv6)?;
        netlink
            .set_address(&self.far, &self.address)
            .map_err(refused)?;
        // Nothing passes between the two yet: no loop.
        netlink
            .set_bridge(&self.far, Some(&self.bridge))
            .map_err(refused)?;
        netlink.set_bridge(&self.outer, None).map_err(refused)?;
        // The port is still down: no frame passes it before it is isolated.
        let set = netlink.set_bridge_port(&self.far, &self.port);
        set.into_iter()
            .next()
            .map_or(Ok(()), Err)
            .map_err(refused)?;
        netlink.set_up(&self.far, true).map_err(refused)?;
        let found = netlink.find(&self.near)?;
        let mark = Mark::set(&self.near, found.index)?;
        Ok((Before::from_found(netlink, &self.near, &found)?, mark))
    }

    /// Opens a netlink connection in the host's network namespace.
    pub fn inside(&self) -> Result<Netlink, EdgeError> {
        let namespace = Namespace::open(&self.host).map_err(|source| EdgeError::NoHost {
            path: self.host.clone(),
            source,
        })?;
        Ok(Netlink::open_in(&namespace)?)
    }

    /// Returns the host to its bridge as far as possible, and returns the failures. `inside` was opened before the run:
    /// the process that named the host's namespace may have ended.
    pub fn give_back(&self, netlink: &Netlink, inside: &Netlink) -> Vec<NetError> {
        let mut failed = Vec::new();
        if inside.find(&self.link).is_ok() {
            failed.extend(inside.set_sending(&self.link, Some(self.sending)).err());
        }
        // If the host has ended meanwhile, both ends of its veth pair are removed.
        if netlink.find(&self.outer).is_ok() {
            failed.extend(netlink.set_bridge(&self.outer, Some(&self.bridge)).err());
            failed.extend(netlink.set_bridge_port(&self.outer, &self.port));
        }
        // The pair may not have been created, or was removed with the host.
        if netlink.find(&self.near).is_ok() {
            failed.extend(netlink.remove(&self.near).err());
        }
        failed
    }
}

/// Ignores the error that a kernel without IPv6 gives when IPv6 is to be disabled.
fn without_ipv6(error: NetError) -> Result<(), NetError> {
    match error {
        NetError::Interface { ref source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Ok(())
        }
        error => Err(error),
    }
}

fn only_link(inside: &Netlink, path: &std::path::Path) -> Result<String, EdgeError> {
    let mut links = Vec::new();
    for name in inside.interfaces()? {
        let found = inside.find(&name)?;
        if !found.loopback && found.is_veth {
            links.push(name);
        }
    }
    match <[String; 1]>::try_from(links) {
        Ok([link]) => Ok(link),
        Err(links) => Err(EdgeError::WhichLink {
            path: path.to_owned(),
            links,
        }),
    }
}
