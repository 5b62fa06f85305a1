//! `allreduce/shaped`: time of an all-reduce of 64 MB of float32 by 8 ranks over links shaped to
//! 200 Mbit/s both ways; over the links' lower bound, and beside Gloo's ring.

use anyhow::Result;

use super::super::row::{Goal, Row};
use super::ranks::BackendRounds;
use super::{AllReduceBench, AllReduceSetting};

pub const NAMES: &[&str] = &["allreduce/shaped", "allreduce/shaped_gloo"];

const RATE_BPS: u64 = 200_000_000;

pub const SETTING: AllReduceSetting = AllReduceSetting {
    name: "shaped",
    rate_bps: Some(RATE_BPS),
    ..AllReduceSetting::BASE
};

/// Lower bound in seconds: the time that the links take for the values alone.
pub fn bound_s(setting: &AllReduceSetting) -> f64 {
    8.0 * setting.bytes() as f64 / RATE_BPS as f64
}

pub fn run(bench: &AllReduceBench) -> Result<Vec<Row>> {
    let measured = bench.measure(&SETTING)?;
    let bound_s = bound_s(&SETTING);
    let (weir, gloo) = (measured.best("weir")?, measured.best("gloo")?);
    Ok(vec![
        Row {
            name: NAMES[0],
            value: Some(weir.seconds / bound_s),
            unit: "S/R",
            goal: Goal::AtMost(1.08),
            // A frame has 1,090 bytes for 1,024 of values: the shaper counts Ethernet's header, but no preamble, gap or
            // FCS.
            floor: Some(1090.0 / 1024.0),
            note: format!(
                "{} ranks, {} MB, links of 200 Mbit/s as tbf counts (Ethernet's header; no preamble, gap, FCS): S/R is \
                 {bound_s:.2} s; best of {} s; floor: framing; {}",
                SETTING.ranks,
                SETTING.bytes() / 1_000_000,
                measured.seconds("weir"),
                processors(&measured, "weir")
            ),
        },
        Row {
            name: NAMES[1],
            value: Some(gloo.seconds / weir.seconds),
            unit: "times",
            goal: Goal::AtLeast(1.6),
            floor: None,
            note: format!(
                "Gloo's ring over TCP through the same switch, in turn with it: best of {} s; {}; {}",
                measured.seconds("gloo"),
                processors(&measured, "gloo"),
                measured.machine
            ),
        },
    ])
}

/// Processor time of the ranks in a backend's best round, as text for a note.
pub fn processors(measured: &BackendRounds, backend: &str) -> String {
    match measured.best(backend) {
        Ok(best) => format!(
            "processor time: the ranks {:.2} s user and {:.2} s system, the switch {:.2} s",
            best.user_s, best.system_s, best.switch_s
        ),
        Err(_) => String::new(),
    }
}
