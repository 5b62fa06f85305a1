//! Opens the file of an HTML report before a run, and writes it afterwards.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use super::{fail, print};

/// The file of an HTML report. It is opened before the run, so that an unusable path does not cost the results of the run.
pub struct ReportFile<'a> {
    path: &'a Path,
    file: File,
    /// Whether the file did not exist before and is still empty; it is then deleted when this value is dropped.
    is_new: bool,
}

impl<'a> ReportFile<'a> {
    /// Opens or creates the file; the report of an earlier run stays until [`Self::write`].
    pub fn open(path: &'a Path) -> Result<Self, ExitCode> {
        let is_new = !path.exists();
        let opened = File::options().append(true).create(true).open(path);
        let file = opened.map_err(|error| cannot_write(path, &error))?;
        Ok(Self { path, file, is_new })
    }

    /// Replaces the content of the file by the report, and, unless `quiet`, prints its path.
    pub fn write(mut self, html: &str, quiet: bool) -> Result<(), ExitCode> {
        // A pipe or other special file cannot be truncated, and has nothing to lose.
        let cut = match self.file.metadata() {
            Ok(metadata) if metadata.is_file() => self.file.set_len(0),
            other => other.map(drop),
        };
        let written = cut.and_then(|()| self.file.write_all(html.as_bytes()));
        written.map_err(|error| cannot_write(self.path, &error))?;
        self.is_new = false;
        if quiet {
            Ok(())
        } else {
            print(format_args!("report: {}\n", self.path.display()))
        }
    }
}

impl Drop for ReportFile<'_> {
    fn drop(&mut self) {
        if self.is_new {
            // No report was written.
            let _ = std::fs::remove_file(self.path);
        }
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> ExitCode {
    fail(format_args!(
        "cannot write the report {}: {error}",
        path.display()
    ))
}
