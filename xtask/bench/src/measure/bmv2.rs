//! Finds an installed BMv2 for comparison, and compiles its program, before anything is measured.

use bmv2::cache::Cache;
use bmv2::compile::{Backend, compile};
use bmv2::launch::{self, Features, Options};
use bmv2::tools::{Tool, Tools};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A BMv2 switch to compare with, and its compiled program.
#[derive(Debug)]
pub struct Rival {
    program: PathBuf,
    json: PathBuf,
    /// Folder of the compiled program and of BMv2's socket.
    folder: PathBuf,
    /// Temporary folder, removed when this value is dropped; `None` if another process created the folder.
    _temporary: Option<tempfile::TempDir>,
}

/// Default Thrift port of BMv2; the namespace has no other BMv2.
const THRIFT_PORT: u16 = 9090;
/// Environment variable that passes a [`Rival`] to a process in another namespace.
const RIVAL: &str = "WEIR_BENCH_RIVAL";

impl Rival {
    /// Finds a switch in `folders`, in WEIR_BMV2_DIR, or on the PATH. The switch's program is
    /// `json`, or p4c's output for the P4 text `text`. The error is a short reason.
    pub fn find(
        tool: Tool,
        text: &str,
        folders: &[PathBuf],
        json: Option<&Path>,
    ) -> Result<Rival, String> {
        let mut folders = folders.to_vec();
        if let Some(more) = std::env::var_os("WEIR_BMV2_DIR") {
            folders.extend(std::env::split_paths(&more));
        }
        let tools = Tools::here(&folders).caching(Cache::of_user());
        let program = tools
            .find(tool)
            .map_err(|_| format!("{tool} is not installed"))?;
        let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
        let folder = temporary.path().to_owned();
        let json = match json {
            Some(json) => std::path::absolute(json).map_err(|error| error.to_string())?,
            None => {
                let main = "bench.p4";
                let sources = BTreeMap::from([(main.to_owned(), text.to_owned())]);
                compile(&tools, Backend::V1model, &sources, main, &folder)
                    .map_err(|error| format!("{tool} is there, but no JSON for it: {error}"))?
            }
        };
        Ok(Rival {
            program,
            json,
            folder,
            _temporary: Some(temporary),
        })
    }

    /// Environment variable (name, value) that passes this [`Rival`] to a child; drop the `Rival` after the child ends.
    pub fn env(&self) -> (&'static str, std::ffi::OsString) {
        let paths = [&self.program, &self.json, &self.folder];
        (RIVAL, std::env::join_paths(paths).unwrap_or_default())
    }

    /// Reads the environment variable of [`Rival::env`]; `None` if it is not set.
    pub fn from_env() -> Option<Rival> {
        let paths = std::env::var_os(RIVAL)?;
        let paths: Vec<PathBuf> = std::env::split_paths(&paths).collect();
        let [program, json, folder] = paths.try_into().ok()?;
        Some(Rival {
            program,
            json,
            folder,
            _temporary: None,
        })
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// BMv2's version: the output of its `--version`.
    pub fn version(&self) -> String {
        let printed = Command::new(&self.program).arg("--version").output();
        let printed = printed.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&printed).trim().to_owned()
    }

    pub fn json(&self) -> &Path {
        &self.json
    }

    /// Command line of BMv2's simple_switch_grpc, without interfaces and without a program;
    /// P4Runtime listens on `address`, Thrift on `thrift_port`.
    pub fn grpc_command(
        &self,
        device_id: u64,
        address: SocketAddr,
        thrift_port: u16,
    ) -> std::io::Result<Command> {
        let options = self.options(device_id, &[], thrift_port);
        let features = Features::of(&self.program)?;
        Ok(launch::simple_switch_grpc(
            &self.program,
            features,
            &options,
            address,
        ))
    }

    /// Command line of BMv2's simple_switch with these ports: (port number, interface).
    pub fn command(&self, ports: &[(u32, &str)]) -> std::io::Result<Command> {
        let options = self.options(0, ports, THRIFT_PORT);
        let features = Features::of(&self.program)?;
        Ok(launch::with_program(
            &self.program,
            features,
            &options,
            &self.json,
        ))
    }

    fn options(&self, device_id: u64, ports: &[(u32, &str)], thrift_port: u16) -> Options {
        Options {
            device_id,
            ports: ports
                .iter()
                .map(|(port, interface)| (*port, (*interface).to_owned()))
                .collect(),
            thrift_port,
            log: None,
            folder: self.folder.clone(),
        }
    }
}
