//! What TNA adds to the language: fields with a validity of their own, and objects that only a Tofino has.

use super::layout::width;
use crate::op::Slot;
use hashbrown::{HashMap, HashSet};
use p4lang::ir::{
    Access, Arch, Expr, ExprKind, ExternId, FieldType, Program, StructType, Type, Var,
};

/// Fields of the intrinsic metadata that are invalid until they are assigned; invalid is not 0.
const OWN_VALIDITY: &[(&str, &[&str])] = &[
    (
        "ingress_intrinsic_metadata_for_tm_t",
        &["ucast_egress_port", "mcast_grp_a", "mcast_grp_b"],
    ),
    (
        "ingress_intrinsic_metadata_for_deparser_t",
        &["digest_type", "resubmit_type", "mirror_type"],
    ),
    ("egress_intrinsic_metadata_for_deparser_t", &["mirror_type"]),
];

/// Whether the program's architecture is a Tofino's.
pub fn is_tofino(program: &Program) -> bool {
    matches!(program.arch, Arch::Tna | Arch::T2na)
}

/// Whether the field has a validity, in the slot that follows it.
pub fn own_validity(program: &Program, owner: &StructType, field: &FieldType) -> bool {
    let mut owners = OWN_VALIDITY.iter();
    is_tofino(program)
        && owners.any(|(name, fields)| *name == owner.name && fields.contains(&&*field.name))
}

/// Bits of its byte that follow a header's field, if that has one byte: a parser counter is loaded with the byte.
pub fn bits_behind(program: &Program, vars: &[Var], field: &Expr) -> u32 {
    let ExprKind::Read(lvalue) = &field.kind else {
        return 0;
    };
    let (mut ty, mut end) = (vars[lvalue.var.index()].ty.clone(), 0);
    for access in &lvalue.path {
        ty = match (access, &ty) {
            (Access::Field(i), Type::Struct(id)) => {
                let fields = &program.types[id.index()].fields;
                let up_to = fields.iter().take(*i as usize + 1);
                end = up_to.map(|f| width(&f.ty)).sum();
                fields[*i as usize].ty.clone()
            }
            (Access::Slice(_, lo), _) => {
                end -= lo;
                ty
            }
            (_, Type::Stack(id, _)) => Type::Struct(*id),
            _ => return 0,
        };
    }
    let behind = (8 - end % 8) % 8;
    if width(&field.ty) + behind <= 8 {
        behind
    } else {
        0
    }
}

/// An extern object of TNA that no other architecture has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// `RegisterAction…`, `DirectRegisterAction…`, `MinMaxAction…`, `SelectorAction`: its register, or selector, is its first
    /// argument.
    RegisterAction,
    /// Of the table that names it: words of each entry's cell.
    DirectRegister,
    /// Index into the code's registers: one cell.
    RegisterParam(u32),
    /// See [`crate::externs::filter`]: index into the filters.
    Filter(u32),
    /// Of the table that names it.
    DirectFilter(u32),
    /// Checksum unit.
    Checksum(u32),
    /// The slot of its value: 8 bits, signed.
    ParserCounter(Slot),
    /// `Mirror`
    Mirror,
    /// `Resubmit`
    Resubmit,
    /// `Pktgen`
    Pktgen,
    /// `MathUnit`: index into the code's.
    MathUnit(u32),
}

/// Slots that gate what a deparser asks for: nothing is asked while they are 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gates {
    /// Of `Mirror.emit`.
    pub mirror: Option<Slot>,
    /// Of `Resubmit.emit`.
    pub resubmit: Option<Slot>,
    /// Of `Digest.pack`.
    pub digest: Option<Slot>,
}

/// A call of `subtract_all_and_deposit` that waits for the parser's end.
#[derive(Debug, Clone)]
pub(super) struct Residual {
    pub(super) unit: u32,
    /// 1 once the call was met.
    pub(super) met: Slot,
    /// Where the parser stood, bits.
    pub(super) start: Slot,
    pub(super) to: super::place::Place,
}

/// Of a TNA program while it is compiled.
#[derive(Debug, Default)]
pub struct Surroundings {
    /// The program is one of TNA or T2NA.
    pub is_tofino: bool,
    /// Somebody looks at the ingress parser's error.
    pub reads_parser_error: bool,
    /// Of the deparser being compiled.
    pub gates: Gates,
    /// Registers that a path may execute twice, and their units in [`crate::externs::State::executed`].
    pub executed_twice: HashMap<ExternId, u32>,
    /// Slots to be cleared for each packet.
    pub cleared: HashSet<Slot>,
    /// The method of a register action that is being compiled.
    pub(super) method: Option<super::tna_predicate::InMethod>,
    /// Words of a direct register: table, first word, words.
    pub(super) direct_registers: HashMap<ExternId, (u32, u32, u32)>,
    pub(super) residuals: Vec<Residual>,
    /// Slots that are cleared before each parser, not yet given away.
    pub kept: Vec<Slot>,
}

impl Surroundings {
    /// For a program; empty for those of other architectures.
    pub fn of(program: &Program) -> Surroundings {
        let is_tofino = is_tofino(program);
        Surroundings {
            is_tofino,
            executed_twice: if is_tofino {
                let twice = crate::arch::tna::once::executed_twice(program);
                twice.into_iter().zip(0..).collect()
            } else {
                HashMap::new()
            },
            ..Surroundings::default()
        }
    }

    /// A field is read or written.
    pub fn met(&mut self, owner: &str, field: &str) {
        self.reads_parser_error |=
            owner == "ingress_intrinsic_metadata_from_parser_t" && field == "parser_err";
    }
}
