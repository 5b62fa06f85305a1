//! Compiles P4 text with the user's p4c to BMv2's JSON.
//!
//! The declarations of the architecture come from weir (p4src/include), so that p4c and p4lang read the same text.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::Key;
use crate::mend;
use crate::tools::{MissingTool, Tool, Tools};

/// Architecture of a P4 program for BMv2; decides which p4c back end compiles it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// v1model, for the BMv2 switch `simple_switch_grpc`.
    V1model,
    /// PSA, for the BMv2 switch `psa_switch`.
    Psa,
}

impl Backend {
    /// The p4c executable that compiles this architecture.
    #[must_use]
    pub fn tool(self) -> Tool {
        match self {
            Backend::V1model => Tool::P4cBm2Ss,
            Backend::Psa => Tool::P4cBm2Psa,
        }
    }

    /// Preprocessor macros for p4c that weir's P4 text needs. PSA leaves the unit of time stamps open; `psa_switch` uses
    /// microseconds.
    #[must_use]
    pub fn macros(self) -> &'static [&'static str] {
        match self {
            Backend::V1model => &[],
            Backend::Psa => &["NS_PER_TICK=1000"],
        }
    }
}

/// Why p4c did not compile a program.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// p4c is not installed.
    #[error(transparent)]
    Missing(#[from] MissingTool),
    /// A file of the compilation cannot be read or written.
    #[error("cannot compile for BMv2: {}: {source}", .path.display())]
    Io {
        /// Path of the file that cannot be read or written.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// p4c rejected the program.
    #[error("{} does not take the program ({status}):\n{said}", .tool.display())]
    Refused {
        /// Path of the p4c executable.
        tool: PathBuf,
        /// Exit status of p4c.
        status: std::process::ExitStatus,
        /// Last lines of p4c's standard error.
        said: String,
    },
}

/// Maximum number of lines of p4c's standard error that an error message shows.
const LINES_SHOWN: usize = 40;

/// Files of architecture declarations that weir's P4 programs include.
const INCLUDES: [&str; 3] = ["core.p4", "psa.p4", "v1model.p4"];

/// Writes the P4 files (path and text) to `folder`, compiles them, and returns the path of the JSON for BMv2. The JSON of a
/// program that was compiled before comes from the cache of `tools`.
pub fn compile(
    tools: &Tools,
    backend: Backend,
    sources: &BTreeMap<String, String>,
    main: &str,
    folder: &Path,
) -> Result<PathBuf, CompileError> {
    let tool = tools.find(backend.tool())?;
    let json = folder.join(format!("{}.json", backend.tool()));
    let slot = tools
        .cache
        .as_ref()
        .map(|cache| cache.slot(key(&tool, backend, sources, main)));
    if slot.as_ref().is_some_and(|slot| slot.fetch(&json)) {
        return Ok(json);
    }
    for (path, text) in sources {
        write(&folder.join(path), text)?;
    }
    let include = folder.join("include");
    for (name, text) in includes() {
        write(&include.join(name), text)?;
    }
    let mut command = Command::new(&tool);
    command
        .current_dir(folder)
        .args(["--std", "p4-16", "-I"])
        .arg(&include);
    for definition in backend.macros() {
        command.arg(format!("-D{definition}"));
    }
    command.arg("-o").arg(&json).arg(folder.join(main));
    let output = command.output().map_err(|source| CompileError::Io {
        path: tool.clone(),
        source,
    })?;
    if !output.status.success() || !json.is_file() {
        return Err(CompileError::Refused {
            tool,
            status: output.status,
            said: tail(&String::from_utf8_lossy(&output.stderr)),
        });
    }
    complete(&json)?;
    if let Some(slot) = slot {
        slot.keep(&json);
    }
    Ok(json)
}

/// Adds to p4c's JSON the declarations that p4c omits; see [`mend`]. Invalid JSON stays as it is, and fails when it is parsed.
fn complete(json: &Path) -> Result<(), CompileError> {
    let io = |source| CompileError::Io {
        path: json.to_owned(),
        source,
    };
    let text = std::fs::read(json).map_err(io)?;
    if let Ok(mut program) = serde_json::from_slice(&text)
        && mend::declare_stacks(&mut program)
    {
        std::fs::write(json, program.to_string()).map_err(io)?;
    }
    Ok(())
}

fn includes() -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = |name| p4lang::preprocess::builtin(name).map(|text| (name, text));
    INCLUDES.into_iter().filter_map(text)
}

/// Cache key of a compilation: the hash of all inputs that [`compile`] passes to p4c.
fn key(tool: &Path, backend: Backend, sources: &BTreeMap<String, String>, main: &str) -> Key {
    let mut key = Key::of_compiler(tool);
    for name in backend.macros().iter().chain([&main]) {
        key.add(name.as_bytes());
    }
    for (name, text) in includes() {
        key.add(name.as_bytes());
        key.add(text.as_bytes());
    }
    for (path, text) in sources {
        key.add(path.as_bytes());
        key.add(text.as_bytes());
    }
    key
}

fn write(path: &Path, text: &str) -> Result<(), CompileError> {
    let written = path
        .parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(path, text));
    written.map_err(|source| CompileError::Io {
        path: path.to_owned(),
        source,
    })
}

fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
}
