//! RoCEv2 packets that the switch sums: headers behind BTH and RETH, and the parser states for them.
//!
//! A switch parses them only in packets to the address of a job's sum; other packets have other bytes there.

use super::Program;
use super::notes::COMPLETE;
use crate::options::FrameValues;
use crate::writer::{Transition, Writer, extract, extract_values};

/// P4 type and instance of the headers before the values, as p4src/common/headers.p4 declares them.
pub(super) const BEFORE_VALUES: [(&str, &str); 3] = [
    ("roce_immediate_h", "roce_immediate"),
    ("roce_hello_h", "roce_hello"),
    ("roce_answer_h", "roce_answer"),
];
/// P4 type and instance of the header behind the values, which ends a RoCEv2 packet.
pub(super) const BEHIND_VALUES: (&str, &str) = ("roce_icrc_h", "roce_icrc");

/// Filter name of the protocol (the base transport header) behind which the headers of a summed packet stand.
pub(super) const CARRIER: &str = "roce";
/// First five bytes of the destination MAC address of a job's sum; the sixth byte is the job's number.
const SUM_ADDRESS: &str = "0x02005e5745";
/// Opcodes of an unreliable connection: WRITE ONLY with immediate, and SEND ONLY.
const WRITE: &str = "0x2b";
const SEND: &str = "0x24";
/// Length of a frame's values in bytes.
const VALUES_LENGTH: &str = "1024";

/// Writes the parser state `parse_roce`, which continues with the state `others` for packets that are not summed.
pub(super) fn write_states(program: &Program<'_>, others: &str, w: &mut Writer) {
    let icrc = extract(BEHIND_VALUES.1);
    let case = |opcode: &str, state: &str| {
        (
            vec![SUM_ADDRESS.to_owned(), opcode.to_owned()],
            state.to_owned(),
        )
    };
    w.state(
        "parse_roce",
        &[extract(CARRIER)],
        &Transition::select(
            &["hdr.ethernet.dst[47:8]", "hdr.roce.opcode"],
            vec![
                case(WRITE, "parse_roce_write"),
                case(SEND, "parse_roce_hello"),
            ],
            others,
        ),
    );
    w.state(
        "parse_roce_write",
        &[extract("reth"), extract("roce_immediate")],
        &Transition::select(
            &["hdr.reth.length"],
            vec![
                (vec![VALUES_LENGTH.to_owned()], "parse_roce_values".into()),
                (vec!["0".to_owned()], "parse_roce_icrc".into()),
            ],
            COMPLETE,
        ),
    );
    let blocks = program.options.aggregate.map_or(0, FrameValues::blocks);
    w.state(
        "parse_roce_values",
        &extract_values(blocks),
        &Transition::to("parse_roce_icrc"),
    );
    w.state(
        "parse_roce_hello",
        &[extract("roce_hello")],
        &Transition::to("parse_roce_icrc"),
    );
    w.state("parse_roce_icrc", &[icrc], &Transition::to(COMPLETE));
}
