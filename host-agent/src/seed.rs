//! Random initial numbers: a peer or switch that remembers an earlier connection or job cannot mistake a new one for it.

use std::fs::File;
use std::io::{self, Read};

/// A random number from the system.
///
/// # Errors
/// If /dev/urandom cannot be read.
pub fn from_system() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
