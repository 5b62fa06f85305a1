//! BMv2's switches: compiles programs with the user's p4c, connects to the switches, and starts them in a testbed.

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

/// Why a BMv2 switch cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// A tool is not installed.
    #[error(transparent)]
    Missing(#[from] MissingTool),
    /// An error of p4c.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A folder or a file cannot be used.
    #[error("cannot use {what}: {source}")]
    Io {
        /// Description of the folder or file.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The address is not of the form IP:PORT; host names are not resolved for Thrift.
    #[error("`{0}` is not an address of the form IP:PORT")]
    Address(String),
    /// An error of the session with the switch.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Checks that the tools for a kind of switch are installed, before anything is started.
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

/// Checks, as [`check`] does, the tools for switches that run already.
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

/// A program in the form that a kind of switch loads: unchanged for the embedded one, else compiled by p4c.
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

/// Opens a session with a running switch.
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
