//! Compiles programs for BMv2 with the user's p4c, opens sessions with BMv2's switches, and starts them in a testbed.

#[cfg(feature = "testbed")]
mod start;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bmv2::compile::{Backend, CompileError, compile};
use bmv2::tools::{MissingTool, Tool, Tools};
use tokio::runtime::Runtime;

use super::{Kind, P4Runtime, PsaSwitch, Target, TargetError};

#[cfg(feature = "testbed")]
pub use start::{Launch, RunningSwitch, StartError, start};

/// Why weir cannot attach to a running switch.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// p4c or BMv2 is not installed.
    #[error(transparent)]
    Missing(#[from] MissingTool),
    /// p4c could not compile the program.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A temporary folder or file cannot be used.
    #[error("cannot use {what}: {source}")]
    Io {
        /// The folder or file in words.
        what: &'static str,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The address does not have the form IP:PORT (host names are not resolved for Thrift); contains the address.
    #[error("`{0}` is not an address of the form IP:PORT")]
    Address(String),
    /// The session with the switch returned an error.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Checks that BMv2 and p4c are installed, if this kind of switch needs them, before anything is started.
pub fn check(kind: Kind, tools: &Tools) -> Result<(), MissingTool> {
    let needed: &[Tool] = match kind {
        Kind::Embedded => &[],
        Kind::SimpleSwitchGrpc => &[Tool::P4cBm2Ss, Tool::SimpleSwitchGrpc],
        Kind::PsaSwitch => &[Tool::P4cBm2Psa, Tool::PsaSwitch],
    };
    needed
        .iter()
        .try_for_each(|tool| tools.find(*tool).map(drop))
}

/// Checks that p4c is installed, if this kind of switch needs it. For switches that already run, BMv2 need not be installed.
pub fn check_compiler(kind: Kind, tools: &Tools) -> Result<(), MissingTool> {
    match backend(kind) {
        Some(backend) => tools.find(backend.tool()).map(drop),
        None => Ok(()),
    }
}

fn backend(kind: Kind) -> Option<Backend> {
    match kind {
        Kind::Embedded => None,
        Kind::SimpleSwitchGrpc => Some(Backend::V1model),
        Kind::PsaSwitch => Some(Backend::Psa),
    }
}

/// Converts a program into the form that the switch loads: P4 text for the embedded switch, or p4c's JSON for BMv2.
pub fn device_config(
    kind: Kind,
    tools: &Tools,
    sources: &BTreeMap<String, String>,
    preprocessed: &[u8],
) -> Result<Vec<u8>, AttachError> {
    let Some(backend) = backend(kind) else {
        return Ok(preprocessed.to_vec());
    };
    let io = |source| AttachError::Io {
        what: "what p4c wrote",
        source,
    };
    let folder = tempfile::Builder::new()
        .prefix("weir-p4c-")
        .tempdir()
        .map_err(io)?;
    let json = compile(
        tools,
        backend,
        sources,
        &kind.arch().main_path(),
        folder.path(),
    )?;
    std::fs::read(json).map_err(io)
}

/// Opens a session with a running switch at `address` (IP:PORT).
pub fn connect(
    kind: Kind,
    runtime: &Arc<Runtime>,
    switch: &str,
    address: &str,
    device_id: u64,
) -> Result<Box<dyn Target>, AttachError> {
    if kind != Kind::PsaSwitch {
        let target = P4Runtime::connect(Arc::clone(runtime), switch, address, device_id)?;
        return Ok(Box::new(match kind {
            Kind::Embedded => target.swapping(),
            Kind::SimpleSwitchGrpc | Kind::PsaSwitch => target,
        }));
    }
    let parsed = address
        .parse()
        .map_err(|_| AttachError::Address(address.to_owned()))?;
    Ok(Box::new(PsaSwitch::connect(switch, parsed)?))
}
