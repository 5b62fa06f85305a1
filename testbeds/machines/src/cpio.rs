//! Writes an initramfs: a cpio archive in the "new ASCII" format (the kernel's documentation, initramfs-buffer-format).

use std::collections::BTreeSet;
use std::io::{self, Write};

const TRAILER: &str = "TRAILER!!!";
const DIRECTORY: u32 = 0o040_755;
const REGULAR: u32 = 0o100_000;

/// Writer of a cpio archive. It adds each folder before the files in it.
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

    /// Adds a file to the archive; `path` has no leading slash.
    pub(crate) fn file(&mut self, path: &str, permissions: u32, content: &[u8]) -> io::Result<()> {
        for (end, _) in path.match_indices('/') {
            if self.folders.insert(path[..end].to_owned()) {
                self.entry(&path[..end], DIRECTORY, &[])?;
            }
        }
        self.entry(path, REGULAR | permissions, content)
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.entry(TRAILER, 0, &[])?;
        Ok(self.to)
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) -> io::Result<()> {
        let size = u32::try_from(content.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        self.entries += 1;
        let name_size = path.len() as u32 + 1;
        // Inode, mode, user, group, links, time, size, device, special device (major, minor each), name's size, no checksum.
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

    /// Adds zeros after `length` bytes up to a multiple of four, at which headers and contents start.
    fn pad(&mut self, length: usize) -> io::Result<()> {
        let padding = length.next_multiple_of(4) - length;
        self.to.write_all(&[0; 3][..padding])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Name, mode and content of each entry of an archive.
    fn entries(mut bytes: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
        let mut entries = Vec::new();
        while !bytes.is_empty() {
            let (magic, fields) = bytes[..110].split_at(6);
            assert_eq!(magic, b"070701");
            let field = |number: usize| {
                let digits = std::str::from_utf8(&fields[8 * number..8 * number + 8]);
                u32::from_str_radix(digits.expect("a text"), 16).expect("a number")
            };
            let (mode, size, name_size) = (field(1), field(6) as usize, field(11) as usize);
            let name = &bytes[110..110 + name_size];
            let (end, name) = name.split_last().expect("a name");
            assert_eq!(*end, 0);
            let start = (110 + name_size).next_multiple_of(4);
            let content = bytes[start..start + size].to_vec();
            entries.push((String::from_utf8_lossy(name).into_owned(), mode, content));
            bytes = &bytes[(start + size).next_multiple_of(4)..];
        }
        entries
    }

    #[test]
    fn files_stand_behind_their_folders_and_keep_their_bytes() -> io::Result<()> {
        let mut archive = Archive::new(Vec::new());
        archive.file("a/b/three", 0o755, b"123")?;
        archive.file("a/four", 0o644, b"1234")?;
        let entry = |name: &str, mode, content: &[u8]| (name.to_owned(), mode, content.to_vec());
        let expected = [
            entry("a", 0o040_755, b""),
            entry("a/b", 0o040_755, b""),
            entry("a/b/three", 0o100_755, b"123"),
            entry("a/four", 0o100_644, b"1234"),
            entry("TRAILER!!!", 0, b""),
        ];
        assert_eq!(entries(&archive.finish()?), expected);
        Ok(())
    }
}
