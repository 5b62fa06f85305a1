//! Unpacks the kernel from its boot file. QEMU boots the unpacked kernel too, without emulating the decompression, which takes longer
//! than the rest of the boot.

use std::io::{Seek, Write};
use std::process::{Command, Stdio};

const SECTOR: usize = 512;
const ELF: &[u8] = b"\x7fELF";

/// The uncompressed kernel in a bzImage; `None` if it is not compressed with xz, or this computer has no xz.
pub(crate) fn unpacked(image: &[u8]) -> Option<Vec<u8>> {
    let mut packed = tempfile::tempfile().ok()?;
    packed.write_all(payload(image)?).ok()?;
    packed.rewind().ok()?;
    let mut xz = Command::new("xz");
    xz.args(["--decompress", "--stdout", "--single-stream", "--quiet"]);
    // The stream is followed by its length, on which xz fails. So the magic shows success, not the exit status.
    let output = xz.stdin(packed).stderr(Stdio::null()).output().ok()?;
    output.stdout.starts_with(ELF).then_some(output.stdout)
}

/// The compressed part of a bzImage by its setup header (x86 boot protocol 2.08: setup_sects, payload_offset, payload_length).
fn payload(image: &[u8]) -> Option<&[u8]> {
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let field = |at: usize| {
        let bytes = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let setup_sectors = usize::from(image[0x1f1]);
    let start = (setup_sectors + 1) * SECTOR + field(0x248)?;
    image.get(start..start.checked_add(field(0x24c)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_have_no_payload() {
        assert_eq!(payload(&[]), None);
        assert_eq!(payload(&[0; 4096]), None);
        let mut image = vec![0; 2048];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248] = 16;
        image[0x24c] = 3;
        image[1024 + 16..1024 + 19].copy_from_slice(b"abc");
        assert_eq!(payload(&image), Some(&b"abc"[..]));
        assert_eq!(unpacked(&image), None);
        image[0x24c..0x250].fill(0xff);
        assert_eq!(payload(&image), None);
    }
}
