//! Assigns slots of the frame to the parameters of TNA's blocks. Intrinsic metadata is identified by the name of its type.

use super::ghost::Ghost;
use super::half::{Half, Parsed};
use super::multicast::EgressCopy;
use super::requests::{TmFields, TnaIngress, ValidField};
use super::{NO_MATCH, argument};
use crate::arch::region::{Binder, MetaField, Region};
use crate::bits;
use crate::compile::Compiler;
use crate::error::LoadError;
use crate::op::Slot;
use crate::op::bindings::Block;
use crate::op::bindings::Gates;
use p4lang::ir::{ControlId, Package, PackageArg, Param, ParserId, Program, Type, Var};

/// Number of slots for parsers to keep data of residual checksums; each checksum takes two of them.
pub(super) const KEPT: u32 = 32;

/// The compiled blocks of one pipe.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) ingress: TnaIngress,
    pub(super) egress: Half,
    pub(super) ghost: Option<Ghost>,
}

/// The parsers, control and deparser of one direction, ingress or egress, and the slots of their parameters.
struct Gress<'p> {
    parsers: Vec<ParserId>,
    control: ControlId,
    deparser: ControlId,
    regions: Vec<Region>,
    headers: Region,
    meta: Region,
    /// Type name, slots and type of each intrinsic metadata parameter.
    known: Vec<(&'p str, Region, &'p Type)>,
}

impl<'p> Gress<'p> {
    fn bind(
        compiler: &mut Compiler<'p>,
        package: &'p Package,
        prefix: &str,
    ) -> Result<Gress<'p>, LoadError> {
        let program = compiler.program;
        let control_of = |name: &str| match argument(package, name)? {
            PackageArg::Control(id) => Ok(*id),
            _ => Err(LoadError::Shape(format!("{name} must be a control"))),
        };
        let short = if prefix == "ingress" {
            "ig_prsr"
        } else {
            "eg_prsr"
        };
        let name = format!("{prefix}_parser");
        let several = package.args.iter().any(|(n, _)| n == short);
        let parsers = match argument(package, if several { short } else { &name })? {
            PackageArg::Parser(id) => vec![*id],
            PackageArg::Package(parsers) => {
                let ids = parsers.args.iter().filter_map(|(_, arg)| match arg {
                    PackageArg::Parser(id) => Some(*id),
                    _ => None,
                });
                ids.collect()
            }
            _ => Vec::new(),
        };
        let (control, deparser) = (
            control_of(prefix)?,
            control_of(&format!("{prefix}_deparser"))?,
        );
        let Some(first) = parsers.first() else {
            return Err(LoadError::Shape(format!("{name} must be a parser")));
        };
        let first = &program.parsers[first.index()];
        let mut b = Binder { compiler };
        let (headers, _) = b.region(&first.vars, &first.params, 1)?;
        let (meta, _) = b.region(&first.vars, &first.params, 2)?;
        let mut gress = Gress {
            parsers,
            control,
            deparser,
            regions: vec![headers, meta],
            headers,
            meta,
            known: Vec::new(),
        };
        for id in gress.parsers.clone() {
            let parser = &program.parsers[id.index()];
            gress.intrinsic(&mut b, &parser.vars, &parser.params, 3)?;
        }
        for (id, skip) in [(control, 2), (deparser, 3)] {
            let control = &program.controls[id.index()];
            gress.intrinsic(&mut b, &control.vars, &control.params, skip)?;
        }
        Ok(gress)
    }

    /// Assigns slots to the intrinsic metadata parameters from index `skip` on. Parameters of one type share their slots.
    fn intrinsic(
        &mut self,
        b: &mut Binder<'_, 'p>,
        vars: &'p [Var],
        params: &'p [Param],
        skip: usize,
    ) -> Result<(), LoadError> {
        let program = b.compiler.program;
        for i in skip..params.len() {
            let Some(name) = type_name(program, vars, &params[i]) else {
                return Err(LoadError::Shape(format!(
                    "parameter {} is not intrinsic metadata",
                    params[i].name
                )));
            };
            if self.known.iter().all(|(known, _, _)| *known != name) {
                let (region, ty) = b.region(vars, params, i)?;
                self.regions.push(region);
                self.known.push((name, region, ty));
            }
        }
        Ok(())
    }

    fn intrinsic_region(&self, name: &str) -> Option<(Region, &'p Type)> {
        let found = self.known.iter().find(|(known, _, _)| *known == name);
        found.map(|(_, region, ty)| (*region, *ty))
    }

    fn field(
        &self,
        compiler: &mut Compiler<'p>,
        of: &str,
        name: &str,
    ) -> Result<MetaField, LoadError> {
        match self.intrinsic_region(of) {
            Some(of) => Binder { compiler }.field(of, name),
            None => Ok(MetaField::default()),
        }
    }

    /// The field `name` of the intrinsic metadata type `of`, which has a validity of its own.
    fn own(
        &self,
        compiler: &mut Compiler<'p>,
        of: &str,
        name: &str,
    ) -> Result<ValidField, LoadError> {
        let field = self.field(compiler, of, name)?;
        Ok(ValidField {
            field,
            valid: field.following(),
        })
    }

    /// First slots of a block's parameters, in order: `None` for the packet, then headers, metadata and intrinsic metadata.
    fn slots(
        &self,
        program: &Program,
        vars: &[Var],
        params: &[Param],
        packet: bool,
    ) -> Vec<Option<Slot>> {
        let mut slots = Vec::new();
        if packet {
            slots.push(None);
        }
        slots.extend([Some(self.headers.slot), Some(self.meta.slot)]);
        for param in params.iter().skip(slots.len()) {
            let name = type_name(program, vars, param);
            let region = name.and_then(|name| self.intrinsic_region(name));
            slots.push(region.map(|(region, _)| region.slot));
        }
        slots
    }

    fn compile_parsers(&self, compiler: &mut Compiler<'p>) -> Result<Vec<Block>, LoadError> {
        let program = compiler.program;
        let mut blocks = Vec::new();
        for id in &self.parsers {
            let parser = &program.parsers[id.index()];
            let slots = self.slots(program, &parser.vars, &parser.params, true);
            blocks.push(compiler.parser(*id, &slots, None)?);
        }
        Ok(blocks)
    }

    fn compile_control(
        &self,
        compiler: &mut Compiler<'p>,
        id: ControlId,
        packet: bool,
    ) -> Result<Block, LoadError> {
        let program = compiler.program;
        let control = &program.controls[id.index()];
        let slots = self.slots(program, &control.vars, &control.params, packet);
        compiler.control(id, &slots)
    }

    fn parsed(&self, compiler: &mut Compiler<'p>, of: &str) -> Result<Parsed, LoadError> {
        Ok(Parsed {
            global_tstamp: self.field(compiler, of, "global_tstamp")?,
            parser_err: self.field(compiler, of, "parser_err")?,
        })
    }
}

fn type_name<'p>(program: &'p Program, vars: &[Var], param: &Param) -> Option<&'p str> {
    match &vars[param.var.index()].ty {
        Type::Struct(id) => Some(&program.types[id.index()].name),
        _ => None,
    }
}

impl Pipeline {
    pub(super) fn load<'p>(
        compiler: &mut Compiler<'p>,
        package: &'p Package,
    ) -> Result<Pipeline, LoadError> {
        Ok(Pipeline {
            ingress: ingress(compiler, package)?,
            egress: egress(compiler, package)?,
            ghost: Ghost::load(compiler, package)?,
        })
    }
}

fn ingress<'p>(compiler: &mut Compiler<'p>, package: &'p Package) -> Result<TnaIngress, LoadError> {
    let gress = Gress::bind(compiler, package, "ingress")?;
    let tm_type = "ingress_intrinsic_metadata_for_tm_t";
    let deparser_type = "ingress_intrinsic_metadata_for_deparser_t";
    let tm = |compiler: &mut Compiler<'p>, name| gress.field(compiler, tm_type, name);
    let deparser_field =
        |compiler: &mut Compiler<'p>, name| gress.field(compiler, deparser_type, name);
    let for_tm = TmFields {
        unicast: gress.own(compiler, tm_type, "ucast_egress_port")?,
        group_a: gress.own(compiler, tm_type, "mcast_grp_a")?,
        group_b: gress.own(compiler, tm_type, "mcast_grp_b")?,
        bypass_egress: tm(compiler, "bypass_egress")?,
        deflect_on_drop: tm(compiler, "deflect_on_drop")?,
        colour: tm(compiler, "packet_color")?,
        copy_to_cpu: tm(compiler, "copy_to_cpu")?,
        cos: tm(compiler, "ingress_cos")?,
        cos_for_cpu: tm(compiler, "icos_for_copy_to_cpu")?,
        qid: tm(compiler, "qid")?,
        hash1: tm(compiler, "level1_mcast_hash")?,
        hash2: tm(compiler, "level2_mcast_hash")?,
        xid: tm(compiler, "level1_exclusion_id")?,
        yid: tm(compiler, "level2_exclusion_id")?,
        rid: tm(compiler, "rid")?,
    };
    let ghosts_metadata = gress.intrinsic_region("ghost_intrinsic_metadata_t");
    let ghosts_metadata = ghosts_metadata.map(|(region, _)| region.slot);
    compiler
        .frame
        .pinned
        .extend(ghosts_metadata.map(|slot| (slot, 1)));
    let parsers = gress.compile_parsers(compiler)?;
    compiler.tofino.reads_parser_error = false;
    let control = gress.compile_control(compiler, gress.control, false)?;
    compiler.tofino.gates = Gates {
        // Type 0 never mirrors in ingress, whether it was assigned or not.
        mirror: deparser_field(compiler, "mirror_type")?.slot(),
        resubmit: deparser_field(compiler, "resubmit_type")?
            .following()
            .slot(),
        digest: deparser_field(compiler, "digest_type")?.following().slot(),
    };
    let deparser = gress.compile_control(compiler, gress.deparser, true)?;
    compiler.tofino.gates = Gates::default();
    Ok(TnaIngress {
        pktgen: deparser_field(compiler, "pktgen")?,
        pktgen_address: deparser_field(compiler, "pktgen_address")?,
        pktgen_length: deparser_field(compiler, "pktgen_length")?,
        tm: for_tm,
        half: Half {
            parsers,
            control,
            deparser,
            fatal: match compiler.tofino.reads_parser_error {
                // A packet without a match does not pass the parser.
                true => NO_MATCH,
                false => u64::MAX,
            },
            parsed: gress.parsed(compiler, "ingress_intrinsic_metadata_from_parser_t")?,
            drop_ctl: deparser_field(compiler, "drop_ctl")?,
            ghost: ghosts_metadata,
            regions: gress.regions,
        },
    })
}

fn egress<'p>(compiler: &mut Compiler<'p>, package: &'p Package) -> Result<Half, LoadError> {
    let gress = Gress::bind(compiler, package, "egress")?;
    let deparser_type = "egress_intrinsic_metadata_for_deparser_t";
    let parsers = gress.compile_parsers(compiler)?;
    let control = gress.compile_control(compiler, gress.control, false)?;
    let mirror = gress.field(compiler, deparser_type, "mirror_type")?;
    compiler.tofino.gates = Gates {
        mirror: mirror.following().slot(),
        ..Gates::default()
    };
    let deparser = gress.compile_control(compiler, gress.deparser, true)?;
    compiler.tofino.gates = Gates::default();
    Ok(Half {
        parsers,
        control,
        deparser,
        fatal: 0,
        parsed: gress.parsed(compiler, "egress_intrinsic_metadata_from_parser_t")?,
        drop_ctl: gress.field(compiler, deparser_type, "drop_ctl")?,
        ghost: None,
        regions: gress.regions,
    })
}

/// The intrinsic metadata header that the traffic manager puts in front of a packet in egress.
#[derive(Debug)]
pub(super) struct EgressHeader {
    bytes: usize,
    /// Name, position of the first bit, and width in bits of each field.
    fields: Vec<(String, usize, u32)>,
}

impl EgressHeader {
    /// The header `egress_intrinsic_metadata_t` as the program declares it.
    pub(super) fn from_program(program: &Program) -> EgressHeader {
        let declared = program
            .types
            .iter()
            .find(|t| t.name == "egress_intrinsic_metadata_t");
        let (mut at, mut fields) = (0, Vec::new());
        for field in declared.map(|t| t.fields.as_slice()).unwrap_or_default() {
            let (Type::Bit(width) | Type::Int(width)) = field.ty else {
                continue;
            };
            fields.push((field.name.clone(), at, width));
            at += width as usize;
        }
        EgressHeader {
            bytes: at / 8,
            fields,
        }
    }

    /// Writes the header for a copy that leaves its queue; `length`: length of the packet in bytes.
    pub(super) fn write(&self, now_ns: u64, copy: &EgressCopy, length: usize, to: &mut Vec<u8>) {
        let waited = &copy.waited;
        to.resize(self.bytes, 0);
        for (name, at, width) in &self.fields {
            let value = match name.as_str() {
                "egress_port" => copy.port.into(),
                "enq_qdepth" => waited.enqueue_cells,
                "enq_congest_stat" => copy.congestion.0,
                "enq_tstamp" => waited.enqueued_ns,
                "deq_qdepth" => waited.dequeue_cells,
                "deq_congest_stat" => copy.congestion.1,
                "deq_timedelta" => now_ns.saturating_sub(waited.enqueued_ns),
                "deflection_flag" => copy.deflected.into(),
                "egress_rid" => copy.rid.into(),
                "egress_rid_first" => copy.rid_first.into(),
                "egress_qid" => copy.qid,
                "egress_cos" => copy.cos,
                "pkt_length" => (length + super::FCS_BYTES) as u64,
                _ => continue,
            };
            bits::write(to, *at, *width, value & bits::mask(*width));
        }
    }
}
