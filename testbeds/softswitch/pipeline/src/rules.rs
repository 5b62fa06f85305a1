//! In what the architectures differ where generic code has to know: one row each. What one of them has to itself is in its
//! folder of `arch`.

use crate::externs::hash::Algorithm;
use crate::externs::meter;
use crate::port_numbers::PIPES;
use p4lang::ast::StructKind;
use p4lang::ir::{Arch, FieldType, Program, StructType};

/// What the fields of an invalid header hold. P4_16 8.17 leaves it open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InvalidFields {
    /// 0. A write has no effect.
    #[default]
    Zero,
    /// What was written, until `setInvalid` makes them 0: a Tofino's containers know nothing of validity.
    Written,
    /// What they held before, or what was written since, as in BMv2: `setInvalid`, `setValid` and the assignment of an
    /// invalid header change the validity alone. A table's key and hashed data take such a field as 0.
    Kept,
}

impl InvalidFields {
    /// Whether a write to a field of an invalid header has an effect.
    pub fn are_written(self) -> bool {
        self != InvalidFields::Zero
    }
}

/// A row.
#[derive(Debug)]
pub struct Rules {
    /// Copies of the cells of registers, counters and meters: one for each pipe, and one for pipes that no packet has met.
    pub cell_copies: u64,
    /// What the fields of an invalid header hold.
    pub invalid: InvalidFields,
    /// Direct counters and meters work at every hit, called or not.
    pub counts_hits: bool,
    /// Hashed data are filled up to whole bytes on the left, as BMv2 does it for PSA.
    pub pads_left: bool,
    /// Headers, and structs that its compiler may lay out as it likes, are filled up to whole bytes, at the end.
    pub pads_headers: bool,
    /// A hash algorithm by the name that the include file gives it.
    pub algorithm: fn(&str) -> Option<Algorithm>,
    /// Green, yellow and red, where they are numbers and no enum.
    pub colours: [u64; 3],
    /// Fields of the intrinsic metadata that are invalid until they are assigned; invalid is not 0.
    own_validity: &'static [(&'static str, &'static [&'static str])],
}

const PSA: Rules = Rules {
    cell_copies: 1,
    invalid: InvalidFields::Zero,
    counts_hits: false,
    pads_left: true,
    pads_headers: false,
    algorithm: Algorithm::named,
    colours: [meter::GREEN, meter::YELLOW, meter::RED],
    own_validity: &[],
};

const V1MODEL: Rules = Rules {
    cell_copies: 1,
    invalid: InvalidFields::Kept,
    counts_hits: true,
    pads_left: false,
    pads_headers: false,
    algorithm: Algorithm::of_v1model,
    colours: [meter::GREEN, meter::YELLOW, meter::RED],
    own_validity: &[],
};

const TNA: Rules = Rules {
    cell_copies: PIPES as u64 + 1,
    invalid: InvalidFields::Written,
    counts_hits: false,
    pads_left: false,
    pads_headers: true,
    algorithm: Algorithm::of_tofino,
    // `MeterColor_t`
    colours: [0, 1, 3],
    own_validity: &[
        (
            "ingress_intrinsic_metadata_for_tm_t",
            &["ucast_egress_port", "mcast_grp_a", "mcast_grp_b"],
        ),
        (
            "ingress_intrinsic_metadata_for_deparser_t",
            &["digest_type", "resubmit_type", "mirror_type"],
        ),
        ("egress_intrinsic_metadata_for_deparser_t", &["mirror_type"]),
    ],
};

impl Rules {
    /// Of the program's architecture.
    pub fn of(program: &Program) -> &'static Rules {
        match program.arch {
            Arch::Psa | Arch::Other(_) => &PSA,
            Arch::V1model => &V1MODEL,
            Arch::Tna | Arch::T2na => &TNA,
        }
    }

    /// Whether a value of the type takes whole bytes in a packet, however many bits its fields have.
    pub fn is_padded(&self, ty: &StructType) -> bool {
        let flexible = || ty.annotations.iter().any(|a| a.name == "flexible");
        self.pads_headers && (ty.kind == StructKind::Header || flexible())
    }

    /// Whether the field has a validity, in the slot that follows it.
    pub fn own_validity(&self, owner: &StructType, field: &FieldType) -> bool {
        let mut owners = self.own_validity.iter();
        owners.any(|(name, fields)| *name == owner.name && fields.contains(&&*field.name))
    }
}
