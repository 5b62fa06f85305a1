//! `allreduce/bulk`: all-reduce of 100 MB by 4 ranks at full speed, beside Gloo's TCP through the same
//! switch, a kernel bridge and loopback. `bulk_9000`: with an MTU of 9,000, and so 2,048 values a frame.

use anyhow::Result;

use super::super::row::{Goal, Row};
use super::network::Fabric;
use super::ranks::BackendRounds;
use super::shaped::processors;
use super::{AllReduceBench, AllReduceSetting};

pub const NAMES: &[&str] = &[
    "allreduce/bulk",
    "allreduce/bulk_bridge",
    "allreduce/bulk_loopback",
];

pub const JUMBO_NAMES: &[&str] = &["allreduce/bulk_9000"];

const SWITCH: AllReduceSetting = AllReduceSetting {
    name: "bulk",
    backends: &["weir"],
    ranks: 4,
    values: 25_000_000,
    rounds: 5,
    ..AllReduceSetting::BASE
};

const JUMBO: AllReduceSetting = AllReduceSetting {
    name: "bulk_9000",
    mtu: 9000,
    ..SWITCH
};

const BRIDGE: AllReduceSetting = AllReduceSetting {
    name: "bulk_bridge",
    through: Fabric::Bridge,
    backends: &["gloo"],
    ..SWITCH
};

const LOOPBACK: AllReduceSetting = AllReduceSetting {
    name: "bulk_loopback",
    through: Fabric::Loopback,
    ..BRIDGE
};

pub const SETTINGS: [AllReduceSetting; 4] = [SWITCH, JUMBO, BRIDGE, LOOPBACK];

pub fn run(bench: &AllReduceBench) -> Result<Vec<Row>> {
    let measured = bench.measure(&SWITCH)?;
    let weir_s = measured.best("weir")?.seconds;
    println!(
        "{} {}",
        measured.seconds("weir"),
        processors(&measured, "weir")
    );
    let mut rows: Vec<Row> = Vec::new();
    if std::env::var_os("WEIR_KEEP").is_some() || std::env::var_os("WEIR_ONLY").is_some() {
        return Ok(rows);
    }
    for (name, setting, over) in [
        (
            NAMES[1],
            BRIDGE,
            "a kernel bridge, same MTU, segmentation by the senders",
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
            value: Some(other.best("gloo")?.seconds / weir_s),
            unit: "times",
            goal: Goal::Nothing,
            floor: None,
            note: format!(
                "Gloo's time over {over}, divided by the switch's: {} s; {}",
                other.seconds("gloo"),
                other.machine
            ),
        });
    }
    Ok(rows)
}

/// Measures the row `bulk_9000`, with jumbo frames.
pub fn run_jumbo(bench: &AllReduceBench) -> Result<Vec<Row>> {
    Ok(vec![beside_gloo(
        JUMBO_NAMES[0],
        &JUMBO,
        &bench.measure(&JUMBO)?,
    )?])
}

/// Ratio of Gloo's time over TCP through the switch to the time of the switch's sums.
fn beside_gloo(
    name: &'static str,
    setting: &AllReduceSetting,
    measured: &BackendRounds,
) -> Result<Row> {
    let (weir, gloo) = (measured.best("weir")?, measured.best("gloo")?);
    Ok(Row {
        name,
        value: Some(gloo.seconds / weir.seconds),
        unit: "times",
        goal: Goal::AtLeast(2.0),
        floor: None,
        note: format!(
            "{} ranks, {} MB, MTU {}: the switch sums in {} s ({}); Gloo's TCP through it takes {} s ({}); {}",
            setting.ranks,
            setting.bytes() / 1_000_000,
            setting.mtu,
            measured.seconds("weir"),
            processors(measured, "weir"),
            measured.seconds("gloo"),
            processors(measured, "gloo"),
            measured.machine
        ),
    })
}
