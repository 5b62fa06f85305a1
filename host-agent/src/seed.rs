//! Numbers to begin with that nobody has had: a peer, or a switch, that remembers an earlier life must not take this one for it.

use std::fs::File;
use std::io::{self, Read};

/// From the system.
///
/// # Errors
/// /dev/urandom cannot be read.
pub fn from_system() -> io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
