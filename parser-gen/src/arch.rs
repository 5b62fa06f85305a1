//! Switch architectures for which P4 programs are generated: PSA, v1model and TNA.

/// Architecture of a switch's P4 program; p4src has a `main.p4` for each architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// Portable Switch Architecture: the embedded switch and BMv2's `psa_switch`.
    Psa,
    /// v1model: the architecture of BMv2's `simple_switch`.
    V1model,
    /// Tofino Native Architecture.
    Tna,
}

impl Arch {
    /// All architectures that programs are generated for.
    pub const ALL: [Arch; 3] = [Arch::Psa, Arch::V1model, Arch::Tna];

    /// Name of the architecture's folder in p4src.
    pub fn name(self) -> &'static str {
        match self {
            Arch::Psa => "psa",
            Arch::V1model => "v1model",
            Arch::Tna => "tna",
        }
    }

    /// Path of the P4 file to compile, among the files of [`crate::program()`].
    pub fn main_path(self) -> String {
        format!("{}/main.p4", self.name())
    }
}
