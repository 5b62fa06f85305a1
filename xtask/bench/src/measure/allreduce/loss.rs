//! `allreduce/loss`: time of an all-reduce over shaped links while the switch drops updates and
//! sums, over the time without loss. `slow_loss`: with links of 50 Mbit/s.

use anyhow::{Result, ensure};

use super::super::row::{Goal, Row};
use super::{AllReduceBench, AllReduceSetting, shaped};

pub const NAMES: &[&str] = &["allreduce/loss_1", "allreduce/loss_5"];

pub const SLOW_NAMES: &[&str] = &["allreduce/slow_loss_1", "allreduce/slow_loss_5"];

const LOSS_FREE: AllReduceSetting = AllReduceSetting {
    name: "loss_free",
    backends: &["weir"],
    ..shaped::SETTING
};

const SLOW_LOSS_FREE: AllReduceSetting = AllReduceSetting {
    name: "slow_loss_free",
    rate_bps: Some(50_000_000),
    rounds: 2,
    ..LOSS_FREE
};

const fn losing(name: &'static str, free: AllReduceSetting, share: f64) -> AllReduceSetting {
    AllReduceSetting {
        name,
        loss: Some(share),
        ..free
    }
}

/// Settings without loss, with 1 % and with 5 % loss.
const FAST: [AllReduceSetting; 3] = [
    LOSS_FREE,
    losing("loss_1", LOSS_FREE, 0.01),
    losing("loss_5", LOSS_FREE, 0.05),
];

const SLOW: [AllReduceSetting; 3] = [
    SLOW_LOSS_FREE,
    losing("slow_loss_1", SLOW_LOSS_FREE, 0.01),
    losing("slow_loss_5", SLOW_LOSS_FREE, 0.05),
];

pub const SETTINGS: [&[AllReduceSetting]; 2] = [&FAST, &SLOW];

pub fn run(bench: &AllReduceBench) -> Result<Vec<Row>> {
    beside_no_loss(bench, NAMES, &FAST)
}

/// Measures with links of 50 Mbit/s: few processors keep up, so the protocol sets the limit.
pub fn run_slow(bench: &AllReduceBench) -> Result<Vec<Row>> {
    beside_no_loss(bench, SLOW_NAMES, &SLOW)
}

fn beside_no_loss(
    bench: &AllReduceBench,
    names: &'static [&'static str],
    settings: &[AllReduceSetting; 3],
) -> Result<Vec<Row>> {
    let [free, one, five] = settings.each_ref().map(|setting| bench.measure(setting));
    let free = free?;
    let without = free.best("weir")?;
    let row = |name, measured: Result<super::BackendRounds>, goal| {
        let measured = measured?;
        let best = measured.best("weir")?;
        ensure!(
            measured
                .rounds("weir")
                .all(|round| round.digest == without.digest),
            "{name}: the sums differ in their bits from those without loss"
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
    Ok(vec![row(names[0], one, 1.08)?, row(names[1], five, 1.2)?])
}
