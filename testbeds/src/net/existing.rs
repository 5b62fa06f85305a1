//! Interfaces that somebody else has made: how they are, and what of it can be changed and put back.

use std::fs;
use std::io;

use futures::TryStreamExt;
use rtnetlink::LinkUnspec;
use rtnetlink::packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};

use super::{Merging, NetError, Netlink, Sending, failure};

/// An interface, as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whether it is to be up.
    pub up: bool,
    /// Whether it has a carrier; never while it is down.
    pub carrier: bool,
    /// Whether ARP runs.
    pub arp: bool,
    /// The largest packet, without the Ethernet header.
    pub mtu: u32,
    /// Whether it is the loopback interface.
    pub loopback: bool,
    /// Its hardware address.
    pub address: Vec<u8>,
    /// Its index in its namespace.
    pub index: u32,
    /// The index of the bridge, bond or other interface that it belongs to.
    pub master: Option<u32>,
    /// Whether it is a bridge.
    pub is_bridge: bool,
    /// Of a virtual Ethernet pair: the index of the other end, in the namespace where that is.
    pub peer: Option<u32>,
    /// Whether the other end is in another namespace.
    pub peer_is_elsewhere: bool,
    /// Whether it is one end of a virtual Ethernet pair.
    pub is_veth: bool,
    /// The longest frame that the kernel merges others into.
    pub gro_max_size: Option<u32>,
}

impl Found {
    fn of(link: LinkMessage) -> Found {
        let flags = link.header.flags;
        let has = |flag| flags.contains(flag);
        let mut found = Found {
            up: has(LinkFlags::Up),
            carrier: has(LinkFlags::Up) && has(LinkFlags::LowerUp),
            arp: !has(LinkFlags::Noarp),
            mtu: 0,
            loopback: has(LinkFlags::Loopback),
            address: Vec::new(),
            index: link.header.index,
            master: None,
            is_bridge: false,
            peer: None,
            peer_is_elsewhere: false,
            is_veth: false,
            gro_max_size: None,
        };
        for attribute in link.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => found.mtu = mtu,
                LinkAttribute::Address(address) => found.address = address,
                LinkAttribute::Controller(index) => found.master = (index != 0).then_some(index),
                LinkAttribute::Link(index) => found.peer = Some(index),
                LinkAttribute::LinkNetNsId(_) => found.peer_is_elsewhere = true,
                LinkAttribute::GroMaxSize(size) => found.gro_max_size = Some(size),
                LinkAttribute::LinkInfo(infos) => {
                    found.is_veth = infos.contains(&LinkInfo::Kind(InfoKind::Veth));
                    found.is_bridge = infos.contains(&LinkInfo::Kind(InfoKind::Bridge));
                }
                _ => {}
            }
        }
        found
    }
}

impl Netlink {
    /// How an interface is.
    pub fn find(&self, name: &str) -> Result<Found, NetError> {
        Ok(Found::of(self.link(name)?))
    }

    /// The interface with an index, with its name; `None` if there is none any more.
    pub fn find_index(&self, index: u32) -> Result<Option<(String, Found)>, NetError> {
        let link = self.request(
            "cannot find",
            &format!("interface {index}"),
            |handle| async move {
                let links = handle.link().get().match_index(index).execute();
                std::pin::pin!(links).try_next().await
            },
        );
        match link {
            Ok(link) => Ok(link.and_then(|link| Some((name_in(&link)?, Found::of(link))))),
            Err(NetError::Interface { source, .. })
                if source.raw_os_error() == Some(libc::ENODEV) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The name of the interface with an index; `None` if there is none.
    pub fn name_of(&self, index: u32) -> Result<Option<String>, NetError> {
        Ok(self.find_index(index)?.map(|(name, _)| name))
    }

    /// Puts an interface into a bridge, or takes it out of the one that it is in.
    pub fn set_bridge(&self, name: &str, bridge: Option<&str>) -> Result<(), NetError> {
        let link = LinkUnspec::new_with_index(self.index(name)?);
        let (what, link) = match bridge {
            Some(bridge) => (
                "cannot put into its bridge",
                link.controller(self.index(bridge)?),
            ),
            None => ("cannot take out of its bridge", link.nocontroller()),
        };
        let message = link.build();
        self.request(what, name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// Sets the hardware address of an interface.
    pub fn set_address(&self, name: &str, address: &[u8]) -> Result<(), NetError> {
        let message = LinkUnspec::new_with_index(self.index(name)?)
            .address(address.to_vec())
            .build();
        self.request("cannot set the address of", name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// Sets the largest packet of an interface.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<(), NetError> {
        let message = LinkUnspec::new_with_index(self.index(name)?)
            .mtu(mtu)
            .build();
        self.request("cannot set the MTU of", name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// Brings an interface up, or takes it down.
    pub fn set_up(&self, name: &str, up: bool) -> Result<(), NetError> {
        let link = LinkUnspec::new_with_index(self.index(name)?);
        let (what, link) = match up {
            true => ("cannot bring up", link.up()),
            false => ("cannot take down", link.down()),
        };
        let message = link.build();
        self.request(what, name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// Has the kernel answer ARP there, or not.
    pub fn set_arp(&self, name: &str, arp: bool) -> Result<(), NetError> {
        let message = LinkUnspec::new_with_index(self.index(name)?)
            .arp(arp)
            .build();
        self.request("cannot set ARP of", name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// How long a frame may become that others are merged into.
    pub fn set_gro_max_size(&self, name: &str, size: u32) -> Result<(), NetError> {
        let message = LinkUnspec::new_with_index(self.index(name)?)
            .append_extra_attribute(LinkAttribute::GroMaxSize(size))
            .build();
        self.request("cannot configure", name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// What merges frames on their way in.
    pub fn merging(&self, name: &str) -> Result<Merging, NetError> {
        let asked = self.namespace.run(|| Merging::of(name));
        asked.map_err(|source| failure("cannot ask the offloads of", name, source))
    }

    /// Sets what merges frames on their way in; nothing does if `off`.
    pub fn set_merging(&self, name: &str, merging: Merging, off: bool) -> Result<(), NetError> {
        let wanted = if off { merging.off() } else { merging };
        let set = self.namespace.run(|| wanted.set(name));
        set.map_err(|source| failure("cannot set the offloads of", name, source))
    }

    /// What leaves frames unfinished on their way out.
    pub fn sending(&self, name: &str) -> Result<Sending, NetError> {
        let asked = self.namespace.run(|| Sending::of(name));
        asked.map_err(|source| failure("cannot ask the offloads of", name, source))
    }

    /// Sets what leaves frames unfinished; nothing does if there is nothing to set.
    pub fn set_sending(&self, name: &str, sending: Option<Sending>) -> Result<(), NetError> {
        let set = self.namespace.run(|| match sending {
            Some(sending) => sending.set(name),
            None => Sending::finish_frames(name),
        });
        set.map_err(|source| failure("cannot set the offloads of", name, source))
    }

    /// Whether IPv6 is off there; `None` where the kernel has none.
    pub fn ipv6_is_off(&self, name: &str) -> Result<Option<bool>, NetError> {
        match self.namespace.run(|| fs::read_to_string(ipv6_switch(name))) {
            Ok(text) => Ok(Some(text.trim() != "0")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(failure("cannot ask whether IPv6 is on at", name, source)),
        }
    }

    /// Switches IPv6 off there, or on.
    pub fn set_ipv6_off(&self, name: &str, off: bool) -> Result<(), NetError> {
        let value = if off { "1" } else { "0" };
        let set = self.namespace.run(|| fs::write(ipv6_switch(name), value));
        set.map_err(|source| failure("cannot switch IPv6 at", name, source))
    }
}

/// The name that a message about an interface says.
pub(super) fn name_in(link: &LinkMessage) -> Option<String> {
    link.attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name.clone()),
            _ => None,
        })
}

fn ipv6_switch(name: &str) -> String {
    format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6")
}
