//! BMv2's switches: compiled for with the user's p4c, connected to; in a test bed also started.

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
pub use start::{Job, Running, StartError, start};

/// Why a switch of BMv2's cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// It is not installed.
    #[error(transparent)]
    Missing(#[from] MissingTool),
    /// p4c.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A folder or a file.
    #[error("cannot use {what}: {source}")]
    Io {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Thrift is not looked up by name.
    #[error("`{0}` is not an address of the form IP:PORT")]
    Address(String),
    /// The session with it.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// The tools that a kind needs; missing ones are told before anything is started.
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

/// As [`check`], for switches that run already.
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

/// A program in the form that a kind of switch takes: as it is for the embedded one, else what p4c makes of it.
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

/// A session with a switch that runs already.
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
