//! Program behind `cargo xtask bench collectives`: runs one subject in its own user and network namespace (`unshare -rn`).
#![allow(clippy::disallowed_methods, reason = "it measures")]

mod bed;
mod collective;
mod exchange;
mod nics;
mod rivals;
mod write;

use anyhow::{Result, bail};

fn main() -> Result<()> {
    match std::env::args().nth(1).as_deref() {
        Some("write_cpu") => write::measure(),
        Some("all_gather") => collective::measure(exchange::Kind::AllGather),
        Some("all_to_all") => collective::measure(exchange::Kind::AllToAll),
        Some("nics") => nics::measure(),
        _ => bail!("use one of write_cpu, all_gather, all_to_all, nics"),
    }
}
