//! Differences between the architectures that generic code must know: one set of rules each. Everything specific to one
//! architecture is in its folder of `arch`.

use crate::externs::hash::Algorithm;
use crate::externs::meter;
use crate::port_numbers::PIPES;
use p4lang::ast::StructKind;
use p4lang::ir::{Arch, FieldType, Program, StructType};

/// The contents of an invalid header's fields, which P4_16 8.17 leaves open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InvalidFields {
    /// The fields of an invalid header are 0; a write to them has no effect.
    #[default]
    Zero,
    /// The fields of an invalid header hold written values until `setInvalid`: a Tofino's containers have no validity.
    Written,
    /// The fields of an invalid header keep earlier values and take writes, as in BMv2: `setInvalid`, `setValid` and the
    /// assignment of an invalid header change only the validity. In a table's key and in hashed data, such a field counts as 0.
    Kept,
}

impl InvalidFields {
    /// Whether a write to a field of an invalid header has an effect.
    pub fn are_written(self) -> bool {
        self != InvalidFields::Zero
    }
}

/// The rules by which an architecture differs from the others, for generic code.
#[derive(Debug)]
pub struct Rules {
    /// Number of copies of the cells of registers, counters and meters: one per pipe, and one for pipes that are not yet used.
    pub cell_copies: u64,
    /// The contents of an invalid header's fields.
    pub invalid: InvalidFields,
    /// Whether direct counters and meters work at every hit of a table entry, whether or not its action calls them.
    pub counts_hits: bool,
    /// Whether data to hash is padded to whole bytes on the left (BMv2 does so for PSA) instead of the right.
    pub pads_left: bool,
    /// Whether headers, and structs annotated `@flexible`, are padded to whole bytes at the end.
    pub pads_headers: bool,
    /// Converts the name of a hash algorithm in the architecture's include file; `None`: no algorithm has the name.
    pub algorithm: fn(&str) -> Option<Algorithm>,
    /// The architecture's values of the colors green, yellow and red, if colors are numbers and not an enum.
    pub colours: [u64; 3],
    /// Intrinsic metadata fields that are invalid (not 0) until the program assigns them: names of structs and fields.
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
    algorithm: Algorithm::from_v1model,
    colours: [meter::GREEN, meter::YELLOW, meter::RED],
    own_validity: &[],
};

const TNA: Rules = Rules {
    cell_copies: PIPES as u64 + 1,
    invalid: InvalidFields::Written,
    counts_hits: false,
    pads_left: false,
    pads_headers: true,
    algorithm: Algorithm::from_tofino,
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
    /// The rules of the program's architecture.
    pub fn for_program(program: &Program) -> &'static Rules {
        match program.arch {
            Arch::Psa | Arch::Other(_) => &PSA,
            Arch::V1model => &V1MODEL,
            Arch::Tna | Arch::T2na => &TNA,
        }
    }

    /// Whether a value of this header or struct type takes whole bytes in a packet, whatever the width of its fields.
    pub fn is_padded(&self, ty: &StructType) -> bool {
        let flexible = || ty.annotations.iter().any(|a| a.name == "flexible");
        self.pads_headers && (ty.kind == StructKind::Header || flexible())
    }

    /// Whether the field has a validity of its own, in the slot after it, as in some of TNA's intrinsic metadata.
    pub fn own_validity(&self, owner: &StructType, field: &FieldType) -> bool {
        let mut owners = self.own_validity.iter();
        owners.any(|(name, fields)| *name == owner.name && fields.contains(&&*field.name))
    }
}
