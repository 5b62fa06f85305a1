//! Builds the tree of switches that sum a job's values.

use crate::diagnostic::{Code, Sink, Spanned, unknown};
use crate::file::schema::{Raw, RawJob};
use crate::model::job::{MAX_CHILDREN, Summing};

/// The switches that sum for a job, the root first. If the job names none: the only switch of the topology.
pub(super) fn summing_switches(
    sink: &mut Sink<'_>,
    raw: &Raw,
    declared: &RawJob,
) -> Option<Vec<Spanned<String>>> {
    let switches = &raw.topology.switches;
    for (index, on) in declared.on.iter().enumerate() {
        if !raw.topology.has_switch(&on.value) {
            unknown(sink, "switch", on, switches.iter().map(String::as_str));
            return None;
        }
        if declared.on[..index]
            .iter()
            .any(|other| other.value == on.value)
        {
            let message = format!("switch `{}` is named twice", on.value);
            sink.error(Code::Duplicate, on.span, message)
                .hint("write it once");
            return None;
        }
    }
    if !declared.on.is_empty() {
        return Some(declared.on.clone());
    }
    match switches.as_slice() {
        [only] => Some(vec![Spanned::new(only.clone(), declared.name.span)]),
        _ => {
            let message = format!(
                "job `{}` needs `on`: the network has several switches",
                declared.name.value
            );
            sink.error(Code::MissingKey, declared.name.span, message)
                .hint(format!(
                    "name the switch that sums, such as `on: {}`",
                    switches.first().map_or("SWITCH", String::as_str)
                ));
            None
        }
    }
}

/// Builds the tree of a job: the parent of a rank or summing switch is the first summing switch on its path to the root.
pub(super) fn tree(
    sink: &mut Sink<'_>,
    raw: &Raw,
    declared: &RawJob,
    on: &[Spanned<String>],
) -> Option<Vec<Summing>> {
    let (top, below) = on.split_first()?;
    let mut tree: Vec<Summing> = on
        .iter()
        .map(|on| Summing {
            switch: on.value.clone(),
            children: Vec::new(),
            parent: None,
        })
        .collect();
    for child in declared.ranks.iter().chain(below) {
        let way = raw.topology.way_up(&child.value, &top.value);
        let mut way = way.unwrap_or_default().into_iter();
        let Some(parent) = way.find(|switch| on.iter().any(|on| on.value == *switch)) else {
            let message = format!(
                "no path leads from `{}` to switch `{}`, which sums",
                child.value, top.value
            );
            sink.error(Code::Unreachable, child.span, message);
            return None;
        };
        let parent = parent.to_owned();
        let summing = tree.iter_mut().find(|summing| summing.switch == parent)?;
        summing.children.push(child.value.clone());
        let number = u16::try_from(summing.children.len() - 1).ok()?;
        if summing.children.len() > MAX_CHILDREN {
            let message =
                format!("switch `{parent}` sums more than {MAX_CHILDREN} ranks and switches");
            sink.error(Code::Capacity, child.span, message)
                .hint("add switches below it, the topmost switch first: `on: [SPINE, LEAF, LEAF]`");
            return None;
        }
        if let Some(own) = tree
            .iter_mut()
            .find(|summing| summing.switch == child.value)
        {
            own.parent = Some((parent, number));
        }
    }
    for (summing, on) in tree.iter().zip(on) {
        if summing.children.is_empty() {
            let message = format!("switch `{}` has no rank below it to sum", on.value);
            sink.error(Code::Unreachable, on.span, message)
                .hint("name the topmost switch first; leave this one out, or attach ranks to it");
            return None;
        }
    }
    same_ways(sink, raw, declared, &top.value).then_some(tree)
}

/// Checks that each rank's values and the sums for it take the same switches: up to the root of the tree and down from it.
fn same_ways(sink: &mut Sink<'_>, raw: &Raw, declared: &RawJob, top: &str) -> bool {
    for rank in &declared.ranks {
        let up = raw.topology.way_up(&rank.value, top).unwrap_or_default();
        let down = raw.topology.routes_to(&rank.value);
        // From the root down, each switch must lead to the one before it, and the last to the rank.
        let below = std::iter::once(rank.value.as_str()).chain(up.iter().copied());
        let leads = |(switch, below): (&&str, &str)| {
            down.next_hop(switch).is_some_and(|port| port.peer == below)
        };
        if !up.iter().zip(below).all(leads) {
            let message = format!(
                "packets from `{}` to switch `{top}` and packets back cross different switches",
                rank.value
            );
            sink.error(Code::Unreachable, rank.span, message)
                .hint("sums need a tree: one path between each rank and the topmost switch");
            return false;
        }
    }
    true
}
