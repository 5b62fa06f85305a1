//! Makes what virtual machines boot, and nothing else of what `cargo xtask test` makes: `cargo run -p machines --example image`.
//! Where `WEIR_MACHINES` says, or in the workspace's target folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// For a slow network.
const LIMIT: Duration = Duration::from_secs(900);

fn main() -> Result<(), machines::ImageError> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let folder = std::env::var_os(machines::FOLDER_VARIABLE);
    let folder = folder.map_or(machines::folder(&target), PathBuf::from);
    machines::Image::make(&folder, LIMIT)?;
    println!("the machines' image is in {}", folder.display());
    Ok(())
}
