//! `allreduce/loss`: the same links, with updates and sums that the switch loses; against no loss.

use anyhow::{Result, ensure};

use super::super::row::{Goal, Row};
use super::{Bench, Setting, shaped};

pub const NAMES: &[&str] = &["allreduce/loss_1", "allreduce/loss_5"];

const LOSS_FREE: Setting = Setting {
    name: "loss_free",
    backends: &["weir"],
    ..shaped::SETTING
};

pub const SETTINGS: [Setting; 3] = [
    LOSS_FREE,
    Setting {
        name: "loss_1",
        loss: Some(0.01),
        ..LOSS_FREE
    },
    Setting {
        name: "loss_5",
        loss: Some(0.05),
        ..LOSS_FREE
    },
];

pub fn run(bench: &Bench) -> Result<Vec<Row>> {
    let [free, one, five] = SETTINGS.each_ref().map(|setting| bench.measure(setting));
    let free = free?;
    let without = free.best("weir")?;
    let row = |name, measured: Result<super::Measured>, goal| {
        let measured = measured?;
        let best = measured.best("weir")?;
        ensure!(
            measured
                .of("weir")
                .all(|round| round.digest == without.digest),
            "{name}: the sums have other bits than without loss"
        );
        let count = |what: &str| measured.counters[what].as_u64().unwrap_or_default();
        Ok(Row {
            name,
            value: Some(best.seconds / without.seconds),
            unit: "times",
            goal: Goal::AtMost(goal),
            floor: None,
            note: format!(
                "best of {} s, without loss {} s, the same bits; of {} frames of rank 0, {} were sent again, {} of those \
                 probes, {} timeouts; {}",
                measured.seconds("weir"),
                free.seconds("weir"),
                count("frames"),
                count("frames_again"),
                count("probes"),
                count("timeouts"),
                measured.machine
            ),
        })
    };
    Ok(vec![row(NAMES[0], one, 1.08)?, row(NAMES[1], five, 1.2)?])
}
