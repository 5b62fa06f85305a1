//! The whole P4 source of a program: p4src's files, embedded, and the generated text among them.

use crate::generate::Generated;

/// An architecture that p4src has a `main.p4` for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// Portable Switch Architecture: the embedded switch, BMv2's `psa_switch`.
    Psa,
    /// BMv2's `simple_switch`.
    V1model,
    /// Tofino.
    Tna,
}

impl Arch {
    /// All of them.
    pub const ALL: [Arch; 3] = [Arch::Psa, Arch::V1model, Arch::Tna];

    /// Its folder in p4src.
    pub fn name(self) -> &'static str {
        match self {
            Arch::Psa => "psa",
            Arch::V1model => "v1model",
            Arch::Tna => "tna",
        }
    }

    /// The path of the file to compile, among those of [`program`].
    pub fn main_path(self) -> String {
        format!("{}/main.p4", self.name())
    }
}

macro_rules! p4src {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../p4src/", $path)))),*]
    };
}

const COMMON: &[(&str, &str)] = p4src![
    "common/types.p4",
    "common/headers.p4",
    "common/aggregate_types.p4",
    "common/fault.p4",
    "common/values32.p4",
    "common/values64.p4",
    "common/values256.p4",
    "common/values2048.p4",
    "common/aggregate.p4",
    "common/roce_types.p4",
    "common/roce_sum.p4",
    "common/job_guard.p4",
    "common/forward.p4",
];
const PSA: &[(&str, &str)] = p4src![
    "psa/externs.p4",
    "psa/slots.p4",
    "psa/roce.p4",
    "psa/guard.p4",
    "psa/flow_hash.p4",
    "psa/main.p4"
];
const V1MODEL: &[(&str, &str)] = p4src![
    "v1model/externs.p4",
    "v1model/slots.p4",
    "v1model/roce.p4",
    "v1model/guard.p4",
    "v1model/flow_hash.p4",
    "v1model/main.p4"
];
const TNA: &[(&str, &str)] = p4src!["tna/externs.p4", "tna/slots.p4", "tna/main.p4"];

/// Path and text of every file of the program but the architecture's own declarations (`<core.p4>`, `<psa.p4>` …).
///
/// Paths are relative to p4src, and so are the `#include`s in them: `generated.p4` and `engine.p4` stand beside `main.p4`.
pub fn program(arch: Arch, generated: &Generated) -> Vec<(String, String)> {
    let own = match arch {
        Arch::Psa => PSA,
        Arch::V1model => V1MODEL,
        Arch::Tna => TNA,
    };
    let mut files: Vec<(String, String)> = COMMON
        .iter()
        .chain(own)
        .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
        .collect();
    files.push((
        format!("{}/generated.p4", arch.name()),
        generated.p4.clone(),
    ));
    files.push((
        format!("{}/engine.p4", arch.name()),
        generated.engine(arch).to_owned(),
    ));
    files
}
