//! The macros that p4c's driver defines for a target, selected by the architecture file that a program includes.

/// Macros that BMv2's compiler drivers define (`p4c-bm2-ss`, `p4c-bm2-psa`).
const BMV2: &[(&str, &str)] = &[("__TARGET_BMV2__", "1")];
/// Macros that Tofino's compiler driver defines.
const TOFINO: &[(&str, &str)] = &[
    ("__TARGET_TOFINO__", "1"),
    ("__p4c__", "1"),
    ("__p4c_major__", "9"),
    ("__p4c_minor__", "13"),
    ("__p4c_patchlevel__", "4"),
    ("__p4c_version__", "\"9.13.4\""),
];
/// Macros that Tofino 2's compiler driver defines. Tofino 2 has several variants; variant 1 is the plain one.
const TOFINO2: &[(&str, &str)] = &[
    ("__TARGET_TOFINO__", "2"),
    ("__TOFINO2_VARIANT__", "1"),
    ("__p4c__", "1"),
    ("__p4c_major__", "9"),
    ("__p4c_minor__", "13"),
    ("__p4c_patchlevel__", "4"),
    ("__p4c_version__", "\"9.13.4\""),
];

/// The macros (name, value) that a driver defines for a program that includes these files; none without an architecture's file.
pub(super) fn macros(files: &[String]) -> &'static [(&'static str, &'static str)] {
    let of = |file: &String| match file.rsplit('/').next()? {
        "v1model.p4" | "psa.p4" => Some(BMV2),
        "tna.p4" => Some(TOFINO),
        "t2na.p4" => Some(TOFINO2),
        _ => None,
    };
    files.iter().find_map(of).unwrap_or_default()
}

/// Whether a source text may depend on a macro that a compiler driver defines.
pub(super) fn asks(text: &str) -> bool {
    ["__TARGET_", "__TOFINO2_VARIANT__", "__p4c_"]
        .iter()
        .any(|name| text.contains(name))
}
