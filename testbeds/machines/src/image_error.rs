//! Why there is no image of a machine.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file, or a program that was to be started.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// A program of apt or dpkg failed.
    #[error("{what} failed: {message}")]
    Command {
        /// Which.
        what: String,
        /// What it wrote.
        message: String,
    },
    /// apt knows no such package.
    #[error("apt has no kernel behind the package {0}")]
    Package(String),
    /// No package has a library that is needed.
    #[error("{of} needs {name}, which no package has")]
    Library {
        /// Which.
        name: String,
        /// What needs it.
        of: PathBuf,
    },
    /// The kernel lacks a module.
    #[error("the kernel has no module {0}")]
    Module(String),
    /// A program, library or module that cannot be read.
    #[error("{path}: {source}")]
    Elf {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        source: object::Error,
    },
    /// It took too long.
    #[error("the time for the machines' image is over")]
    Late,
    /// Made of other files than these, or not at all.
    #[error("there is no image in {0}")]
    Missing(PathBuf),
}

impl ImageError {
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}
