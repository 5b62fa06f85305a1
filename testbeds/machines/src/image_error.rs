//! Errors of opening and making an image.

use std::io;
use std::path::{Path, PathBuf};

/// Error of an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file cannot be accessed, or a program cannot be started.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file, or name of the program.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A program of apt or dpkg failed.
    #[error("{what} failed: {message}")]
    Command {
        /// The command.
        what: String,
        /// Its standard error.
        message: String,
    },
    /// A metapackage has no kernel.
    #[error("neither the package {0} nor its dependencies contain a kernel")]
    Package(String),
    /// No package has a needed library.
    #[error("no package has the library {name}, which {of} needs")]
    Library {
        /// Name of the library.
        name: String,
        /// The file that needs it.
        of: PathBuf,
    },
    /// The kernel lacks a module.
    #[error("the kernel has no module {0}")]
    Module(String),
    /// A program, library or module cannot be parsed.
    #[error("{path}: {source}")]
    Elf {
        /// Path of the file.
        path: PathBuf,
        /// The reason.
        source: object::Error,
    },
    /// The time limit was exceeded.
    #[error("the image was not made within its time limit; run the command again")]
    Late,
    /// The folder has no image, or one of another version.
    #[error("there is no image of this version in {0}")]
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
