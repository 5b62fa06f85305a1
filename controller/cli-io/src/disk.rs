//! Reads P4 sources and other texts from files or the standard input, up to the size limit of a P4 program.

use p4lang::LIMITS;
use std::fs::File;
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Loads P4 sources for p4lang from files, by their paths.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Disk {
    /// Reads the text of a file. Errors: those of [`bytes`]; `InvalidData` if the content is not UTF-8 text.
    pub fn read(path: &Path) -> Result<String, Error> {
        p4lang::source_text(bytes(path)?).map_err(|why| Error::new(ErrorKind::InvalidData, why))
    }
}

impl p4lang::Loader for Disk {
    fn load(&self, path: &str) -> Option<String> {
        Disk::read(Path::new(path)).ok()
    }

    fn why_not(&self, path: &str) -> Option<String> {
        match Disk::read(Path::new(path)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Some(error.to_string()),
            _ => None,
        }
    }
}

/// Returns a path as text, as `#include` and `#line` need it. Error: `InvalidInput` if the path is not UTF-8.
pub fn name(path: &Path) -> Result<&str, Error> {
    let why = || Error::new(ErrorKind::InvalidInput, "its name is not UTF-8");
    path.to_str().ok_or_else(why)
}

/// Reads the text of a file, without a byte order mark; `-` is the standard input. Errors: those of [`bytes`]; `InvalidData` if
/// the content is not UTF-8 text.
pub fn text(path: &Path) -> Result<String, Error> {
    let bytes = if is_stdin(path) {
        all_of(std::io::stdin().lock())?
    } else {
        bytes(path)?
    };
    let text = std::io::read_to_string(&bytes[..])?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    })
}

/// Whether a path stands for the standard input: `-`.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a file. Errors: those of [`all_of`]; `InvalidInput` for a pipe, socket or device, as reading a pipe without a writer
/// would block. A file that is open already, such as `/dev/stdin` or `/dev/fd/3`, is read whatever its kind.
pub fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let open_already = path.starts_with("/dev/fd") || path == Path::new("/dev/stdin");
    let what = std::fs::metadata(path)?.file_type();
    // For a folder, reading returns the system's error.
    let why = if open_already || what.is_file() || what.is_dir() {
        None
    } else if what.is_fifo() {
        Some("it is a pipe, not a file")
    } else if what.is_socket() {
        Some("it is a socket, not a file")
    } else {
        Some("it is a device, not a file")
    };
    match why {
        Some(why) => Err(Error::new(ErrorKind::InvalidInput, why)),
        None => all_of(File::open(path)?),
    }
}

/// Reads a source to its end. Errors: those of the system; `FileTooLarge` for more than [`p4lang::Limits::source_bytes`].
pub fn all_of(source: impl Read) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let most = LIMITS.source_bytes;
    source.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        let why = format!("it has more than {} MiB", most >> 20);
        return Err(Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn the_mark_at_the_beginning_of_a_text_is_no_part_of_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("s.yaml");
        std::fs::write(&file, "\u{feff}weir: 1\u{feff}").expect("written");
        assert_eq!(text(&file).expect("text"), "weir: 1\u{feff}");
        std::fs::write(&file, b"\xff\xfe").expect("written");
        let error = text(&file).expect_err("no text");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn what_is_no_file_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe.p4");
        // Nobody writes to it.
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).expect("a pipe");
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket.p4"));
        let main = folder.path().join("main.p4");
        for (name, why) in [
            ("pipe.p4", "it is a pipe, not a file"),
            ("socket.p4", "it is a socket, not a file"),
            ("/dev/zero", "it is a device, not a file"),
        ] {
            std::fs::write(&main, format!("\n#include \"{name}\"\n")).expect("written");
            let options = p4lang::Options::default();
            let path = main.to_str().expect("UTF-8");
            let found = p4lang::compile(&Disk, path, &options).expect_err("an error");
            let said = found.short();
            let first = said.lines().next().unwrap_or_default();
            assert!(
                first.contains(":2:1: error[include]: cannot read"),
                "{first}"
            );
            assert!(first.ends_with(why), "{first}");
        }
    }
}
