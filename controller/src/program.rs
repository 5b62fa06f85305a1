//! The P4 program of one switch: generated for the plan's flows, checked, and converted to the form that the switch loads.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cli_io::disk::Disk;
use p4lang::diagnostics::Diagnostics;
use p4lang::p4info::P4Info;
use p4lang::runtime::TableEntry;
use p4lang::tofino::Chip;
use parser_gen::{Arch, GenerateError, Generated, Note};
use scenario::plan::SwitchPlan;
use scenario::plan::names;

/// A P4 program of a switch, compiled and ready to be loaded.
#[derive(Debug, Clone)]
pub struct Program {
    /// P4Info of the program: the tables, actions, registers and counters that a controller may address.
    pub p4info: P4Info,
    /// The preprocessed P4 text, which the embedded switch loads.
    pub device_config: Vec<u8>,
    /// Table entries for the match tables that parser-gen generated, of ingress and egress.
    pub classify: Vec<TableEntry>,
    /// Names of the parsing failures that the program counts; each index is that of the failure's counter cell.
    pub notes: Vec<Note>,
    /// Text of each P4 source file, by path.
    pub sources: BTreeMap<String, String>,
}

/// Why no program could be built for a switch.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The initial table entries cannot be written as JSON.
    #[error("switch {switch}: {error}")]
    Written {
        /// Name of the switch whose program is built.
        switch: String,
        /// Error of the JSON serializer.
        error: serde_json::Error,
    },
    /// The generator cannot build a program for the filters.
    #[error("switch {switch}: {source}")]
    Generate {
        /// Name of the switch whose program is built.
        switch: String,
        /// Error of the generator of P4 text.
        source: GenerateError,
    },
    /// A file of `--p4src` cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// Path of the file that cannot be read.
        path: PathBuf,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// The compiler found errors in the program.
    #[error("switch {switch}: the P4 program has errors\n{rendered}")]
    Compile {
        /// Name of the switch whose program is built.
        switch: String,
        /// The compiler's diagnostics, as printed.
        rendered: String,
    },
}

/// Generates and checks the program of a switch by its plan. Files in the folder `p4src` replace the built-in P4 files of the
/// same path.
pub fn build(
    arch: Arch,
    planned: &SwitchPlan,
    p4src: Option<&Path>,
) -> Result<Program, ProgramError> {
    let switch = planned.name.as_str();
    let generated = generate(planned)?;
    let mut sources: BTreeMap<String, String> =
        parser_gen::program(arch, &generated).into_iter().collect();
    if let Some(folder) = p4src {
        override_sources(&mut sources, folder)?;
    }
    let compiled = compile(arch, switch, &sources, &p4lang::Options::default())?;
    // The built-in text never changes; warnings about a folder's text concern the user.
    if p4src.is_some() && !compiled.warnings.is_empty() {
        cli_io::stderr::tell(format_args!(
            "switch {switch}:\n{}",
            compiled.warnings.render(false)
        ));
    }
    let mut classify = generated.entries_for(names::classify::INGRESS);
    classify.extend(generated.entries_for(names::classify::EGRESS));
    Ok(Program {
        p4info: compiled.p4info,
        device_config: compiled.preprocessed.into_bytes(),
        classify,
        notes: generated.notes,
        sources,
    })
}

/// Generates and checks a switch's program for a Tofino chip; returns it compiled, with the text of each source by path.
pub fn for_chip(
    chip: Chip,
    planned: &SwitchPlan,
) -> Result<(p4lang::Compiled, BTreeMap<String, String>), ProgramError> {
    let generated = generate(planned)?;
    let sources: BTreeMap<String, String> = parser_gen::program(Arch::Tna, &generated)
        .into_iter()
        .collect();
    let generation = match chip {
        Chip::Tofino => "1",
        Chip::Tofino2 => "2",
    };
    let options = p4lang::Options {
        defines: vec![("__TARGET_TOFINO__".to_owned(), generation.to_owned())],
        ..p4lang::Options::default()
    };
    let compiled = compile(Arch::Tna, &planned.name, &sources, &options)?;
    Ok((compiled, sources))
}

/// Table entries that the controller writes into a switch before the timeline begins, as JSON.
pub fn written(arch: Arch, planned: &SwitchPlan) -> Result<String, ProgramError> {
    let generated = generate(planned)?;
    let written = serde_json::to_string_pretty(&planned.written(arch, &generated));
    written.map_err(|error| ProgramError::Written {
        switch: planned.name.clone(),
        error,
    })
}

fn generate(planned: &SwitchPlan) -> Result<Generated, ProgramError> {
    let generated = planned.generate();
    generated.map_err(|source| ProgramError::Generate {
        switch: planned.name.clone(),
        source,
    })
}

pub(crate) fn compile(
    arch: Arch,
    switch: &str,
    sources: &BTreeMap<String, String>,
    options: &p4lang::Options,
) -> Result<p4lang::Compiled, ProgramError> {
    let mut files = p4lang::Files::new();
    for (path, text) in sources {
        files.insert(path, text.clone());
    }
    p4lang::compile(&files, &arch.main_path(), options).map_err(|diagnostics: Diagnostics| {
        ProgramError::Compile {
            switch: switch.to_owned(),
            rendered: diagnostics.render(false),
        }
    })
}

fn override_sources(
    sources: &mut BTreeMap<String, String>,
    folder: &Path,
) -> Result<(), ProgramError> {
    for (path, text) in sources.iter_mut() {
        let file = folder.join(path);
        match Disk::read(&file) {
            Ok(own) => *text = own,
            // weir generates this file, and a folder may replace only some of the others.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => {}
            Err(source) => return Err(ProgramError::Read { path: file, source }),
        }
    }
    Ok(())
}
