//! The archive of which the kernel makes its first file system: cpio, "new ASCII" (initramfs-buffer-format of the kernel's
//! documentation).

use std::collections::BTreeSet;
use std::io::{self, Write};

const TRAILER: &str = "TRAILER!!!";
const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_000;

/// An archive that is written. Folders are made before what lies in them.
pub(crate) struct Archive<W: Write> {
    to: W,
    folders: BTreeSet<String>,
    entries: u32,
}

impl<W: Write> Archive<W> {
    pub(crate) fn new(to: W) -> Self {
        let folders = BTreeSet::new();
        Self {
            to,
            folders,
            entries: 0,
        }
    }

    /// Adds a file; `path` begins at the root, without a slash.
    pub(crate) fn file(&mut self, path: &str, permissions: u32, content: &[u8]) -> io::Result<()> {
        for (end, _) in path.match_indices('/') {
            if self.folders.insert(path[..end].to_owned()) {
                self.entry(&path[..end], DIRECTORY, &[])?;
            }
        }
        self.entry(path, REGULAR | permissions, content)
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry(TRAILER, 0, &[])?;
        Ok(self.to)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let size = u32::try_from(content.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.entries += 1;
        let name_size = path.len() as u32 + 1;
        // Inode, mode, user, group, links, time, size, device and special device (major, minor each), name's size, no checksum.
        let fields = [
            self.entries,
            mode,
            0,
            0,
            1,
            0,
            size,
            0,
            0,
            0,
            0,
            name_size,
            0,
        ];
        let mut header = String::from("070701");
        for field in fields {
            header.push_str(&format!("{field:08x}"));
        }
        self.to.write_all(header.as_bytes())?;
        self.to.write_all(path.as_bytes())?;
        self.to.write_all(&[0])?;
        self.pad(header.len() + path.len() + 1)?;
        self.to.write_all(content)?;
        self.pad(content.len())
    }

    /// Headers and contents begin at multiples of four.
    fn pad(&mut self, length: usize) -> io::Result<()> {
        let padding = length.next_multiple_of(4) - length;
        self.to.write_all(&[0; 3][..padding])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn busybox_s_and_gnu_s_cpio_read_it() -> io::Result<()> {
        let mut archive = Archive::new(Vec::new());
        archive.file("a/b/three", 0o755, b"123")?;
        archive.file("a/four", 0o644, b"1234")?;
        let bytes = archive.finish()?;
        assert_eq!(bytes.len() % 4, 0);
        // As the format has it, whoever reads it: magic, thirteen fields, name, content.
        assert!(bytes.starts_with(b"07070100000001000041ed"));
        if !test_support::has_program("cpio", "cpio") {
            return Ok(());
        }
        let mut cpio = Command::new("cpio")
            .args(["--list", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        cpio.stdin.take().expect("a pipe").write_all(&bytes)?;
        let output = cpio.wait_with_output()?;
        assert_eq!(output.stdout, b"a\na/b\na/b/three\na/four\n");
        Ok(())
    }
}
