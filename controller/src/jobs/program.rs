//! Builds the P4 program, without faults, of a switch for which `weir job` admits and releases jobs while it runs.

use std::collections::BTreeMap;

use p4lang::p4info::P4Info;
use parser_gen::{Arch, FrameValues, Library, Options, generate, program};

use crate::program::{ProgramError, compile};

/// Builds the P4 program for jobs; returns its P4Info, and the text that the embedded switch loads.
pub fn build(switch: &str) -> Result<(P4Info, Vec<u8>), ProgramError> {
    let options = Options {
        aggregate: Some(FrameValues::V256),
        guards_jobs: true,
        ..Options::default()
    };
    let generated = generate(&Library::builtin(), &[], &options);
    let generated = generated.map_err(|source| ProgramError::Generate {
        switch: switch.to_owned(),
        source,
    })?;
    let sources: BTreeMap<String, String> = program(Arch::Psa, &generated).into_iter().collect();
    let compiled = compile(Arch::Psa, switch, &sources, &p4lang::Options::default())?;
    Ok((compiled.p4info, compiled.preprocessed.into_bytes()))
}
