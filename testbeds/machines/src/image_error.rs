//! Errors of opening or making the image that virtual machines boot.

use std::io;
use std::path::{Path, PathBuf};

/// Error of opening or making an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file cannot be accessed, or a program cannot be started.
    #[error("{path}: {source}")]
    Io {
        /// Path of the file, or name of the program.
        path: PathBuf,
        /// Error that the operating system reported.
        source: io::Error,
    },
    /// A command line of apt or dpkg failed.
    #[error("{what} failed: {message}")]
    Command {
        /// The command line that failed.
        what: String,
        /// Standard error of the command.
        message: String,
    },
    /// The metapackage with this name depends on no kernel package.
    #[error("neither the package {0} nor its dependencies contain a kernel")]
    Package(String),
    /// No downloaded package contains a shared library that a program needs.
    #[error("no package has the library {name}, which {of} needs")]
    Library {
        /// Name of the missing library.
        name: String,
        /// The program or library that needs the missing library.
        of: PathBuf,
    },
    /// The kernel lacks the module with this name.
    #[error("the kernel has no module {0}")]
    Module(String),
    /// The ELF file of a program, library or module cannot be parsed.
    #[error("{path}: {source}")]
    Elf {
        /// Path of the file that cannot be parsed.
        path: PathBuf,
        /// The parser's error.
        source: object::Error,
    },
    /// Making the image exceeded its time limit.
    #[error("the image was not made within its time limit; run the command again")]
    Late,
    /// The folder has no image, or the image of another version of this crate.
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
