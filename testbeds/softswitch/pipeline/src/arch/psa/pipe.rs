//! Common code of PSA's ingress and egress: assigns slots to the parameters of their blocks, and compiles these.

use crate::arch::blocks;
use crate::arch::region::{Binder, MetaField, Region, left};
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::op::Slot;
use crate::op::bindings::Block;
use p4lang::ir::{ControlId, Package, ParserId, Type};

/// The three blocks of ingress or egress, and the metadata fields in which they tell whether to drop or clone.
#[derive(Debug, Clone, Copy)]
pub(super) struct PsaBlocks {
    pub(super) parser: Block,
    pub(super) control: Block,
    pub(super) deparser: Block,
    pub(super) drop: MetaField,
    pub(super) clone: MetaField,
}

/// The blocks of ingress or egress, and the slots of their parameters and metadata fields.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) blocks: PsaBlocks,
    pub(super) headers: Region,
    pub(super) meta: Region,
    pub(super) output: Region,
    pub(super) parser_port: MetaField,
    pub(super) parser_path: MetaField,
    pub(super) port: MetaField,
    pub(super) path: MetaField,
    pub(super) timestamp: MetaField,
    pub(super) clone_session: MetaField,
}

impl Pipe {
    /// Sets everything to 0 that a previous packet's blocks may have written: headers, user metadata, output metadata.
    #[inline]
    pub(super) fn zero(&self, frame: &mut [u64]) {
        for region in [self.headers, self.meta, self.output] {
            region.zero(frame);
        }
    }

    /// Sets the intrinsic metadata of the parser and the control: port, path and time of the packet's arrival.
    #[inline]
    pub(super) fn arrived(&self, frame: &mut [u64], now_ns: u64, port: u32, path: u64) {
        self.parser_port.set(frame, port.into());
        self.parser_path.set(frame, path);
        self.port.set(frame, port.into());
        self.path.set(frame, path);
        self.timestamp.set(frame, now_ns);
    }
}

/// The slots and the type of a block's parameter.
pub(super) type TypedRegion<'p> = (Region, &'p Type);

/// Slots and types of the parameters of a pipeline's blocks, before the blocks are compiled.
pub(super) struct Laid<'p, const PARSER: usize, const DEPARSER: usize> {
    of: (ParserId, ControlId, ControlId),
    /// Parameters of the parser without the packet: headers, user metadata, intrinsic metadata, metadata of the packet's path.
    pub(super) parser: [TypedRegion<'p>; PARSER],
    pub(super) istd: TypedRegion<'p>,
    pub(super) output: TypedRegion<'p>,
    /// Parameters that only the deparser has.
    pub(super) deparser: [TypedRegion<'p>; DEPARSER],
}

impl<'p, const PARSER: usize, const DEPARSER: usize> Laid<'p, PARSER, DEPARSER> {
    /// Assigns slots to the parameters of the blocks. `own`: indices of parameters that only the deparser has.
    pub(super) fn out(
        compiler: &mut Compiler<'p>,
        package: &Package,
        own: [usize; DEPARSER],
    ) -> Result<Self, LoadError> {
        const NOWHERE: (Region, &Type) = (Region { slot: 0, size: 0 }, &Type::Void);
        let program = compiler.program;
        let of = blocks(program, package)?;
        let parser = &program.parsers[of.0.index()];
        let control = &program.controls[of.1.index()];
        let deparser = &program.controls[of.2.index()];
        let mut b = Binder { compiler };
        let mut laid = Laid {
            of,
            parser: [NOWHERE; PARSER],
            istd: NOWHERE,
            output: NOWHERE,
            deparser: [NOWHERE; DEPARSER],
        };
        for (i, place) in (1..).zip(&mut laid.parser) {
            *place = b.region(&parser.vars, &parser.params, i)?;
        }
        laid.istd = b.region(&control.vars, &control.params, 2)?;
        laid.output = b.region(&control.vars, &control.params, 3)?;
        for (i, place) in own.into_iter().zip(&mut laid.deparser) {
            *place = b.region(&deparser.vars, &deparser.params, i)?;
        }
        Ok(laid)
    }

    /// Compiles the blocks. `port`, `timestamp`: names of intrinsic metadata fields; `deparser`: its parameters without the
    /// packet.
    pub(super) fn compile(
        &self,
        compiler: &mut Compiler<'p>,
        [port, timestamp]: [&str; 2],
        deparser: &[Region],
    ) -> Result<Pipe, LoadError> {
        let ([headers, meta, parser_istd, ..], istd, output) =
            (&self.parser[..], self.istd, self.output)
        else {
            return Err(LoadError::Shape("a parser lacks metadata".into()));
        };
        let mut b = Binder { compiler };
        let mut field = |of, name: &str| b.field(of, name);
        let error = field(istd, "parser_error")?;
        let fields = Pipe {
            blocks: PsaBlocks {
                parser: Block::default(),
                control: Block::default(),
                deparser: Block::default(),
                drop: field(output, "drop")?,
                clone: field(output, "clone")?,
            },
            headers: headers.0,
            meta: meta.0,
            output: output.0,
            parser_port: field(*parser_istd, port)?,
            parser_path: field(*parser_istd, "packet_path")?,
            port: field(istd, port)?,
            path: field(istd, "packet_path")?,
            timestamp: field(istd, timestamp)?,
            clone_session: field(output, "clone_session_id")?,
        };
        let left = left(compiler, error, None)?;
        let behind_packet = |regions: &mut dyn Iterator<Item = Region>| -> Vec<Option<Slot>> {
            let slots = regions.map(|region| Some(region.slot));
            std::iter::once(None).chain(slots).collect()
        };
        let of_parser = behind_packet(&mut self.parser.iter().map(|(region, _)| *region));
        let of_control = [fields.headers, fields.meta, istd.0, output.0].map(|r| Some(r.slot));
        let of_deparser = behind_packet(&mut deparser.iter().copied());
        Ok(Pipe {
            blocks: PsaBlocks {
                parser: compiler.parser(self.of.0, &of_parser, Some(left))?,
                control: compiler.control(self.of.1, &of_control)?,
                deparser: compiler.control(self.of.2, &of_deparser)?,
                ..fields.blocks
            },
            ..fields
        })
    }
}
