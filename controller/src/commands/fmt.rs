//! `weir p4 fmt`: formats P4 source files in place, or checks that they are formatted.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use cli_io::disk;

use super::{ERROR, FAILED, fail, print};
use crate::cli::p4::P4Fmt;

/// The path that stands for the standard input on the command line.
const STDIN: &str = "-";

/// Performs `weir p4 fmt`: formats all files, or lists unformatted ones; an error in one file does not stop the others.
pub fn main(args: &P4Fmt) -> ExitCode {
    let mut worst = 0;
    for file in &args.files {
        let done = match file.as_os_str() == STDIN {
            true => input(args.check),
            false => one(file, args.check),
        };
        worst = worst.max(match done {
            Ok(true) => 0,
            Ok(false) => FAILED,
            Err(()) => ERROR,
        });
    }
    ExitCode::from(worst)
}

/// Formats a file in place. With `check`, prints its name instead, and returns `Ok(false)`, if it is not formatted.
fn one(file: &Path, check: bool) -> Result<bool, ()> {
    let cannot = |what: &str, error: std::io::Error| {
        fail(format_args!("cannot {what} {}: {error}", file.display()));
    };
    let bytes = disk::bytes(file).map_err(|error| cannot("read", error))?;
    let name = file.display().to_string();
    let (before, after) = formatted(&name, bytes)?;
    if before == after {
        Ok(true)
    } else if check {
        print_line(format_args!("{name}\n")).map(|()| false)
    } else {
        replace(file, &after).map_err(|error| cannot("write", error))?;
        Ok(true)
    }
}

/// Formats the standard input to the standard output. With `check`, returns `Ok(false)` if it is not formatted.
fn input(check: bool) -> Result<bool, ()> {
    let bytes = disk::all_of(std::io::stdin()).map_err(|error| {
        fail(format_args!("cannot read the standard input: {error}"));
    })?;
    let name = "<stdin>";
    let (before, after) = formatted(name, bytes)?;
    match check {
        false => print_line(&after).map(|()| true),
        true if before == after => Ok(true),
        true => print_line(format_args!("{name}\n")).map(|()| false),
    }
}

/// Returns a P4 source text, and its formatted form. Prints the errors if the text cannot be formatted.
fn formatted(name: &str, bytes: Vec<u8>) -> Result<(String, String), ()> {
    let before = p4lang::source_text(bytes).map_err(|why| {
        fail(format_args!("cannot read {name}: {why}"));
    })?;
    match p4lang::format::format(name, &before) {
        Ok(after) => Ok((before, after)),
        Err(diagnostics) => {
            cli_io::stderr::tell(format_args!(
                "{}",
                diagnostics.render(super::colour::is_coloured())
            ));
            Err(())
        }
    }
}

fn print_line(text: impl std::fmt::Display) -> Result<(), ()> {
    print(text).map_err(|_| ())
}

/// Replaces the content of a file atomically: the file has either the whole old text or the whole new one; a link stays a link.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let file = file.canonicalize()?;
    // A user who may not write the file may not replace it either.
    let permissions = std::fs::OpenOptions::new()
        .write(true)
        .open(&file)?
        .metadata()?
        .permissions();
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(permissions)?;
    new.persist(&file)?;
    Ok(())
}
