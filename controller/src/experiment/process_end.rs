//! How a process ended, in words.

use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use testbeds::host::{Process, ProcessError};

/// The last line that a process wrote to its standard error.
pub fn last_words(process: &mut Process) -> Option<String> {
    let said = process.stderr();
    said.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .map(str::to_owned)
}

/// How a process ended whose output is closed: the signal that ended it, or its last words, or its exit status.
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
