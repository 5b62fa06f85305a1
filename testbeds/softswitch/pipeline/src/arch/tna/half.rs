//! One direction of a pipe: a parser, a control and a deparser, with the layout of their parameters.

use crate::arch::region::{MetaField, Region};
use crate::op::Slot;
use crate::op::bindings::Block;

/// Results of the parser for the control.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) global_tstamp: MetaField,
    pub(super) parser_err: MetaField,
}

/// The common part of ingress and egress.
#[derive(Debug)]
pub(super) struct Half {
    pub(super) parsers: Vec<Block>,
    pub(super) control: Block,
    pub(super) deparser: Block,
    /// Regions that start as 0.
    pub(super) regions: Vec<Region>,
    pub(super) parsed: Parsed,
    /// Mask of the parser errors that drop the packet.
    pub(super) fatal: u64,
    pub(super) drop_ctl: MetaField,
    /// The validity slot of the ghost's metadata, if the control reads it.
    pub(super) ghost: Option<Slot>,
}

impl Half {
    /// The parser that packets take: the first one of a `MultiParserPipeline`.
    pub(super) fn parser(&self) -> Block {
        self.parsers[0]
    }
}
