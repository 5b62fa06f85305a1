//! Reports how RDMA connections recovered from packets that faults took away: as a table, and drawn over the packets' sequence
//! numbers as in the paper on Lumina (SIGCOMM 2023, figures 8 and 9).

use super::chart::{Chart, Content, Form, Panel, Role, Series, Unit};
use super::grouped;
use super::table::Table;
use crate::experiment::percentile::percentile;
use proof::Recovery;

/// A latency in the recovery from a lost RDMA packet, such as the time until its retransmission.
struct Latency {
    name: &'static str,
    role: Role,
    of: fn(&Recovery) -> Option<u64>,
}

const LATENCIES: [Latency; 3] = [
    Latency {
        name: "NAK generation",
        role: Role::Other,
        of: |of| of.nak_generation_ns,
    },
    Latency {
        name: "NAK response",
        role: Role::Faulted,
        of: |of| of.nak_response_ns,
    },
    Latency {
        name: "retransmission",
        role: Role::Main,
        of: |of| of.retransmission_ns,
    },
];

/// Table with a row for each fault and latency: number of packets, least, median and greatest value.
pub fn table(recoveries: &[Recovery]) -> Table {
    let mut table = Table::new(["fault", "latency", "packets", "least", "median", "most"]);
    let mut faults: Vec<&str> = Vec::new();
    for Recovery { fault, .. } in recoveries {
        if !faults.contains(&fault.as_str()) {
            faults.push(fault);
        }
    }
    for fault in faults {
        let taken = || recoveries.iter().filter(|of| of.fault == fault);
        for latency in &LATENCIES {
            let mut times: Vec<u64> = taken().filter_map(latency.of).collect();
            times.sort_unstable();
            if times.is_empty() {
                continue;
            }
            let shown = |percent| microseconds(percentile(&times, percent));
            table.row([
                fault.to_owned(),
                latency.name.to_owned(),
                format!(
                    "{} of {}",
                    grouped(times.len() as u64),
                    grouped(taken().count() as u64)
                ),
                microseconds(times[0]),
                shown(50),
                shown(100),
            ]);
        }
    }
    table
}

/// Explanation of the latencies in [`table`].
pub const LEGEND: &str = "NAK generation: from the first packet behind the lost one that passed the switch, to the packet that \
     notifies the sender: a NAK, or a READ that restarts. NAK response: from there to the retransmitted packet. Retransmission: \
     from the lost packet to the retransmitted one. No packet notifies the sender of a loss behind all others; then a timeout \
     triggers the retransmission. All times are those at the switch.";

/// Draws the latencies over the packets' sequence numbers; `None` if all lost packets had the same number.
pub fn drawing(recoveries: &[Recovery]) -> Option<String> {
    let psns = || recoveries.iter().map(|of| of.relative_psn);
    let last = psns().max().filter(|last| psns().any(|psn| psn != *last))?;
    let series = LATENCIES.iter().map(|latency| Series {
        name: latency.name.to_owned(),
        role: latency.role,
        points: recoveries
            .iter()
            .filter_map(|of| Some((f64::from(of.relative_psn), (latency.of)(of)? as f64 / 1e3)))
            .collect(),
    });
    let panel = Panel {
        title: "microseconds".to_owned(),
        unit: Unit::Number,
        content: Content::Series(series.collect(), Form::Points),
    };
    let chart = Chart {
        label: "latencies over the number of the lost packet",
        axis: "relative PSN of the lost packet",
        end: f64::from(last),
        bands: &[],
        moments: &[],
        panels: &[panel],
    };
    Some(chart.svg())
}

fn microseconds(ns: u64) -> String {
    format!("{:.1} us", ns as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use proof::Teller;

    #[test]
    fn faults_that_hit_in_turns_have_their_rows_once() {
        let of = |fault: &str, relative_psn, ns| Recovery {
            fault: fault.to_owned(),
            switch: "sw".to_owned(),
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            qp: 17,
            psn: relative_psn,
            relative_psn,
            passed_before: false,
            told_by: Teller::Nobody,
            lost_ns: 0,
            nak_generation_ns: None,
            nak_response_ns: None,
            retransmission_ns: Some(ns),
        };
        let all = [of("b", 1, 3000), of("a", 1, 5000), of("b", 2, 4000)];
        let table = table(&all);
        let rows: Vec<String> = table.rows().iter().map(|row| row.join(" ")).collect();
        assert_eq!(
            rows,
            [
                "b retransmission 2 of 2 3.0 us 3.0 us 4.0 us",
                "a retransmission 1 of 1 5.0 us 5.0 us 5.0 us",
            ]
        );
        assert!(drawing(&all).is_some());
        assert!(drawing(&all[..2]).is_none());
    }
}
