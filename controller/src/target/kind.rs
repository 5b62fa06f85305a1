//! The kinds of switches on which weir runs P4 programs.

use std::fmt;

use clap::ValueEnum;
use parser_gen::Arch;
use scenario::TargetModel;

/// A kind of switch that runs the programs of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Kind {
    /// The software switch in this program
    #[default]
    Embedded,
    /// BMv2 with v1model, by P4Runtime; needs p4c-bm2-ss
    SimpleSwitchGrpc,
    /// BMv2 with PSA, by Thrift; needs p4c-bm2-psa
    PsaSwitch,
}

impl Kind {
    /// P4 architecture of the programs for this kind of switch.
    pub fn arch(self) -> Arch {
        match self {
            Kind::Embedded | Kind::PsaSwitch => Arch::Psa,
            Kind::SimpleSwitchGrpc => Arch::V1model,
        }
    }

    /// Abilities and limits of this kind of switch, as plans take them into account.
    pub fn model(self) -> TargetModel {
        match self {
            Kind::Embedded => TargetModel::EMBEDDED,
            Kind::SimpleSwitchGrpc => TargetModel::SIMPLE_SWITCH_GRPC,
            Kind::PsaSwitch => TargetModel::PSA_SWITCH,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Embedded => "embedded",
            Kind::SimpleSwitchGrpc => "simple_switch_grpc",
            Kind::PsaSwitch => "psa_switch",
        })
    }
}
