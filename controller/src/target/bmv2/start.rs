//! Starts the process of a BMv2 switch, waits until it listens, and loads its program.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bmv2::compile::{Backend, CompileError, compile};
use bmv2::launch::{self, Features};
use bmv2::tools::{MissingTool, Tool, Tools};
use tempfile::TempDir;
use testbeds::host::{Output, Process, ProcessError};
use testbeds::net::{NetError, Netlink};
use tokio::runtime::Runtime;

use crate::target::{
    Clock, Item, Kind, LeaseSession, P4Runtime, PortCount, PsaSwitch, Query, Target, TargetError,
    UpdateType,
};
use p4lang::p4info::P4Info;

/// Timeout for a started switch to accept connections.
const START_TIMEOUT: Duration = Duration::from_secs(15);
/// Interval between checks whether a started switch accepts connections.
const LOOK: Duration = Duration::from_millis(10);
/// Registered TCP port of P4Runtime; the next one is BMv2's default for Thrift. A switch adds its device id to both.
const P4RUNTIME_PORT: u16 = 9559;
const THRIFT_PORT: u16 = 9090;

/// Why a BMv2 switch could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// p4c or BMv2 is not installed.
    #[error(transparent)]
    Missing(#[from] MissingTool),
    /// p4c could not compile the program.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A folder, a file, or BMv2's program cannot be used.
    #[error("cannot start {what}: {source}")]
    Io {
        /// The folder, file or program in words.
        what: String,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The switch's process could not be started or read.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The `psa_switch` was built without Thrift, so weir cannot control it; contains its path.
    #[error("{} was built without Thrift, and cannot be controlled: install a BMv2 with Thrift", .0.display())]
    NoThrift(PathBuf),
    /// The switch's process ended, or accepts no connections.
    #[error("{program} of switch {switch} did not start: {reason}")]
    Silent {
        /// Name of the switch.
        switch: String,
        /// Name of BMv2's program, such as `psa_switch`.
        program: &'static str,
        /// How the process ended with its last line of output, or that no program listens.
        reason: String,
    },
    /// The session with the switch returned an error.
    #[error(transparent)]
    Target(#[from] TargetError),
}

/// Settings with which a BMv2 switch is started.
pub struct Launch<'a> {
    /// The kind of BMv2 switch.
    pub kind: Kind,
    /// Name of the switch in the topology.
    pub switch: &'a str,
    /// Device id of the switch, from 1; the TCP ports on which the switch listens depend on it.
    pub device_id: u64,
    /// Number and interface name of each port.
    pub ports: Vec<(u32, String)>,
    /// P4Info of the program to load.
    pub p4info: &'a P4Info,
    /// Text of each P4 source file of the program, by path.
    pub sources: &'a BTreeMap<String, String>,
    /// Path of the switch's log file; `None` to write no log.
    pub log: Option<PathBuf>,
}

/// A running BMv2 switch with its program. When this value is dropped, the process is killed and the folder is deleted.
pub struct RunningSwitch {
    /// The session with the switch.
    pub target: Box<dyn Target>,
    /// The switch's process.
    pub process: Process,
    /// Folder with p4c's output and the switch's sockets.
    pub folder: TempDir,
}

/// Compiles the program, starts the switch, and loads the program. `spawn` starts the process in the interfaces' namespace.
pub fn start(
    tools: &Tools,
    runtime: &Arc<Runtime>,
    job: &Launch<'_>,
    spawn: impl FnOnce(Command) -> Result<Process, StartError>,
) -> Result<RunningSwitch, StartError> {
    let io = |what: &str| {
        let what = what.to_owned();
        move |source| StartError::Io { what, source }
    };
    let (backend, tool) = match job.kind {
        Kind::SimpleSwitchGrpc => (Backend::V1model, Tool::SimpleSwitchGrpc),
        Kind::PsaSwitch | Kind::Embedded => (Backend::Psa, Tool::PsaSwitch),
    };
    let program = tools.find(tool)?;
    let folder = tempfile::Builder::new().prefix("weir-bmv2-").tempdir();
    let folder = folder.map_err(io("a folder for BMv2"))?;
    let main = job.kind.arch().main_path();
    let json = compile(tools, backend, job.sources, &main, folder.path())?;
    let features = Features::of(&program).map_err(io(tool.program()))?;
    let listening =
        |base: u16| base.saturating_add(u16::try_from(job.device_id).unwrap_or(u16::MAX));
    let options = launch::Options {
        device_id: job.device_id,
        ports: job.ports.clone(),
        thrift_port: listening(THRIFT_PORT),
        log: job.log.clone(),
        folder: folder.path().to_owned(),
    };
    let (command, port) = if tool == Tool::SimpleSwitchGrpc {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listening(P4RUNTIME_PORT)));
        let command = launch::simple_switch_grpc(&program, features, &options, address);
        (command, address.port())
    } else {
        if !features.thrift {
            return Err(StartError::NoThrift(program));
        }
        let command = launch::with_program(&program, features, &options, &json);
        (command, options.thrift_port)
    };
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut process = spawn(command)?;
    await_listening(job.switch, tool.program(), &mut process, address)?;
    let mut target: Box<dyn Target> = if tool == Tool::SimpleSwitchGrpc {
        let (switch, address) = (job.switch, address.to_string());
        Box::new(P4Runtime::connect(
            Arc::clone(runtime),
            switch,
            &address,
            job.device_id,
        )?)
    } else {
        Box::new(PsaSwitch::connect(job.switch, address)?)
    };
    let text = std::fs::read(&json).map_err(io("BMv2's JSON"))?;
    target.load(job.p4info, &text)?;
    Ok(RunningSwitch {
        target: Box::new(OnInterfaces {
            target,
            ports: job.ports.clone(),
        }),
        process,
        folder,
    })
}

/// Waits until the switch accepts connections; an error if its process ends before, or if it takes too long.
fn await_listening(
    switch: &str,
    program: &'static str,
    process: &mut Process,
    address: SocketAddr,
) -> Result<(), StartError> {
    let start = Instant::now();
    let mut said = String::new();
    let silent = |reason: String| StartError::Silent {
        switch: switch.to_owned(),
        program,
        reason,
    };
    loop {
        // BMv2 prints errors on its standard output.
        while let Output::Line(line) = process.next_line(Duration::ZERO) {
            said = line;
        }
        if let Some(status) = process.try_wait()? {
            while let Output::Line(line) = process.next_line(LOOK) {
                said = line;
            }
            let words = process.stderr();
            let last = words.lines().rfind(|line| !line.trim().is_empty());
            return Err(silent(format!(
                "{status}: {}",
                last.unwrap_or(&said).trim()
            )));
        }
        if TcpStream::connect_timeout(&address, LOOK).is_ok() {
            return Ok(());
        }
        if start.elapsed() > START_TIMEOUT {
            let waited = START_TIMEOUT.as_secs();
            return Err(silent(format!(
                "no program listens at {address} after {waited} s"
            )));
        }
        std::thread::sleep(LOOK);
    }
}

/// A session with a BMv2 switch, which has no port counters: its counts are those of the ports' network interfaces.
struct OnInterfaces {
    target: Box<dyn Target>,
    ports: Vec<(u32, String)>,
}

impl OnInterfaces {
    fn counts(&self) -> Result<Vec<PortCount>, NetError> {
        let netlink = Netlink::open()?;
        let count = |(port, interface): &(u32, String)| {
            let counters = netlink.counters(interface)?;
            Ok(PortCount {
                port: *port,
                rx_frames: counters.rx_frames,
                rx_bytes: counters.rx_bytes,
                tx_frames: counters.tx_frames,
                tx_bytes: counters.tx_bytes,
                errors: counters.rx_dropped + counters.tx_dropped,
                rx_lost_frames: counters.rx_dropped,
                tx_lost_frames: counters.tx_dropped,
                tx_marked_frames: 0,
            })
        };
        self.ports.iter().map(count).collect()
    }
}

impl Target for OnInterfaces {
    fn name(&self) -> &str {
        self.target.name()
    }

    fn load(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError> {
        self.target.load(p4info, device_config)
    }

    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError> {
        self.target.write(updates)
    }

    fn read(&mut self, queries: &[Query]) -> Result<Vec<Item>, TargetError> {
        self.target.read(queries)
    }

    fn clock(&mut self) -> Result<Clock, TargetError> {
        self.target.clock()
    }

    fn lease_session(&self, runtime: &Arc<Runtime>) -> Result<Box<dyn LeaseSession>, TargetError> {
        self.target.lease_session(runtime)
    }

    fn port_counts(&mut self) -> Result<Vec<PortCount>, TargetError> {
        self.counts().map_err(|error| TargetError::PortCounters {
            switch: self.target.name().to_owned(),
            reason: error.to_string(),
        })
    }
}
