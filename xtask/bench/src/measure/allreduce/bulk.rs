//! `allreduce/bulk`: all-reduce of 100 MB by 4 ranks at full speed, beside Gloo's TCP through the same
//! switch, a kernel bridge and loopback. `bulk_9000`: with an MTU of 9,000, and so 2,048 values a frame. `…_offloads`: Gloo
//! between hosts with their offloads on, whose kernels send up to 64 KiB of TCP in one packet.

use std::time::Duration;

use anyhow::{Result, bail};

use super::super::row::{Goal, Row};
use super::network::Fabric;
use super::ranks::BackendRounds;
use super::shaped::processors;
use super::{AllReduceBench, AllReduceSetting};

pub const NAMES: &[&str] = &[
    "allreduce/bulk",
    "allreduce/bulk_bridge",
    "allreduce/bulk_loopback",
    "allreduce/bulk_offloads",
    "allreduce/bulk_bridge_offloads",
];

pub const JUMBO_NAMES: &[&str] = &["allreduce/bulk_9000", "allreduce/bulk_9000_offloads"];

/// Gloo between hosts with their offloads on. Where a switch loses unfinished segments, it never finishes.
const OFFLOADS: AllReduceSetting = AllReduceSetting {
    name: "bulk_offloads",
    backends: &["gloo_offloads"],
    patience: Duration::from_secs(60),
    ..SWITCH
};

const JUMBO_OFFLOADS: AllReduceSetting = AllReduceSetting {
    name: "bulk_9000_offloads",
    mtu: 9000,
    ..OFFLOADS
};

const BRIDGE_OFFLOADS: AllReduceSetting = AllReduceSetting {
    name: "bulk_bridge_offloads",
    through: Fabric::Bridge,
    ..OFFLOADS
};

const SWITCH: AllReduceSetting = AllReduceSetting {
    name: "bulk",
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

pub const SETTINGS: [AllReduceSetting; 7] = [
    SWITCH,
    JUMBO,
    BRIDGE,
    LOOPBACK,
    OFFLOADS,
    JUMBO_OFFLOADS,
    BRIDGE_OFFLOADS,
];

pub fn run(bench: &AllReduceBench) -> Result<Vec<Row>> {
    let measured = bench.measure(&SWITCH)?;
    let weir_s = measured.best("weir")?.seconds;
    let mut rows = vec![beside_gloo(NAMES[0], &SWITCH, &measured)?];
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
        (NAMES[3], OFFLOADS, "the switch, offloads on"),
        (
            NAMES[4],
            BRIDGE_OFFLOADS,
            "a kernel bridge, same MTU, offloads on",
        ),
    ] {
        rows.push(gloo_alone(bench, name, &setting, over, weir_s));
    }
    Ok(rows)
}

/// Ratio of Gloo's time in a setting of its own to the time `weir_s` of the switch's sums.
fn gloo_alone(
    bench: &AllReduceBench,
    name: &'static str,
    setting: &AllReduceSetting,
    over: &str,
    weir_s: f64,
) -> Row {
    let measured = bench.measure(setting).and_then(|other| {
        let [backend] = setting.backends else {
            bail!("{} has several backends", setting.name)
        };
        let note = format!(
            "Gloo's time over {over}, divided by the switch's: {} s; {}",
            other.seconds(backend),
            other.machine
        );
        Ok((other.best(backend)?.seconds / weir_s, note))
    });
    match measured {
        Ok((ratio, note)) => Row {
            name,
            value: Some(ratio),
            unit: "times",
            goal: Goal::Nothing,
            floor: None,
            note,
        },
        Err(error) => Row::failed(name, format!("Gloo over {over}: {error:#}")),
    }
}

/// Measures the rows of jumbo frames.
pub fn run_jumbo(bench: &AllReduceBench) -> Result<Vec<Row>> {
    let measured = bench.measure(&JUMBO)?;
    let weir_s = measured.best("weir")?.seconds;
    let (name, over) = (JUMBO_NAMES[1], "the switch, MTU 9,000, offloads on");
    Ok(vec![
        beside_gloo(JUMBO_NAMES[0], &JUMBO, &measured)?,
        gloo_alone(bench, name, &JUMBO_OFFLOADS, over, weir_s),
    ])
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
