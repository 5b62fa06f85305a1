//! A port of a Linux bridge: settings and forwarding entries, which are lost when the port leaves the bridge.

use std::collections::BTreeSet;

use futures::TryStreamExt;
use rtnetlink::LinkBridgePort;
use rtnetlink::packet_core::{DefaultNla, NLM_F_ACK, NLM_F_REQUEST, NetlinkMessage, Nla};
use rtnetlink::packet_route::link::{
    AfSpecBridge, BridgePortState, BridgeStpState, BridgeVlanInfoFlags, InfoBridge, InfoBridgePort,
    InfoData, InfoPortData, LinkAttribute, LinkExtentMask, LinkFlags, LinkInfo, LinkMessage,
};
use rtnetlink::packet_route::neighbour::{
    NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use rtnetlink::packet_route::{AddressFamily, RouteNetlinkMessage};
use serde::{Deserialize, Serialize};

use super::{NetError, Netlink, acknowledged};

/// Settings of a port of a Linux bridge that can be applied to another port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BridgePort {
    /// Each setting as number (`IFLA_BRPORT_…`) and value in the kernel's format; settings that isolate frames come first.
    settings: Vec<(u16, Vec<u8>)>,
    /// Static forwarding entries of the bridge for this port.
    entries: BTreeSet<Entry>,
}

/// A forwarding entry of a bridge that is not learned, and does not age.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Entry {
    address: Vec<u8>,
    vlan: Option<u16>,
    /// State of the forwarding entry (`NUD_…`).
    state: u16,
    /// Flags of the forwarding entry (`NTF_…`).
    flags: u8,
}

/// A VLAN of a bridge's port: its id and flags (`BRIDGE_VLAN_INFO_…`).
type Vlan = (u16, u16);

impl BridgePort {
    /// Number of static forwarding entries.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }
}

impl Netlink {
    /// Reads the settings of the interface `name` as a port of its bridge.
    pub fn bridge_port(&self, name: &str) -> Result<BridgePort, NetError> {
        let link = self.link(name)?;
        Ok(BridgePort {
            settings: settings(&link),
            entries: self.entries_behind(&link, name)?,
        })
    }

    /// Applies settings, read from another port, to the port `name` as far as possible; returns the failures.
    pub fn set_bridge_port(&self, name: &str, wanted: &BridgePort) -> Vec<NetError> {
        let link = match self.link(name) {
            Ok(link) => link,
            Err(error) => return vec![error],
        };
        let index = link.header.index;
        let mut failed = Vec::new();
        // A path cost that was set no longer follows the link, so settings that are right already are left alone.
        let present = settings(&link);
        for setting in &wanted.settings {
            if !present.contains(setting) {
                failed.extend(self.set_at_port(name, index, setting).err());
            }
        }
        for entry in &wanted.entries {
            failed.extend(self.add_entry(name, index, entry).err());
        }
        // An entry without a VLAN also creates one in each VLAN.
        match self.entries_behind(&link, name) {
            Ok(present) => {
                for entry in present.difference(&wanted.entries) {
                    failed.extend(self.remove_entry(name, index, entry).err());
                }
            }
            Err(error) => failed.push(error),
        }
        failed
    }

    /// The reason why the port `name` cannot be recreated with the same settings; `None`: it can.
    pub fn why_port_is_unique(&self, name: &str, bridge: &str) -> Result<Option<String>, NetError> {
        let (port, of) = (self.link(name)?, self.link(bridge)?);
        let state = attributes(&port).find_map(|attribute| match attribute {
            InfoBridgePort::State(state) => Some(*state),
            _ => None,
        });
        let protocol = bridge_info(&of).find_map(|info| match info {
            InfoBridge::StpState(state) => Some(*state),
            _ => None,
        });
        // Without a protocol a port forwards as long as it has a carrier.
        let carrier = port
            .header
            .flags
            .contains(LinkFlags::Up | LinkFlags::LowerUp);
        if protocol == Some(BridgeStpState::Disabled)
            && let Some(state) = state
            && state != BridgePortState::Forwarding
            && (carrier || state != BridgePortState::Disabled)
        {
            return Ok(Some(format!("its state was set by hand: {state}")));
        }
        let default = bridge_info(&of).find_map(|info| match info {
            InfoBridge::VlanDefaultPvid(vlan) => Some(*vlan),
            _ => None,
        });
        let vlans = self.vlans(&port, name)?;
        if !is_default(&vlans, default.unwrap_or(0)) {
            return Ok(Some(format!("it has VLANs of its own: {}", shown(&vlans))));
        }
        for other in self.links()? {
            let stands_in = |attribute: &InfoBridgePort| matches!(attribute, InfoBridgePort::BackupPort(of) if *of == port.header.index);
            if attributes(&other).any(stands_in) {
                let other = super::existing::name_in(&other).unwrap_or_default();
                return Ok(Some(format!("it is the backup port of {other}")));
            }
        }
        Ok(None)
    }

    fn set_at_port(
        &self,
        name: &str,
        index: u32,
        (kind, value): &(u16, Vec<u8>),
    ) -> Result<(), NetError> {
        let attribute = InfoBridgePort::Other(DefaultNla::new(*kind, value.clone()));
        let message = LinkBridgePort::new(index)
            .append_info_data(attribute)
            .build();
        // The kernel applies attributes of the port's kind in this message only, not in RTM_SETLINK.
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::NewLink(message));
        request.header.flags = NLM_F_REQUEST | NLM_F_ACK;
        self.request("cannot set the bridge port", name, |handle| {
            acknowledged(handle, request)
        })
    }

    fn add_entry(&self, name: &str, index: u32, entry: &Entry) -> Result<(), NetError> {
        let message = entry.message(index);
        self.request(
            "cannot tell the bridge what is behind",
            name,
            |handle| async move {
                let mut request = handle.neighbours().add_bridge(index, &[]).replace();
                *request.message_mut() = message;
                request.execute().await
            },
        )
    }

    fn remove_entry(&self, name: &str, index: u32, entry: &Entry) -> Result<(), NetError> {
        let message = entry.message(index);
        self.request(
            "cannot tell the bridge what is behind",
            name,
            |handle| async move { handle.neighbours().del(message).execute().await },
        )
    }

    fn entries_behind(&self, port: &LinkMessage, name: &str) -> Result<BTreeSet<Entry>, NetError> {
        let own = port
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Address(address) => Some(address.as_slice()),
                _ => None,
            });
        let own = own.unwrap_or_default();
        let index = port.header.index;
        self.request("cannot ask what is behind", name, |handle| async move {
            let request = handle
                .neighbours()
                .get()
                .set_address_family(AddressFamily::Bridge);
            let messages = std::pin::pin!(request.execute());
            let entries = messages.try_filter_map(|message| async move {
                let is_here = message.header.ifindex == index;
                Ok(is_here.then(|| Entry::lasting(&message, own)).flatten())
            });
            entries.try_collect().await
        })
    }

    /// VLANs of a bridge's port; empty on a kernel without VLAN filtering.
    fn vlans(&self, port: &LinkMessage, name: &str) -> Result<BTreeSet<Vlan>, NetError> {
        let index = port.header.index;
        let messages: Vec<LinkMessage> =
            self.request("cannot ask the VLANs of", name, |handle| async move {
                let mask = vec![LinkExtentMask::Brvlan];
                let request = handle
                    .link()
                    .get()
                    .set_filter_mask(AddressFamily::Bridge, mask);
                request.execute().try_collect().await
            })?;
        let mut vlans = BTreeSet::new();
        for message in messages
            .iter()
            .filter(|message| message.header.index == index)
        {
            for attribute in &message.attributes {
                if let LinkAttribute::AfSpecBridge(specs) = attribute {
                    vlans.extend(specs.iter().filter_map(|spec| match spec {
                        AfSpecBridge::VlanInfo(vlan) => Some((vlan.vid, vlan.flags.bits())),
                        _ => None,
                    }));
                }
            }
        }
        Ok(vlans)
    }
}

impl Entry {
    /// The forwarding entry in a message, if it goes with the port and no program makes it again. `own` is the port's address.
    fn lasting(message: &NeighbourMessage, own: &[u8]) -> Option<Entry> {
        let (mut address, mut vlan, mut is_bridges) = (None, None, false);
        for attribute in &message.attributes {
            match attribute {
                NeighbourAttribute::LinkLayerAddress(bytes) => address = Some(bytes.clone()),
                NeighbourAttribute::Vlan(id) => vlan = Some(*id),
                // Other entries belong to the interface itself, and stay with it.
                NeighbourAttribute::Controller(_) => is_bridges = true,
                _ => {}
            }
        }
        let address = address.filter(|_| is_bridges)?;
        let kept = NeighbourFlags::ExtLearned | NeighbourFlags::Sticky;
        let flags = message.header.flags & kept;
        let state = match message.header.state {
            state @ NeighbourState::Noarp => state,
            state @ NeighbourState::Permanent if address != own => state,
            // An external daemon has learned this entry and removes it: it does not age.
            _ if flags.contains(NeighbourFlags::ExtLearned) => NeighbourState::Reachable,
            _ => return None,
        };
        Some(Entry {
            address,
            vlan,
            state: state.into(),
            flags: flags.bits(),
        })
    }

    fn message(&self, index: u32) -> NeighbourMessage {
        let mut message = NeighbourMessage::default();
        message.header.family = AddressFamily::Bridge;
        message.header.ifindex = index;
        message.header.state = self.state.into();
        message.header.flags =
            NeighbourFlags::Controller | NeighbourFlags::from_bits_retain(self.flags);
        let address = NeighbourAttribute::LinkLayerAddress(self.address.clone());
        message.attributes.push(address);
        message
            .attributes
            .extend(self.vlan.map(NeighbourAttribute::Vlan));
        message
    }
}

/// Settings of a bridge's port that can be changed; the bridge's spanning tree protocol determines the others.
fn settings(port: &LinkMessage) -> Vec<(u16, Vec<u8>)> {
    let settable = attributes(port).filter(|attribute| is_settable(attribute));
    let mut settings: Vec<_> = settable
        .map(|attribute| {
            let mut value = vec![0; attribute.value_len()];
            attribute.emit_value(&mut value);
            (attribute.kind(), value)
        })
        .collect();
    let isolated = InfoBridgePort::Isolated(true).kind();
    settings.sort_by_key(|(kind, _)| (*kind != isolated, *kind));
    settings
}

fn is_settable(attribute: &InfoBridgePort) -> bool {
    use InfoBridgePort::{
        BackupNextHopId, BackupPort, BroadcastFlood, Cost, FastLeave, GroupFwdMask, Guard,
        HairpinMode, Isolated, Learning, Locked, Mab, MulticastEhtHostsLimit, MulticastFlood,
        MulticastMaxGroups, MulticastRouter, MulticastToUnicast, NeighForwardGrat, NeighSupress,
        NeighVlanSuppress, Priority, Protect, ProxyARP, ProxyARPWifi, UnicastFlood, VlanTunnel,
    };
    matches!(
        attribute,
        Priority(_)
            | Cost(_)
            | HairpinMode(_)
            | Guard(_)
            | Protect(_)
            | FastLeave(_)
            | Learning(_)
            | UnicastFlood(_)
            | ProxyARP(_)
            | ProxyARPWifi(_)
            | MulticastRouter(_)
            | MulticastFlood(_)
            | MulticastToUnicast(_)
            | VlanTunnel(_)
            | BroadcastFlood(_)
            | GroupFwdMask(_)
            | NeighSupress(_)
            | Isolated(_)
            | BackupPort(_)
            | MulticastEhtHostsLimit(_)
            | Locked(_)
            | Mab(_)
            | MulticastMaxGroups(_)
            | NeighVlanSuppress(_)
            | BackupNextHopId(_)
            | NeighForwardGrat(_)
    )
}

fn infos(link: &LinkMessage) -> impl Iterator<Item = &LinkInfo> {
    link.attributes
        .iter()
        .flat_map(|attribute| match attribute {
            LinkAttribute::LinkInfo(infos) => infos.as_slice(),
            _ => &[],
        })
}

fn attributes(port: &LinkMessage) -> impl Iterator<Item = &InfoBridgePort> {
    infos(port).flat_map(|info| match info {
        LinkInfo::PortData(InfoPortData::BridgePort(attributes)) => attributes.as_slice(),
        _ => &[],
    })
}

fn bridge_info(bridge: &LinkMessage) -> impl Iterator<Item = &InfoBridge> {
    infos(bridge).flat_map(|info| match info {
        LinkInfo::Data(InfoData::Bridge(infos)) => infos.as_slice(),
        _ => &[],
    })
}

/// Whether a port gets exactly these VLANs when it joins a bridge: only the default VLAN, or none if there is no default.
fn is_default(vlans: &BTreeSet<Vlan>, default: u16) -> bool {
    let flags = BridgeVlanInfoFlags::Pvid | BridgeVlanInfoFlags::Untagged;
    let new = (default != 0).then(|| (default, flags.bits()));
    // A kernel without VLAN filtering reports none, whatever the default.
    vlans.is_empty() && default == 0 || vlans.iter().copied().eq(new)
}

/// Text for users: `1 (PVID, untagged), 5`.
fn shown(vlans: &BTreeSet<Vlan>) -> String {
    if vlans.is_empty() {
        return "none at all".to_owned();
    }
    let shown = vlans.iter().map(|(vlan, flags)| {
        let flags = BridgeVlanInfoFlags::from_bits_retain(*flags);
        let is_pvid = flags.contains(BridgeVlanInfoFlags::Pvid);
        match (is_pvid, flags.contains(BridgeVlanInfoFlags::Untagged)) {
            (true, true) => format!("{vlan} (PVID, untagged)"),
            (true, false) => format!("{vlan} (PVID)"),
            (false, true) => format!("{vlan} (untagged)"),
            (false, false) => vlan.to_string(),
        }
    });
    shown.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: u16 = 0b110;

    #[test]
    fn vlans_of_a_new_port_are_the_default_and_no_other() {
        let of = |vlans: &[Vlan]| vlans.iter().copied().collect::<BTreeSet<_>>();
        assert!(is_default(&of(&[(1, DEFAULT)]), 1));
        assert!(is_default(&of(&[]), 0));
        assert!(!is_default(&of(&[]), 1));
        assert!(!is_default(&of(&[(1, 0)]), 1));
        assert!(!is_default(&of(&[(1, DEFAULT)]), 2));
        let several = of(&[(1, 0b100), (5, 0), (7, DEFAULT)]);
        assert!(!is_default(&several, 7));
        assert_eq!(shown(&several), "1 (untagged), 5, 7 (PVID, untagged)");
    }

    #[test]
    fn an_entry_that_is_learned_or_the_ports_own_is_not_kept() {
        let own = [2, 0, 0, 0, 0, 1];
        let told = |state: NeighbourState, flags, address: [u8; 6], is_bridges: bool| {
            let mut message = NeighbourMessage::default();
            message.header.state = state;
            message.header.flags = flags;
            let address = NeighbourAttribute::LinkLayerAddress(address.to_vec());
            message.attributes.push(address);
            let bridge = is_bridges.then_some(NeighbourAttribute::Controller(3));
            message.attributes.extend(bridge);
            Entry::lasting(&message, &own)
        };
        let (none, other) = (NeighbourFlags::empty(), [2, 0, 0, 0, 0, 2]);
        let is_kept = [
            (NeighbourState::Noarp, none, other, true, true),
            (NeighbourState::Noarp, none, other, false, false),
            (NeighbourState::Permanent, none, other, true, true),
            (NeighbourState::Permanent, none, own, true, false),
            (NeighbourState::Reachable, none, other, true, false),
            (
                NeighbourState::Stale,
                NeighbourFlags::ExtLearned,
                other,
                true,
                true,
            ),
        ];
        for (state, flags, address, is_bridges, kept) in is_kept {
            let entry = told(state, flags, address, is_bridges);
            assert_eq!(entry.is_some(), kept, "{state:?} {flags:?} {address:?}");
        }
    }
}
