//! `lost_write`, `lost_read`: recovery of each of the 100 packets of a message, lost once in a run of `weir run`,
//! whose report has the times. `lost_write_rxe`, `lost_read_rxe`: recovery between the rxes of two machines.

pub mod machines;

use anyhow::{Context, Result, ensure};
use plotters::prelude::*;
use serde_json::Value;

use super::super::Args;
use super::super::programs::WEIR;
use super::super::row::{Goal, Row};
use super::scenario_run;
use crate::plots::{Axis, Curve, drawing};

/// Number of packets of the message, 1,024 bytes each.
const PACKETS: u32 = 100;
/// Retransmission timeout T = 4.096 µs · 2^14, with perftest's default timeout code of 14; in microseconds.
const TIMEOUT_US: f64 = 4.096 * 16_384.0;

/// An RDMA operation, and the direction of its data.
pub struct RdmaOperation {
    name: &'static str,
    verb: &'static str,
    data: &'static str,
}

pub const WRITE: RdmaOperation = RdmaOperation {
    name: "lost_write",
    verb: "write",
    data: "{from: c, to: s, filter: roce}",
};

pub const READ: RdmaOperation = RdmaOperation {
    name: "lost_read",
    verb: "read",
    data: "{from: s, to: c, filter: roce}",
};

impl RdmaOperation {
    fn scenario(&self, k: u32) -> String {
        let RdmaOperation { verb, data, .. } = self;
        let size = PACKETS * 1024;
        let perf = format!("weir, agent, rdma-perf, {verb}");
        let options = format!("--way, rings, -s, \"{size}\", -n, \"1\", -m, \"1024\"");
        format!(
            "weir: 1
name: lost
topology: {{star: {{hosts: [c, s], switch: sw, rate: 1Gbit/s}}}}
workload:
  commands:
    - {{name: server, host: s, root: true, run: [{perf}, {options}]}}
    - {{name: client, host: c, root: true, run: [{perf}, \"{{host.s.ip}}\", {options}]}}
flows:
  data: {data}
faults:
  - {{id: lost, flows: data, effect: drop, select: {{psn: {{at: {k}, round: 1}}}}}}
expect: [fault.lost.fired == 1, fault.lost.recovered == 1]
"
        )
    }

    /// Runs the operation once for each packet of the message, and loses this packet once.
    pub fn measure(&self, args: &Args) -> Result<Row> {
        let weir = WEIR.build(args.prebuilt)?;
        let lose = |k| {
            let report = scenario_run::report(&weir, &self.scenario(k));
            LostPacket::read(&report.with_context(|| format!("packet {k}"))?, k)
        };
        let lost: Vec<LostPacket> = (0..PACKETS).map(lose).collect::<Result<_>>()?;
        row(self.name, &lost, args)
    }
}

/// Row with the recovery of all packets of an operation.
fn row(name: &'static str, lost: &[LostPacket], args: &Args) -> Result<Row> {
    args.draw(&format!("{name}.svg"), || draw(lost))?;
    let recovered = lost.iter().filter(|of| of.is_as_specified()).count();
    let note = |of: fn(&LostPacket) -> Option<f64>| {
        let mut times: Vec<f64> = lost.iter().filter_map(of).collect();
        times.sort_by(f64::total_cmp);
        let most = times.last().copied().unwrap_or_default();
        format!(
            "{:.0} us ({:.0} at most)",
            times.get(times.len() / 2).unwrap_or(&0.0),
            most
        )
    };
    let note_of =
        |of: fn(&LostPacket) -> Option<f64>| match lost.iter().any(|lost| of(lost).is_some()) {
            true => note(of),
            false => "none".to_owned(),
        };
    let last = lost.last().and_then(|of| of.again_us).unwrap_or_default();
    Ok(Row {
        name,
        value: Some(recovered as f64),
        unit: "of 100",
        goal: Goal::AtLeast(f64::from(PACKETS)),
        floor: None,
        note: format!(
            "packets recovered as specified, the last after T to 4 T, all others after a NAK; NAK generation {}, NAK response {}, retransmission {}; {} had a NAK; the last took {:.2} T",
            note_of(|of| of.generation_us),
            note_of(|of| of.response_us),
            note_of(|of| of.again_us.filter(|_| of.response_us.is_some())),
            lost.iter().filter(|of| of.response_us.is_some()).count(),
            last / TIMEOUT_US
        ),
    })
}

/// Recovery of one lost packet; times are in microseconds.
struct LostPacket {
    k: u32,
    generation_us: Option<f64>,
    response_us: Option<f64>,
    again_us: Option<f64>,
}

impl LostPacket {
    /// Reads the recovery of packet `k` from a run's report. A run that fails has a report too.
    fn read(report: &Value, k: u32) -> Result<LostPacket> {
        let recovery = &report["recoveries"][0];
        ensure!(recovery["relative_psn"] == k, "packet {k}: {report:#}");
        let microseconds = |name: &str| Some(recovery[name].as_f64()? / 1e3);
        Ok(LostPacket {
            k,
            generation_us: microseconds("nak_generation_ns"),
            response_us: microseconds("nak_response_ns"),
            again_us: microseconds("retransmission_ns"),
        })
    }

    /// Whether the packet was recovered as specified: the last packet by timeout, since no later packet causes a NAK.
    fn is_as_specified(&self) -> bool {
        let in_time = |us: f64| (TIMEOUT_US..=4.0 * TIMEOUT_US).contains(&us);
        match self.k == PACKETS - 1 {
            true => self.again_us.is_some_and(in_time),
            false => self.again_us.is_some() && self.response_us.is_some(),
        }
    }
}

/// Draws the recovery times over the number of the lost packet.
fn draw(lost: &[LostPacket]) -> Result<String> {
    let curve = |name, color, of: fn(&LostPacket) -> Option<f64>| Curve {
        name,
        color,
        points: lost
            .iter()
            .filter_map(|lost| Some((f64::from(lost.k), of(lost)?)))
            .collect(),
    };
    let curves = [
        curve("retransmission", RGBColor(9, 105, 218), |of| of.again_us),
        curve("NAK generation", RGBColor(140, 149, 159), |of| {
            of.generation_us
        }),
        curve("NAK response", RGBColor(154, 103, 0), |of| of.response_us),
    ];
    drawing(
        Axis::linear("relative PSN of the lost packet"),
        Axis::logarithmic("microseconds"),
        &curves,
    )
}
