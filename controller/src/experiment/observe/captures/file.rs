//! Writes and reads `SWITCH.pcapng`: frames that passed the ports of a switch, one interface per port, with a comment on each
//! hit frame. Times are in nanoseconds. <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html>

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use proof::{Sight, Way};
use testbeds::capture::Frame;

/// Resolution of time stamps as pcapng's `if_tsresol` has it: 9 means 10⁻⁹ seconds.
const NANOSECONDS: u8 = 9;
/// Value of the two lowest bits of `epb_flags` for a frame that arrived at the switch; the next constant is for one that left.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
/// Upper bound of a pcapng block's size without the frame and its comments, in bytes.
const BLOCK_BYTES: usize = 64;

/// Name of the capture file of a switch.
pub fn file_name(switch: &str) -> String {
    format!("{switch}.pcapng")
}

/// Writes the capture file of a switch.
pub struct Writer(PcapNgWriter<BufWriter<File>>);

/// Time, direction and length of a captured frame.
#[derive(Debug, Clone, Copy)]
pub struct Head {
    /// When the frame passed the port, in nanoseconds since 1970.
    pub at_ns: u64,
    /// Whether the frame entered or left the switch.
    pub way: Way,
    /// Length of the frame on the link, in bytes without FCS.
    pub wire_len: u32,
}

impl From<&Sight<'_>> for Head {
    fn from(sight: &Sight<'_>) -> Head {
        Head {
            at_ns: sight.at_ns,
            way: sight.way,
            wire_len: sight.wire_len,
        }
    }
}

/// A frame with its comments, as the capture file contains them.
#[derive(Debug, Clone, Copy)]
pub struct Written<'f> {
    /// Time, direction and length of the frame.
    pub head: Head,
    /// The first bytes of the frame, as many as are kept.
    pub bytes: &'f [u8],
    /// One comment for each fault that hit the frame, or should have hit it.
    pub comments: &'f [String],
}

impl Written<'_> {
    /// Upper bound of the frame's size in the capture file, in bytes.
    pub fn size(&self) -> u64 {
        let comments = self.comments.iter().map(|comment| comment.len() + 8);
        (BLOCK_BYTES + self.bytes.len() + comments.sum::<usize>()) as u64
    }
}

impl Writer {
    /// Creates the capture file of a switch; each of `ports` becomes an interface, in this order.
    pub fn create(path: &Path, switch: &str, ports: &[u32]) -> io::Result<Writer> {
        let file = BufWriter::new(File::create(path)?);
        let mut pcapng = PcapNgWriter::new(file).map_err(io::Error::other)?;
        for port in ports {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(format!("{switch} port {port}").into()),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            pcapng
                .write_pcapng_block(interface)
                .map_err(io::Error::other)?;
        }
        Ok(Writer(pcapng))
    }

    /// Writes a frame that passed a port; `port` is the index of the port's interface in the file.
    pub fn write(&mut self, port: usize, frame: &Written<'_>) -> io::Result<()> {
        let comments = frame.comments.iter();
        let comments = comments.map(|text| EnhancedPacketOption::Comment(text.as_str().into()));
        let flags = EnhancedPacketOption::Flags(match frame.head.way {
            Way::In => INBOUND,
            Way::Out => OUTBOUND,
        });
        let block = EnhancedPacketBlock {
            interface_id: port as u32,
            timestamp: Duration::from_nanos(frame.head.at_ns),
            original_len: frame.head.wire_len,
            data: Cow::Borrowed(frame.bytes),
            options: comments.chain([flags]).collect(),
        };
        let written = self.0.write_pcapng_block(block);
        written.map(drop).map_err(io::Error::other)
    }

    /// Writes all buffered frames to the file.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }
}

/// Why a capture file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file system returned an error.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The content of the capture file is invalid.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Path of the file.
        path: PathBuf,
        /// Why the content is invalid.
        reason: String,
    },
}

/// Iterates over a switch's captured frames in order of time, each with the index of its port's interface. Frames of one port
/// keep their order: one with an earlier time than its predecessor is sorted by the predecessor's time.
pub struct Reader {
    path: PathBuf,
    pcapng: PcapNgReader<BufReader<File>>,
    ports: usize,
    is_cut: bool,
    frames: usize,
}

impl Reader {
    /// Opens the capture file of a switch with `ports` ports. `is_cut`: the file may end within a frame.
    pub fn open(
        folder: &Path,
        switch: &str,
        ports: usize,
        is_cut: bool,
    ) -> Result<Reader, ReadError> {
        let path = folder.join(file_name(switch));
        let opened = match std::fs::metadata(&path).is_ok_and(|is| !is.is_file()) {
            true => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is not a file",
            )),
            false => File::open(&path),
        };
        let file = opened.map_err(|source| ReadError::File {
            path: path.clone(),
            source,
        })?;
        match PcapNgReader::new(BufReader::new(file)) {
            Ok(pcapng) => Ok(Reader {
                path,
                pcapng,
                ports,
                is_cut,
                frames: 0,
            }),
            Err(error) => Err(ReadError::Content {
                path,
                reason: error.to_string(),
            }),
        }
    }
}

impl Iterator for Reader {
    type Item = Result<(usize, Frame), ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let frame = match self.pcapng.next_block()? {
                Ok(Block::EnhancedPacket(packet)) => {
                    self.frames += 1;
                    frame(&packet, self.ports)
                        .map_err(|defect| format!("frame {} {defect}", self.frames))
                }
                Ok(_) => continue,
                Err(_) if self.is_cut => return None,
                Err(error) => Err(format!("after {} frames: {error}", self.frames)),
            };
            return Some(frame.map_err(|reason| ReadError::Content {
                path: self.path.clone(),
                reason,
            }));
        }
    }
}

fn frame(packet: &EnhancedPacketBlock<'_>, ports: usize) -> Result<(usize, Frame), &'static str> {
    let port = packet.interface_id as usize;
    if port >= ports {
        return Err("belongs to an interface that the run did not have");
    }
    let flags = packet.options.iter().find_map(|option| match option {
        EnhancedPacketOption::Flags(flags) => Some(flags & 3),
        _ => None,
    });
    let way = match flags {
        Some(INBOUND) => Way::In,
        Some(OUTBOUND) => Way::Out,
        _ => return Err("has no direction"),
    };
    let frame = Frame {
        at_ns: u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX),
        direction: way.into(),
        wire_len: packet.original_len,
        bytes: packet.data.as_ref().into(),
    };
    Ok((port, frame))
}
