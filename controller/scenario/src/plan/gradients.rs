//! Builds a switch's table entries and multicast groups for the routes of a gradient plan.

use p4lang::runtime::{FieldMatch, Match, MulticastGroup, Replica, TableEntry};

use super::names::{forward, group};
use super::runtime::call;
use crate::model::gradient::{Gradients, Part};
use crate::model::topology::Mac;

/// The table entries by which a switch forwards the frames of each part of a gradient plan.
pub(super) fn forwarding(gradients: &Gradients, switch: &str) -> Vec<TableEntry> {
    gradients
        .parts
        .iter()
        .flat_map(|part| for_part(part, switch))
        .collect()
}

fn for_part(part: &Part, switch: &str) -> Vec<TableEntry> {
    let to = |mac: Mac, action: &str, (name, value): (&str, u32)| TableEntry {
        table: forward::TABLE.to_owned(),
        key: vec![FieldMatch {
            field: forward::KEY.to_owned(),
            value: Match::exact(mac.value()),
        }],
        priority: 0,
        action: call(action.to_owned(), &[(name, value.into())]),
    };
    let mut entries: Vec<TableEntry> = Vec::new();
    for route in part.routes() {
        let to_sum = Mac::of_part(part.number, route);
        let summed = Mac::of_part_summed(part.number, route);
        let mut members = part.members.iter().filter(|member| member.route == route);
        let way = members.find_map(|member| member.way.iter().find(|hop| hop.switch == switch));
        if let Some(hop) = way {
            let address = if part.on.is_some() { to_sum } else { summed };
            entries.push(to(address, forward::UNICAST, (forward::PORT, hop.port)));
        }
        // The switch sums frames that are sent to a group, and sends the sum on under the group's address.
        match part.up.iter().position(|hop| hop.switch == switch) {
            Some(0) => {
                let number = group::of_job(part.number);
                entries.push(to(to_sum, forward::MULTICAST, (forward::GROUP, number)));
            }
            Some(place) => {
                let port = part.up[place].port;
                entries.push(to(summed, forward::UNICAST, (forward::PORT, port)));
            }
            None => {}
        }
    }
    entries
}

/// For each part of a gradient plan that the switch sums: the multicast group that sends the sum towards the server.
pub(super) fn groups(gradients: &Gradients, switch: &str) -> Vec<MulticastGroup> {
    let summed = gradients.parts.iter().filter_map(|part| {
        let up = part.up.first().filter(|hop| hop.switch == switch)?;
        Some(MulticastGroup {
            id: group::of_job(part.number),
            replicas: vec![Replica {
                port: up.port,
                instance: 1,
            }],
        })
    });
    summed.collect()
}
