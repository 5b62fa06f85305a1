//! Sources on the disk. What is larger than a program may be is not read to its end: it may have none.

use p4lang::LIMITS;
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::path::Path;

/// Files where their names say.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Disk {
    /// A file's text. Errors: those of [`bytes`], `InvalidData` for what is no text.
    pub fn read(path: &Path) -> Result<String, Error> {
        p4lang::source_text(bytes(path)?).map_err(|why| Error::new(ErrorKind::InvalidData, why))
    }
}

impl p4lang::Loader for Disk {
    fn load(&self, path: &str) -> Option<String> {
        Disk::read(Path::new(path)).ok()
    }

    fn why_not(&self, path: &str) -> Option<String> {
        match Disk::read(Path::new(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Some(error.to_string()),
            _ => None,
        }
    }
}

/// A file's name as `#include` and `#line` have it. Errors: `InvalidInput`; one that is no UTF-8 cannot stand there.
pub fn name(path: &Path) -> Result<&str, Error> {
    let why = || Error::new(ErrorKind::InvalidInput, "its name is not UTF-8");
    path.to_str().ok_or_else(why)
}

/// What a file holds. Errors: as [`all_of`].
pub fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    all_of(File::open(path)?)
}

/// What there is to read. Errors: what the system says, `FileTooLarge` for more than [`p4lang::Limits::source_bytes`].
pub fn all_of(source: impl Read) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let most = LIMITS.source_bytes;
    source.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let why = format!("it has more than {} MiB", most >> 20);
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}
