//! The egress ports by which a switch forwards a frame, computed from the switch's table entries.

use std::collections::BTreeMap;

use p4lang::runtime::{ActionCall, Match, TableEntry};

use super::Engine;
use crate::model::routing::hash;
use crate::plan::names::forward;

/// A switch's forwarding entries, indexed by their keys because every frame needs a lookup.
#[derive(Debug, Clone, Default)]
pub(super) struct Forwarding {
    /// If the switch is a wire: the egress port for each ingress port; `None`: the entry names no port.
    wires: BTreeMap<u128, Option<u32>>,
    /// The forwarding action for each destination MAC address.
    hosts: BTreeMap<u128, ActionCall>,
}

impl Forwarding {
    /// Reads the forwarding entries among a switch's table entries. Of two entries with the same key, the first applies.
    pub(super) fn new(entries: &[TableEntry]) -> Forwarding {
        let mut forwarding = Forwarding::default();
        for entry in entries {
            let keys = entry.key.iter().filter_map(|key| match &key.value {
                Match::Exact(value) => value.to_u128(),
                _ => None,
            });
            if entry.table == forward::WIRE {
                let port = entry.action.params.first();
                let port = port.and_then(|(_, value)| value.to());
                keys.for_each(|key| _ = forwarding.wires.entry(key).or_insert(port));
            } else if entry.table == forward::TABLE {
                for key in keys {
                    let hosts = &mut forwarding.hosts;
                    hosts.entry(key).or_insert_with(|| entry.action.clone());
                }
            }
        }
        forwarding
    }
}

impl Engine {
    /// Whether frames with one destination and ingress port may leave by different ports, because several paths lead there.
    pub(super) fn spreads(&self) -> bool {
        let mut actions = self.forwarding.hosts.values();
        actions.any(|action| [forward::SPREAD, forward::BETWEEN].contains(&action.name.as_str()))
    }

    /// The egress ports of a frame that came by the ingress port `port`; empty if the switch does not forward the frame.
    pub(super) fn exits(&self, frame: &[u8], port: u32) -> Vec<u32> {
        if let Some(leads_to) = self.forwarding.wires.get(&u128::from(port)) {
            return leads_to.iter().copied().collect();
        }
        let Some(destination) = frame.get(..6) else {
            return Vec::new();
        };
        let destination = destination
            .iter()
            .fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
        let Some(action) = self.forwarding.hosts.get(&destination) else {
            return Vec::new();
        };
        let Some((_, value)) = action.params.first() else {
            return Vec::new();
        };
        if [forward::SPREAD, forward::BETWEEN].contains(&action.name.as_str()) {
            return self.one_of_several(action, frame).into_iter().collect();
        }
        if action.name != forward::MULTICAST {
            return value.to().into_iter().collect();
        }
        let mut groups = self.plan.groups.iter();
        let group = groups.find(|group| *value == u128::from(group.id));
        group
            .map(|group| group.replicas.iter().map(|replica| replica.port).collect())
            .unwrap_or_default()
    }

    /// The egress port on one of several paths to a host; the hash of the frame's addresses and ports selects the path.
    fn one_of_several(&self, action: &ActionCall, frame: &[u8]) -> Option<u32> {
        let param = |action: &ActionCall, name: &str| -> Option<u32> {
            let mut params = action.params.iter();
            params.find(|(other, _)| other == name)?.1.to()
        };
        let entry = |table: &str, key: &[(&str, u128)]| {
            let mut entries = self.plan.entries.iter();
            let has = |entry: &TableEntry| {
                let mut key = key.iter();
                key.all(|(field, value)| {
                    let mut fields = entry.key.iter();
                    fields.any(|of| of.field == *field && of.value == Match::exact(*value))
                })
            };
            let found = entries.find(|entry| entry.table == table && has(entry));
            found.map(|entry| &entry.action)
        };
        let shortest = param(action, forward::PORT);
        let list = match action.name.as_str() {
            forward::BETWEEN => {
                let source = frame.get(6..12)?.iter();
                let source = source.fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
                let origin = entry(forward::ORIGINS, &[(forward::KEY_SOURCE, source)]);
                let origin = origin.and_then(|from| param(from, forward::ORIGIN));
                let target = param(action, forward::TARGET)?;
                let pair = [
                    (forward::KEY_ORIGIN, u128::from(origin.unwrap_or(0))),
                    (forward::KEY_TARGET, u128::from(target)),
                ];
                entry(forward::PAIRS, &pair)
            }
            _ => Some(action),
        };
        let Some(list) = list else {
            return shortest;
        };
        let turn = param(list, forward::TURN).unwrap_or(0) as u8;
        let ways = param(list, forward::NUM_WAYS)? as u16;
        let way = hash::way(hash::frame_hash(frame), turn, ways);
        let key = [
            (forward::KEY_LIST, u128::from(param(list, forward::LIST)?)),
            (forward::KEY_WAY, u128::from(way)),
        ];
        let next = entry(forward::NEXT_HOPS, &key);
        next.and_then(|next| param(next, forward::PORT))
            .or(shortest)
    }
}
