//! Builds the complete P4 source of a program: the embedded files of p4src, and the generated files.

use crate::arch::Arch;
use crate::generate::Generated;

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

/// Path and text of every file of a program, except the architecture's declarations (`<core.p4>`, `<psa.p4>` …).
///
/// Paths, and the `#include`s in the files, are relative to p4src. `generated.p4` and `engine.p4` are in the folder of `main.p4`.
pub fn program(arch: Arch, generated: &Generated) -> Vec<(String, String)> {
    let own = match arch {
        Arch::Psa => PSA,
        Arch::V1model => V1MODEL,
        Arch::Tna => TNA,
    };
    let embedded = COMMON.iter().chain(own);
    let embedded = embedded.map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
    let mut files: Vec<(String, String)> = embedded.collect();
    let own = [
        ("generated", generated.p4.as_str()),
        ("engine", generated.engine(arch)),
    ];
    files.extend(own.map(|(name, text)| (format!("{}/{name}.p4", arch.name()), text.to_owned())));
    files
}
