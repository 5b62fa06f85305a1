//! What `cargo xtask bench collectives` measures with: a subject, in a user and network namespace of its own (`unshare -rn`).
#![allow(clippy::disallowed_methods, reason = "it measures")]

mod bed;
mod write;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("write_cpu") => write::measure(),
        _ => bail!("name a subject: write_cpu"),
    }
}
