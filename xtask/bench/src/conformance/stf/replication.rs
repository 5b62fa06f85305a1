//! Multicast groups and clone sessions as in BMv2's runtime shell: replication nodes have handles and are joined to groups.

use super::script::number;
use p4lang::runtime::{CloneSession, MulticastGroup, Replica};
use pipeline::Switch;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Replication {
    /// Replication nodes, by handle.
    nodes: Vec<Node>,
    /// Handles of the nodes of each multicast group.
    groups: BTreeMap<u32, Vec<usize>>,
    sessions: BTreeMap<u32, Destination>,
}

struct Node {
    instance: u16,
    ports: Vec<u32>,
}

enum Destination {
    Port(u32),
    Group(u32),
}

impl Replication {
    pub fn execute(&mut self, words: &[&str], switch: &mut Switch) -> Result<(), String> {
        let id = |text: &str| u32::try_from(number(text)?).map_err(|e| e.to_string());
        let ids = |words: &[&str]| words.iter().map(|w| id(w)).collect::<Result<Vec<u32>, _>>();
        match *words {
            ["mirroring_add", session, port] => {
                self.sessions
                    .insert(id(session)?, Destination::Port(id(port)?));
            }
            ["mirroring_add_mc", session, group] => {
                self.sessions
                    .insert(id(session)?, Destination::Group(id(group)?));
            }
            ["mirroring_delete", session] => {
                let session = id(session)?;
                self.sessions.remove(&session).ok_or("no such session")?;
                switch
                    .delete_clone_session(session)
                    .map_err(|e| e.to_string())?;
            }
            ["mirroring_get", session] => {
                self.sessions.get(&id(session)?).ok_or("no such session")?;
            }
            ["mc_mgrp_create", group] => {
                self.groups.insert(id(group)?, Vec::new());
            }
            ["mc_node_create", instance, ref ports @ ..] => {
                let instance = u16::try_from(number(instance)?).map_err(|e| e.to_string())?;
                self.nodes.push(Node {
                    instance,
                    ports: ids(ports)?,
                });
            }
            ["mc_node_update", handle, ref ports @ ..] => {
                let node = self
                    .nodes
                    .get_mut(id(handle)? as usize)
                    .ok_or("no such node")?;
                node.ports = ids(ports)?;
            }
            ["mc_node_associate", group, handle] => {
                let handle = id(handle)? as usize;
                self.nodes.get(handle).ok_or("no such node")?;
                self.groups
                    .get_mut(&id(group)?)
                    .ok_or("no such group")?
                    .push(handle);
            }
            _ => return Err("not understood".into()),
        }
        self.write(switch)
    }

    fn replicas(&self, group: u32) -> Vec<Replica> {
        let handles = self.groups.get(&group).map_or(&[][..], Vec::as_slice);
        let nodes = handles.iter().filter_map(|h| self.nodes.get(*h));
        let mut seen = BTreeSet::new();
        nodes
            .flat_map(|node| {
                node.ports.iter().map(|port| Replica {
                    port: *port,
                    instance: node.instance,
                })
            })
            .filter(|replica| seen.insert(*replica))
            .collect()
    }

    /// Writes all groups and sessions to the switch again: a node may change after its group, a group after its session.
    fn write(&self, switch: &mut Switch) -> Result<(), String> {
        for id in self.groups.keys() {
            let group = MulticastGroup {
                id: *id,
                replicas: self.replicas(*id),
            };
            switch
                .set_multicast_group(&group)
                .map_err(|e| e.to_string())?;
        }
        for (id, destination) in &self.sessions {
            let replicas = match destination {
                Destination::Port(port) => vec![Replica {
                    port: *port,
                    instance: 0,
                }],
                Destination::Group(group) => self.replicas(*group),
            };
            let session = CloneSession {
                id: *id,
                replicas,
                class_of_service: 0,
                packet_length_bytes: 0,
            };
            switch
                .set_clone_session(&session)
                .map_err(|e| e.to_string())?;
        }
        Ok(())
    }
}
