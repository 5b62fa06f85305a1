//! Reads the state of existing interfaces, and changes and restores the parts of it that taking an interface changes.

use std::fs;
use std::io;

use futures::TryStreamExt;
use rtnetlink::LinkUnspec;
use rtnetlink::packet_route::link::{InfoKind, LinkAttribute, LinkFlags, LinkInfo, LinkMessage};

use super::{Merging, NetError, Netlink, Sending, failure};

/// State of an existing network interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Whether the interface is configured as up.
    pub up: bool,
    /// Whether the interface has a carrier; always false while it is down.
    pub carrier: bool,
    /// Whether ARP is enabled on the interface.
    pub arp: bool,
    /// Size of the largest packet in bytes, without the Ethernet header.
    pub mtu: u32,
    /// Whether the interface is the loopback interface.
    pub loopback: bool,
    /// Hardware address of the interface.
    pub address: Vec<u8>,
    /// Index of the interface in its namespace.
    pub index: u32,
    /// Index of the bridge, bond or other interface that the interface belongs to; `None`: it belongs to none.
    pub master: Option<u32>,
    /// Whether the interface is a bridge.
    pub is_bridge: bool,
    /// Index of the other end if the interface is a virtual Ethernet, in that end's namespace; else `None`.
    pub peer: Option<u32>,
    /// Whether the other end of the virtual Ethernet pair is in another namespace.
    pub peer_is_elsewhere: bool,
    /// Whether the interface is one end of a virtual Ethernet pair.
    pub is_veth: bool,
    /// Maximum length of the frames into which the kernel merges received frames (GRO), in bytes; `None`: not reported.
    pub gro_max_size: Option<u32>,
}

impl Found {
    fn new(link: LinkMessage) -> Found {
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
    /// Reads the state of an interface.
    pub fn find(&self, name: &str) -> Result<Found, NetError> {
        Ok(Found::new(self.link(name)?))
    }

    /// Name and state of the interface with this index; `None` if it does not exist in the namespace.
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
            Ok(link) => Ok(link.and_then(|link| Some((name_in(&link)?, Found::new(link))))),
            Err(NetError::Interface { source, .. })
                if source.raw_os_error() == Some(libc::ENODEV) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// The name of the interface with this index; `None` if it does not exist in the namespace.
    pub fn name_of(&self, index: u32) -> Result<Option<String>, NetError> {
        Ok(self.find_index(index)?.map(|(name, _)| name))
    }

    /// Adds an interface to a bridge; `None` removes it from its bridge.
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

    /// Sets the MTU of an interface, in bytes.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<(), NetError> {
        let message = LinkUnspec::new_with_index(self.index(name)?)
            .mtu(mtu)
            .build();
        self.request("cannot set the MTU of", name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// Brings an interface up if `up` is true, else takes it down.
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

    /// Enables or disables ARP on an interface.
    pub fn set_arp(&self, name: &str, arp: bool) -> Result<(), NetError> {
        let message = LinkUnspec::new_with_index(self.index(name)?)
            .arp(arp)
            .build();
        self.request("cannot set ARP of", name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// Sets the maximum length of the frames into which the kernel merges received frames (GRO), in bytes.
    pub fn set_gro_max_size(&self, name: &str, size: u32) -> Result<(), NetError> {
        let message = LinkUnspec::new_with_index(self.index(name)?)
            .append_extra_attribute(LinkAttribute::GroMaxSize(size))
            .build();
        self.request("cannot configure", name, |handle| async move {
            handle.link().set(message).execute().await
        })
    }

    /// Reads the states of the offloads that merge received frames.
    pub fn merging(&self, name: &str) -> Result<Merging, NetError> {
        let asked = self.namespace.run(|| Merging::read(name));
        asked.map_err(|source| failure("cannot ask the offloads of", name, source))
    }

    /// Sets the states of the offloads that merge received frames; with `off`, switches all of them off.
    pub fn set_merging(&self, name: &str, merging: Merging, off: bool) -> Result<(), NetError> {
        let wanted = if off { merging.off() } else { merging };
        let set = self.namespace.run(|| wanted.set(name));
        set.map_err(|source| failure("cannot set the offloads of", name, source))
    }

    /// Reads the states of the offloads that leave sent frames unfinished.
    pub fn sending(&self, name: &str) -> Result<Sending, NetError> {
        let asked = self.namespace.run(|| Sending::read(name));
        asked.map_err(|source| failure("cannot ask the offloads of", name, source))
    }

    /// Sets the states of the offloads that leave sent frames unfinished; `None` switches all of them off.
    pub fn set_sending(&self, name: &str, sending: Option<Sending>) -> Result<(), NetError> {
        let set = self.namespace.run(|| match sending {
            Some(sending) => sending.set(name),
            None => Sending::finish_frames(name),
        });
        set.map_err(|source| failure("cannot set the offloads of", name, source))
    }

    /// Whether IPv6 is off on an interface; `None` on a kernel without IPv6.
    pub fn ipv6_is_off(&self, name: &str) -> Result<Option<bool>, NetError> {
        match self.namespace.run(|| fs::read_to_string(ipv6_switch(name))) {
            Ok(text) => Ok(Some(text.trim() != "0")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(failure("cannot ask whether IPv6 is on at", name, source)),
        }
    }

    /// Switches IPv6 off or on for an interface.
    pub fn set_ipv6_off(&self, name: &str, off: bool) -> Result<(), NetError> {
        let value = if off { "1" } else { "0" };
        let set = self.namespace.run(|| fs::write(ipv6_switch(name), value));
        set.map_err(|source| failure("cannot switch IPv6 at", name, source))
    }
}

/// Name of the interface in a link message.
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
