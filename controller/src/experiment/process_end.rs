//! Describes in words how a process ended.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use testbeds::host::{Process, ProcessError};

/// The last line that is not empty of a process's standard error; `None` if there is none.
pub fn last_words(process: &mut Process) -> Option<String> {
    let said = process.stderr();
    said.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .map(str::to_owned)
}

/// Describes how a process that has closed its output ended: the signal, or its last line of output, or its exit status.
pub fn how_it_ended(process: &mut Process) -> Result<String, ProcessError> {
    let Some(status) = process.wait(Duration::from_secs(5))? else {
        return Ok("it closed its output".to_owned());
    };
    if status.signal().is_some() {
        // The standard library writes "signal: 9 (SIGKILL)".
        let signal = status.to_string().replacen("signal: ", "signal ", 1);
        return Ok(format!("{signal} ended it"));
    }
    Ok(last_words(process).unwrap_or_else(|| status.to_string()))
}
