//! `tcp_offloads`, `tcp_offloads_loss`: TCP between two hosts with their offloads on, through the real binary with an L2
//! program, without loss and with 1 %.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::measure::Args;
use crate::measure::hosts::{HostPair, Segments, Stream};
use crate::measure::programs::WEIR;
use crate::measure::row::{Goal, Row};
use crate::measure::veth::{in_namespace, switch_with_program};
use testbeds::net::Netlink;

pub const NAMES: &[&str] = &["tcp_offloads", "tcp_offloads_loss"];

/// Role in which this program measures in the network namespace.
pub const ROLE: &str = "tcp";
const L2: &str = include_str!("../p4/l2.p4");
const BYTES: usize = 100_000_000;
const ROUNDS: usize = 5;
/// Maximum time of a transfer.
const LIMIT: Duration = Duration::from_secs(20);

pub fn run(args: &Args) -> Result<Vec<Row>> {
    WEIR.build(args.prebuilt)?;
    let [finished, unfinished, finished_loss, loss] =
        Stream::parse_all(&in_namespace("switch", ROLE, None)?)?;
    let row = |name, stream: &Stream, goal, other: &Stream, what| Row {
        name,
        value: Some(stream.mbit() / 1000.0),
        unit: "Gbit/s",
        goal,
        floor: None,
        note: format!(
            "{} MB over one TCP connection, median of {ROUNDS}, bytes compared, L2 program{what}, hosts with their offloads on: \
             {}; hosts that finish their segments: {}",
            BYTES / 1_000_000,
            stream.note(),
            other.note()
        ),
    };
    let mut rows = vec![
        row(NAMES[0], &unfinished, Goal::AtLeast(4.0), &finished, ""),
        row(
            NAMES[1],
            &loss,
            Goal::Nothing,
            &finished_loss,
            " that drops 1 % of the frames",
        ),
    ];
    if !loss.is_whole() {
        rows[1] = Row::failed(NAMES[1], rows[1].note.clone());
    }
    Ok(rows)
}

/// Measures in the network namespace; returns a line for each stream.
pub fn measure() -> Result<String> {
    let weir = WEIR.path()?;
    let ports = ["s1", "s2"];
    let hosts = HostPair::cabled_to(ports, Segments::Finished)?;
    hosts.add_neighbours()?;
    let ours = Netlink::open()?;
    for port in ports {
        ours.set_up(port, true)?;
    }
    let mut text = String::new();
    for program in [L2.to_owned(), lossy()?] {
        for segments in [Segments::Finished, Segments::Unfinished] {
            let _switch = switch_with_program(&weir, None, &program)?;
            hosts.set_segments(segments)?;
            text += &Stream::median(ROUNDS, || hosts.stream(BYTES, LIMIT))?.print();
        }
    }
    Ok(text)
}

/// The L2 program, which drops each frame with a probability of 1 %.
fn lossy() -> Result<String> {
    let from = "apply { macs.apply(); }";
    ensure!(L2.matches(from).count() == 1, "l2.p4 has another `apply`");
    let to =
        "apply { macs.apply(); bit<7> dice; random(dice, 7w0, 7w99); if (dice == 0) { drop(); } }";
    Ok(L2.replace(from, to))
}
