//! Reads and writes files; an error names the file.

use std::path::Path;

use anyhow::{Context, Result};

pub fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    std::fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Memory of this process in KiB by a field of proc_pid_status(5), such as `VmRSS:`.
pub fn memory_kib(field: &str) -> Result<u64> {
    let status = read("/proc/self/status")?;
    let mut words = status.split_whitespace().skip_while(|word| *word != field);
    let kib = words.nth(1).and_then(|word| word.parse().ok());
    kib.with_context(|| format!("/proc/self/status has no {field}"))
}

pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
    let path = path.as_ref();
    std::fs::write(path, content).with_context(|| path.display().to_string())
}
