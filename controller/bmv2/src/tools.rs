//! Finds the executables of BMv2 and p4c on this machine: in given folders, else on the PATH.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cache::Cache;

/// An executable of BMv2 or p4c.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    /// BMv2's switch for v1model programs, controlled by P4Runtime.
    SimpleSwitchGrpc,
    /// BMv2's switch for PSA programs, controlled by Thrift.
    PsaSwitch,
    /// BMv2's switch for v1model programs, controlled by Thrift; benchmarks compare weir's switch with it.
    SimpleSwitch,
    /// p4c's back end that compiles v1model programs for BMv2.
    P4cBm2Ss,
    /// p4c's back end that compiles PSA programs for BMv2.
    P4cBm2Psa,
}

impl Tool {
    /// All executables of BMv2 and p4c that weir can use.
    pub const ALL: [Tool; 5] = [
        Tool::SimpleSwitchGrpc,
        Tool::PsaSwitch,
        Tool::SimpleSwitch,
        Tool::P4cBm2Ss,
        Tool::P4cBm2Psa,
    ];

    /// File name of the executable.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Tool::SimpleSwitchGrpc => "simple_switch_grpc",
            Tool::PsaSwitch => "psa_switch",
            Tool::SimpleSwitch => "simple_switch",
            Tool::P4cBm2Ss => "p4c-bm2-ss",
            Tool::P4cBm2Psa => "p4c-bm2-psa",
        }
    }

    /// Part of an error message: the project that contains the executable, and its URL.
    fn origin(self) -> &'static str {
        match self {
            Tool::SimpleSwitchGrpc => {
                "it is part of BMv2 (github.com/p4lang/behavioral-model), built with -DWITH_PI=ON"
            }
            Tool::PsaSwitch | Tool::SimpleSwitch => {
                "it is part of BMv2 (github.com/p4lang/behavioral-model)"
            }
            Tool::P4cBm2Ss | Tool::P4cBm2Psa => "it is part of p4c (github.com/p4lang/p4c)",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

/// An executable of BMv2 or p4c was not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{tool} was not found{}; {}. No package registry has it: build it from source, then put it on the PATH or name its folder with --bmv2-dir",
    searched(.folders), .tool.origin()
)]
pub struct MissingTool {
    /// The executable that was not found.
    pub tool: Tool,
    /// Folders that were searched before the PATH.
    pub folders: Vec<PathBuf>,
}

fn searched(folders: &[PathBuf]) -> String {
    if folders.is_empty() {
        return " on the PATH".to_owned();
    }
    let folders: Vec<String> = folders
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    format!(" in {} nor on the PATH", folders.join(", "))
}

/// Finds the executables of BMv2 and p4c: contains the folders to search, and the cache of p4c's output.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    folders: Vec<PathBuf>,
    path: Vec<PathBuf>,
    pub(crate) cache: Option<Cache>,
}

impl Tools {
    /// Searches these folders and their `bin` subfolders first, then the given PATH.
    #[must_use]
    pub fn new(folders: &[PathBuf], path: Option<&OsStr>) -> Tools {
        Tools {
            folders: folders.to_vec(),
            path: path.map_or_else(Vec::new, |path| std::env::split_paths(path).collect()),
            cache: None,
        }
    }

    /// Searches these folders and their `bin` subfolders first, then this process's PATH.
    #[must_use]
    pub fn here(folders: &[PathBuf]) -> Tools {
        Tools::new(folders, std::env::var_os("PATH").as_deref())
    }

    /// Adds a cache of p4c's output, so that p4c compiles a program only once; `None` for no cache.
    #[must_use]
    pub fn caching(self, cache: Option<Cache>) -> Tools {
        Tools { cache, ..self }
    }

    /// Finds the path of an executable, or returns an error that says where to get it.
    pub fn find(&self, tool: Tool) -> Result<PathBuf, MissingTool> {
        let named = self
            .folders
            .iter()
            .flat_map(|folder| [folder.clone(), folder.join("bin")]);
        named
            .chain(self.path.iter().cloned())
            .map(|folder| folder.join(tool.program()))
            .find(|file| is_executable(file))
            // The tool is started from another folder, so its path must be absolute.
            .and_then(|file| std::path::absolute(file).ok())
            .ok_or_else(|| MissingTool {
                tool,
                folders: self.folders.clone(),
            })
    }
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}
