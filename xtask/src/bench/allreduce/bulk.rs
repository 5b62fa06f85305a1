//! `allreduce/bulk`: 100 MB, 4 ranks, as fast as it goes; against Gloo's TCP through the same switch, a kernel bridge and
//! loopback.

use anyhow::Result;

use super::super::row::{Goal, Row};
use super::bed::Through;
use super::shaped::processors;
use super::{Bench, Setting};

pub const NAMES: &[&str] = &[
    "allreduce/bulk",
    "allreduce/bulk_bridge",
    "allreduce/bulk_loopback",
];

const SWITCH: Setting = Setting {
    name: "bulk",
    ranks: 4,
    values: 25_000_000,
    rounds: 5,
    ..Setting::BASE
};

const BRIDGE: Setting = Setting {
    name: "bulk_bridge",
    through: Through::Bridge,
    backends: &["gloo"],
    ..SWITCH
};

const LOOPBACK: Setting = Setting {
    name: "bulk_loopback",
    through: Through::Loopback,
    ..BRIDGE
};

pub const SETTINGS: [Setting; 3] = [SWITCH, BRIDGE, LOOPBACK];

pub fn run(bench: &Bench) -> Result<Vec<Row>> {
    let measured = bench.measure(&SWITCH)?;
    let (weir, gloo) = (measured.best("weir")?, measured.best("gloo")?);
    let mut rows = vec![Row {
        name: NAMES[0],
        value: Some(gloo.seconds / weir.seconds),
        unit: "times",
        goal: Goal::AtLeast(2.0),
        floor: None,
        note: format!(
            "{} ranks, {} MB, MTU {}: the switch sums in {} s ({}); Gloo's TCP through it takes {} s ({}); {}",
            SWITCH.ranks,
            SWITCH.bytes() / 1_000_000,
            SWITCH.mtu,
            measured.seconds("weir"),
            processors(&measured, "weir"),
            measured.seconds("gloo"),
            processors(&measured, "gloo"),
            measured.machine
        ),
    }];
    for (name, setting, over) in [
        (
            NAMES[1],
            BRIDGE,
            "a bridge of the kernel, same MTU, segments finished by their senders",
        ),
        (
            NAMES[2],
            LOOPBACK,
            "the loopback interface of one namespace",
        ),
    ] {
        let other = bench.measure(&setting)?;
        rows.push(Row {
            name,
            value: Some(other.best("gloo")?.seconds / weir.seconds),
            unit: "times",
            goal: Goal::Nothing,
            floor: None,
            note: format!(
                "Gloo's time over {over}, by that of the switch: {} s; {}",
                other.seconds("gloo"),
                other.machine
            ),
        });
    }
    Ok(rows)
}
