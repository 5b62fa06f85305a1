//! Where the parameters of PSA's blocks lie in the frame.

use crate::arch::blocks;
use crate::arch::region::{Binder, Field, Region, left};
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::op::bindings::Block;
use p4lang::ir::Package;

#[derive(Debug)]
pub(super) struct Ingress {
    pub(super) parser: Block,
    pub(super) control: Block,
    pub(super) deparser: Block,
    pub(super) headers: Region,
    pub(super) meta: Region,
    pub(super) resubmit_in: Region,
    pub(super) recirculate_in: Region,
    pub(super) output: Region,
    pub(super) clone_meta: Region,
    pub(super) resubmit_meta: Region,
    pub(super) normal_meta: Region,
    pub(super) parser_port: Field,
    pub(super) parser_path: Field,
    pub(super) port: Field,
    pub(super) path: Field,
    pub(super) timestamp: Field,
    pub(super) class_of_service: Field,
    pub(super) clone: Field,
    pub(super) clone_session: Field,
    pub(super) drop: Field,
    pub(super) resubmit: Field,
    pub(super) multicast_group: Field,
    pub(super) egress_port: Field,
}

#[derive(Debug)]
pub(super) struct Egress {
    pub(super) parser: Block,
    pub(super) control: Block,
    pub(super) deparser: Block,
    pub(super) headers: Region,
    pub(super) meta: Region,
    pub(super) normal_in: Region,
    pub(super) clone_i2e_in: Region,
    pub(super) clone_e2e_in: Region,
    pub(super) output: Region,
    pub(super) clone_meta: Region,
    pub(super) recirculate_meta: Region,
    pub(super) parser_port: Field,
    pub(super) parser_path: Field,
    pub(super) class_of_service: Field,
    pub(super) port: Field,
    pub(super) path: Field,
    pub(super) instance: Field,
    pub(super) timestamp: Field,
    pub(super) clone: Field,
    pub(super) clone_session: Field,
    pub(super) drop: Field,
    pub(super) deparser_port: Field,
}

/// A field and its name.
type Named = (Field, &'static str);

/// What decides about a clone.
fn cloning(frame: &[u64], clone: Field, session: Field) -> Vec<Named> {
    let mut fields = vec![(clone, "clone")];
    if clone.get(frame) != 0 {
        fields.push((session, "clone_session_id"));
    }
    fields
}

impl Ingress {
    /// The fields that decide about a packet after ingress (PSA 6.2): each if those before leave it the choice.
    pub(super) fn deciding(&self, frame: &[u64]) -> Vec<Named> {
        let mut fields = cloning(frame, self.clone, self.clone_session);
        let chain = [
            (self.drop, "drop"),
            (self.resubmit, "resubmit"),
            (self.multicast_group, "multicast_group"),
            (self.egress_port, "egress_port"),
        ];
        let ends = chain.iter().position(|(field, _)| field.get(frame) != 0);
        let ends = ends.unwrap_or(chain.len() - 1);
        fields.extend(&chain[..=ends]);
        // A packet for a port or a group joins the queue of its class.
        if ends >= 2 {
            fields.push((self.class_of_service, "class_of_service"));
        }
        fields
    }

    pub(super) fn load(
        compiler: &mut Compiler<'_>,
        package: &Package,
    ) -> Result<Ingress, LoadError> {
        let program = compiler.program;
        let (p, c, d) = blocks(program, package)?;
        let parser = &program.parsers[p.index()];
        let control = &program.controls[c.index()];
        let deparser = &program.controls[d.index()];
        let mut b = Binder { compiler };
        let (headers, _) = b.region(&parser.vars, &parser.params, 1)?;
        let (meta, _) = b.region(&parser.vars, &parser.params, 2)?;
        let parser_istd = b.region(&parser.vars, &parser.params, 3)?;
        let (resubmit_in, _) = b.region(&parser.vars, &parser.params, 4)?;
        let (recirculate_in, _) = b.region(&parser.vars, &parser.params, 5)?;
        let istd = b.region(&control.vars, &control.params, 2)?;
        let output = b.region(&control.vars, &control.params, 3)?;
        let (clone_meta, _) = b.region(&deparser.vars, &deparser.params, 1)?;
        let (resubmit_meta, _) = b.region(&deparser.vars, &deparser.params, 2)?;
        let (normal_meta, _) = b.region(&deparser.vars, &deparser.params, 3)?;
        let mut field = |of, name| b.field(of, name);
        let error = field(istd, "parser_error")?;
        let fields = Ingress {
            parser: Block::default(),
            control: Block::default(),
            deparser: Block::default(),
            headers,
            meta,
            resubmit_in,
            recirculate_in,
            output: output.0,
            clone_meta,
            resubmit_meta,
            normal_meta,
            parser_port: field(parser_istd, "ingress_port")?,
            parser_path: field(parser_istd, "packet_path")?,
            port: field(istd, "ingress_port")?,
            path: field(istd, "packet_path")?,
            timestamp: field(istd, "ingress_timestamp")?,
            class_of_service: field(output, "class_of_service")?,
            clone: field(output, "clone")?,
            clone_session: field(output, "clone_session_id")?,
            drop: field(output, "drop")?,
            resubmit: field(output, "resubmit")?,
            multicast_group: field(output, "multicast_group")?,
            egress_port: field(output, "egress_port")?,
        };
        let left = left(compiler, error, None)?;
        let (h, m) = (Some(headers.slot), Some(meta.slot));
        let s = |r: Region| Some(r.slot);
        Ok(Ingress {
            parser: compiler.parser(
                p,
                &[
                    None,
                    h,
                    m,
                    s(parser_istd.0),
                    s(resubmit_in),
                    s(recirculate_in),
                ],
                Some(left),
            )?,
            control: compiler.control(c, &[h, m, s(istd.0), s(output.0)])?,
            deparser: compiler.control(
                d,
                &[
                    None,
                    s(clone_meta),
                    s(resubmit_meta),
                    s(normal_meta),
                    h,
                    m,
                    s(output.0),
                ],
            )?,
            ..fields
        })
    }
}

impl Egress {
    /// The fields that decide about a packet after egress (PSA 6.5).
    pub(super) fn deciding(&self, frame: &[u64]) -> Vec<Named> {
        let mut fields = cloning(frame, self.clone, self.clone_session);
        fields.push((self.drop, "drop"));
        fields
    }

    pub(super) fn load(
        compiler: &mut Compiler<'_>,
        package: &Package,
    ) -> Result<Egress, LoadError> {
        let program = compiler.program;
        let (p, c, d) = blocks(program, package)?;
        let parser = &program.parsers[p.index()];
        let control = &program.controls[c.index()];
        let deparser = &program.controls[d.index()];
        let mut b = Binder { compiler };
        let (headers, _) = b.region(&parser.vars, &parser.params, 1)?;
        let (meta, _) = b.region(&parser.vars, &parser.params, 2)?;
        let parser_istd = b.region(&parser.vars, &parser.params, 3)?;
        let (normal_in, _) = b.region(&parser.vars, &parser.params, 4)?;
        let (clone_i2e_in, _) = b.region(&parser.vars, &parser.params, 5)?;
        let (clone_e2e_in, _) = b.region(&parser.vars, &parser.params, 6)?;
        let istd = b.region(&control.vars, &control.params, 2)?;
        let output = b.region(&control.vars, &control.params, 3)?;
        let (clone_meta, _) = b.region(&deparser.vars, &deparser.params, 1)?;
        let (recirculate_meta, _) = b.region(&deparser.vars, &deparser.params, 2)?;
        let edstd = b.region(&deparser.vars, &deparser.params, 6)?;
        let mut field = |of, name| b.field(of, name);
        let error = field(istd, "parser_error")?;
        let fields = Egress {
            parser: Block::default(),
            control: Block::default(),
            deparser: Block::default(),
            headers,
            meta,
            normal_in,
            clone_i2e_in,
            clone_e2e_in,
            output: output.0,
            clone_meta,
            recirculate_meta,
            parser_port: field(parser_istd, "egress_port")?,
            parser_path: field(parser_istd, "packet_path")?,
            class_of_service: field(istd, "class_of_service")?,
            port: field(istd, "egress_port")?,
            path: field(istd, "packet_path")?,
            instance: field(istd, "instance")?,
            timestamp: field(istd, "egress_timestamp")?,
            clone: field(output, "clone")?,
            clone_session: field(output, "clone_session_id")?,
            drop: field(output, "drop")?,
            deparser_port: field(edstd, "egress_port")?,
        };
        let left = left(compiler, error, None)?;
        let (h, m) = (Some(headers.slot), Some(meta.slot));
        let s = |r: Region| Some(r.slot);
        Ok(Egress {
            parser: compiler.parser(
                p,
                &[
                    None,
                    h,
                    m,
                    s(parser_istd.0),
                    s(normal_in),
                    s(clone_i2e_in),
                    s(clone_e2e_in),
                ],
                Some(left),
            )?,
            control: compiler.control(c, &[h, m, s(istd.0), s(output.0)])?,
            deparser: compiler.control(
                d,
                &[
                    None,
                    s(clone_meta),
                    s(recirculate_meta),
                    h,
                    m,
                    s(output.0),
                    s(edstd.0),
                ],
            )?,
            ..fields
        })
    }
}
