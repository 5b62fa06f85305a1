//! One direction of a pipe: a parser, a control and a deparser, with the layout of their parameters.

use crate::arch::region::{MetaField, Region};
use crate::op::Slot;
use crate::op::bindings::Block;

/// Fields of the intrinsic metadata in which the parser passes its results to the control.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) global_tstamp: MetaField,
    pub(super) parser_err: MetaField,
}

/// The blocks of one direction, ingress or egress, of a pipe.
#[derive(Debug)]
pub(super) struct Half {
    pub(super) parsers: Vec<Block>,
    pub(super) control: Block,
    pub(super) deparser: Block,
    /// Slots that the architecture sets to 0 before each packet.
    pub(super) regions: Vec<Region>,
    pub(super) parsed: Parsed,
    /// Mask of the bits of `parser_err` for which the packet is dropped.
    pub(super) fatal: u64,
    pub(super) drop_ctl: MetaField,
    /// The validity slot of the ghost's metadata; `None` if the control does not read that metadata.
    pub(super) ghost: Option<Slot>,
}

impl Half {
    /// The parser that all packets pass: the first parser of a `MultiParserPipeline`.
    pub(super) fn parser(&self) -> Block {
        self.parsers[0]
    }
}
