//! Reads and writes files; an error names the file.

use std::path::Path;

use anyhow::{Context, Result};

pub fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
    let path = path.as_ref();
    std::fs::write(path, content).with_context(|| path.display().to_string())
}
