//! Assigns slots of the frame to v1model's metadata, and saves the metadata that field lists keep.

use super::DROP_PORT;
use crate::arch::region::{Binder, MetaField, Region, left};
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::op::Slot;
use crate::op::bindings::Block;
use crate::op::bindings::Requests;
use p4lang::ast::Literal;
use p4lang::ir::{Annotation, ControlId, PackageArg, ParserId, Program, Type};
use std::collections::BTreeMap;

/// First slot and number of slots of each field that a field list keeps.
type List = Vec<(Slot, u32)>;

/// The six blocks of a v1model program.
#[derive(Debug)]
pub(super) struct V1modelBlocks {
    pub(super) parser: Block,
    pub(super) verify: Block,
    pub(super) ingress: Block,
    pub(super) egress: Block,
    pub(super) compute: Block,
    pub(super) deparser: Block,
}

/// The fields of `standard_metadata_t` that the architecture accesses.
#[derive(Debug)]
pub(super) struct Standard {
    pub(super) ingress_port: MetaField,
    pub(super) egress_spec: MetaField,
    pub(super) egress_port: MetaField,
    pub(super) instance_type: MetaField,
    pub(super) packet_length: MetaField,
    pub(super) enq_timestamp: MetaField,
    pub(super) enq_qdepth: MetaField,
    pub(super) deq_timedelta: MetaField,
    pub(super) deq_qdepth: MetaField,
    pub(super) priority: MetaField,
    pub(super) ingress_global_timestamp: MetaField,
    pub(super) egress_global_timestamp: MetaField,
    pub(super) mcast_grp: MetaField,
    pub(super) egress_rid: MetaField,
}

impl Standard {
    /// The metadata fields that decide about a packet after ingress, unless it is resubmitted.
    pub(super) fn deciding(&self, frame: &[u64]) -> Vec<(MetaField, &'static str)> {
        let mut fields = vec![(self.mcast_grp, "mcast_grp")];
        let goes_on = if self.mcast_grp.get(frame) != 0 {
            true
        } else {
            fields.push((self.egress_spec, "egress_spec"));
            self.egress_spec.get(frame) != u64::from(DROP_PORT)
        };
        // The packet joins the queue of its priority.
        if goes_on {
            fields.push((self.priority, "priority"));
        }
        fields
    }
}

/// The slots of headers, metadata and requests of one packet.
#[derive(Debug)]
pub(super) struct V1modelLayout {
    pub(super) blocks: V1modelBlocks,
    /// Slots of headers, user metadata and standard metadata.
    pub(super) all: Region,
    /// Slots that start as 0 for a new packet: those of `all`, followed by the requests of extern functions.
    pub(super) fresh: Region,
    pub(super) headers: Region,
    /// Slots of user metadata and standard metadata.
    pub(super) metadata: Region,
    pub(super) standard: Standard,
    pub(super) requests: Requests,
    lists: BTreeMap<u64, List>,
}

impl V1modelLayout {
    pub(super) fn load(compiler: &mut Compiler<'_>) -> Result<V1modelLayout, LoadError> {
        let program = compiler.program;
        let (parser_id, controls) = blocks(program)?;
        let parser = &program.parsers[parser_id.index()];
        let mut b = Binder { compiler };
        // Placed side by side, so that a run of slots is the packet's whole image.
        let (headers, _) = b.region(&parser.vars, &parser.params, 1)?;
        let (meta, meta_type) = b.region(&parser.vars, &parser.params, 2)?;
        let (std, std_type) = b.region(&parser.vars, &parser.params, 3)?;
        let metadata = Region {
            slot: meta.slot,
            size: meta.size + std.size,
        };
        let mut field = |name| b.field((std, std_type), name);
        let standard = Standard {
            ingress_port: field("ingress_port")?,
            egress_spec: field("egress_spec")?,
            egress_port: field("egress_port")?,
            instance_type: field("instance_type")?,
            packet_length: field("packet_length")?,
            enq_timestamp: field("enq_timestamp")?,
            enq_qdepth: field("enq_qdepth")?,
            deq_timedelta: field("deq_timedelta")?,
            deq_qdepth: field("deq_qdepth")?,
            priority: field("priority")?,
            ingress_global_timestamp: field("ingress_global_timestamp")?,
            egress_global_timestamp: field("egress_global_timestamp")?,
            mcast_grp: field("mcast_grp")?,
            egress_rid: field("egress_rid")?,
        };
        let (checksum_error, parser_error) = (field("checksum_error")?, field("parser_error")?);
        let mut lists = BTreeMap::new();
        declared_lists(compiler, meta_type, meta.slot, &mut lists)?;
        declared_lists(compiler, std_type, std.slot, &mut lists)?;
        let first = compiler.alloc(Requests::COUNT)?;
        let mut requests = Requests::at(first);
        // If the field exists, verification writes it directly.
        if let Some(slot) = checksum_error.slot() {
            requests.checksum_error = slot;
        }
        compiler.bindings.requests = requests;
        for (place, name) in ["egress_spec", "mcast_grp"].into_iter().enumerate() {
            let found = compiler.named_field(std_type, name)?;
            compiler.v1model.destination[place] = found.map(|(offset, _)| std.slot + offset);
        }

        // Verification writes the `checksum_error` of ingress.
        let left = left(compiler, parser_error, Some(requests.checksum_error))?;
        let (h, m, s) = (Some(headers.slot), Some(meta.slot), Some(std.slot));
        let [verify, ingress, egress, compute, deparser] = controls;
        let blocks = V1modelBlocks {
            parser: compiler.parser(parser_id, &[None, h, m, s], Some(left))?,
            verify: compiler.control(verify, &[h, m])?,
            ingress: compiler.control(ingress, &[h, m, s])?,
            egress: compiler.control(egress, &[h, m, s])?,
            compute: compiler.control(compute, &[h, m])?,
            deparser: compiler.control(deparser, &[None, h])?,
        };
        lists.extend(compiler.bindings.lists());
        compiler.frame.pinned.extend(lists.values().flatten());
        Ok(V1modelLayout {
            blocks,
            all: Region {
                slot: headers.slot,
                size: headers.size + metadata.size,
            },
            fresh: Region {
                slot: headers.slot,
                size: first + Requests::COUNT - headers.slot,
            },
            headers,
            metadata,
            standard,
            requests,
            lists,
        })
    }

    /// Appends the metadata to `image`, with 0 for all fields that the field list does not keep. `list`: number of the field
    /// list + 1; 0: no list, so no field is kept.
    pub(super) fn kept(&self, frame: &[u64], list: u64, image: &mut Vec<u64>) {
        let start = image.len();
        let region = self.metadata;
        image.resize(start + region.size as usize, 0);
        let Some(list) = list.checked_sub(1).and_then(|i| self.lists.get(&i)) else {
            return;
        };
        for &(slot, n) in list {
            for slot in slot..slot + n {
                // Headers are parsed again or kept in any case.
                if let Some(at) = slot.checked_sub(region.slot).filter(|at| *at < region.size) {
                    image[start + at as usize] = frame[slot as usize];
                }
            }
        }
    }
}

/// The parser and the five controls of a v1model package, in the order of its parameters.
fn blocks(program: &Program) -> Result<(ParserId, [ControlId; 5]), LoadError> {
    let mut parser = None;
    let mut controls = Vec::new();
    for (_, arg) in &program.main.args {
        match arg {
            PackageArg::Parser(id) if id.index() < program.parsers.len() => parser = Some(*id),
            PackageArg::Control(id) if id.index() < program.controls.len() => controls.push(*id),
            _ => {}
        }
    }
    match (parser, <[ControlId; 5]>::try_from(controls)) {
        (Some(parser), Ok(controls)) if has_params(program, parser, &controls) => {
            Ok((parser, controls))
        }
        _ => Err(LoadError::Shape(
            "V1Switch needs a parser and five controls".into(),
        )),
    }
}

fn has_params(program: &Program, parser: ParserId, controls: &[ControlId; 5]) -> bool {
    let lengths = controls.map(|c| program.controls[c.index()].params.len());
    program.parsers[parser.index()].params.len() == 4 && lengths == [2, 3, 3, 2, 2]
}

/// Adds the fields with the annotation `@field_list` of a struct, which starts at `slot`, to the field lists.
fn declared_lists(
    compiler: &mut Compiler<'_>,
    ty: &Type,
    slot: Slot,
    lists: &mut BTreeMap<u64, List>,
) -> Result<(), LoadError> {
    let Type::Struct(id) = ty else { return Ok(()) };
    let program = compiler.program;
    for field in &program.types[id.index()].fields {
        let Some((offset, ty)) = compiler.named_field(&Type::Struct(*id), &field.name)? else {
            continue;
        };
        let size = compiler.size(&ty)?;
        for index in field.annotations.iter().flat_map(indices) {
            lists.entry(index).or_default().push((slot + offset, size));
        }
        declared_lists(compiler, &ty, slot + offset, lists)?;
    }
    Ok(())
}

fn indices(annotation: &Annotation) -> Vec<u64> {
    if annotation.name != "field_list" {
        return Vec::new();
    }
    let number = |literal: &Literal| match literal {
        Literal::Int(n) => u64::try_from(n).ok(),
        _ => None,
    };
    annotation.literals.iter().filter_map(number).collect()
}
