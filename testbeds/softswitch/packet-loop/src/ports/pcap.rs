//! Reads and writes classic pcap files, and offers two of them as a port.

use super::{Frames, MAX_FRAME, Received, Sink};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::BorrowedFd;
use std::path::Path;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const NANOSECONDS: u32 = 0xa1b2_3c4d;
const ETHERNET: u32 = 1;

/// A frame in a pcap file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Time of the frame in nanoseconds since the Unix epoch, or since another origin that the writer chose.
    pub time_ns: u64,
    /// The captured bytes of the frame.
    pub frame: Vec<u8>,
    /// Length of the frame on the wire, in bytes: greater than `frame.len()` if the capture cut the frame.
    pub wire_len: u32,
}

/// The reason why a pcap file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file has another format, such as pcapng; the value is its first four bytes (the magic number).
    #[error("not a classic pcap file (magic {0:#010x})")]
    Magic(u32),
    /// The frames have this link type; only Ethernet is supported.
    #[error("link type {0}; only Ethernet (1) is supported")]
    LinkType(u32),
    /// The file ends within the record with this number, from 0.
    #[error("the file ends within record {0}")]
    Truncated(u64),
    /// A record claims to be longer than any frame.
    #[error("record {record} has an invalid length, {len} bytes")]
    Oversized {
        /// Number of the record in the file, from 0.
        record: u64,
        /// Length that the record claims, in bytes.
        len: u32,
    },
}

/// Reads pcap records of either byte order, with timestamps in microseconds or nanoseconds.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    swapped: bool,
    unit_ns: u64,
    records: u64,
}

impl<R: Read> Reader<R> {
    /// Creates a reader, and reads the file header.
    pub fn new(mut source: R) -> Result<Self, PcapError> {
        let mut header = [0; 24];
        source.read_exact(&mut header)?;
        let magic = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        let (swapped, unit_ns) = match (magic, magic.swap_bytes()) {
            (MICROSECONDS, _) => (false, 1000),
            (NANOSECONDS, _) => (false, 1),
            (_, MICROSECONDS) => (true, 1000),
            (_, NANOSECONDS) => (true, 1),
            _ => return Err(PcapError::Magic(magic)),
        };
        let reader = Self {
            source,
            swapped,
            unit_ns,
            records: 0,
        };
        // The upper bits hold the length of a frame check sequence.
        match reader.word(&header, 20) & 0x0fff_ffff {
            ETHERNET => Ok(reader),
            other => Err(PcapError::LinkType(other)),
        }
    }

    /// The next record; `None` at the end of the file.
    pub fn next_record(&mut self) -> Result<Option<Record>, PcapError> {
        let mut header = [0; 16];
        match read_full(&mut self.source, &mut header)? {
            0 => return Ok(None),
            16 => {}
            _ => return Err(PcapError::Truncated(self.records)),
        }
        let [seconds, fraction, len, wire_len] = [0, 4, 8, 12].map(|at| self.word(&header, at));
        // libpcap has this limit, too.
        if len > 262_144 {
            return Err(PcapError::Oversized {
                record: self.records,
                len,
            });
        }
        let mut frame = vec![0; len as usize];
        if read_full(&mut self.source, &mut frame)? != frame.len() {
            return Err(PcapError::Truncated(self.records));
        }
        self.records += 1;
        let time_ns = u64::from(seconds) * 1_000_000_000 + u64::from(fraction) * self.unit_ns;
        Ok(Some(Record {
            time_ns,
            frame,
            wire_len,
        }))
    }

    fn word(&self, bytes: &[u8], at: usize) -> u32 {
        let word = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if self.swapped {
            word.swap_bytes()
        } else {
            word
        }
    }
}

/// Reads bytes until `buffer` is full or the source ends; returns how many.
fn read_full(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Writes pcap records with timestamps in nanoseconds.
#[derive(Debug)]
pub struct Writer<W: Write> {
    sink: W,
}

impl<W: Write> Writer<W> {
    /// Creates a writer, and writes the file header.
    pub fn new(mut sink: W) -> io::Result<Self> {
        sink.write_all(&NANOSECONDS.to_le_bytes())?;
        sink.write_all(&2u16.to_le_bytes())?;
        sink.write_all(&4u16.to_le_bytes())?;
        sink.write_all(&[0; 8])?;
        sink.write_all(&262_144u32.to_le_bytes())?;
        sink.write_all(&ETHERNET.to_le_bytes())?;
        Ok(Self { sink })
    }

    /// Writes a frame as one record; `time_ns` counts from the Unix epoch or from an origin of the caller's choice.
    pub fn write(&mut self, time_ns: u64, frame: &[u8]) -> io::Result<()> {
        let too_late = |_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "pcap holds times up to the year 2106",
            )
        };
        let seconds = u32::try_from(time_ns / 1_000_000_000).map_err(too_late)?;
        let len = u32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        for word in [seconds, (time_ns % 1_000_000_000) as u32, len, len] {
            self.sink.write_all(&word.to_le_bytes())?;
        }
        self.sink.write_all(frame)
    }

    /// Passes all buffered records to the operating system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// A port whose incoming frames come from one file, all at once, and whose outgoing frames go to another.
#[derive(Debug)]
pub struct PcapPort {
    name: String,
    input: Option<Reader<BufReader<File>>>,
    output: Writer<BufWriter<File>>,
    origin: std::time::Instant,
}

impl PcapPort {
    /// Opens a port that receives the frames of the file `input`, if there is one, and writes sent frames to `output`.
    pub fn open(input: Option<&Path>, output: &Path) -> Result<Self, PcapError> {
        let input = input
            .map(|path| Reader::new(BufReader::new(File::open(path)?)))
            .transpose()?;
        Ok(Self {
            name: output.display().to_string(),
            input,
            output: Writer::new(BufWriter::new(File::create(output)?))?,
            origin: std::time::Instant::now(),
        })
    }
}

impl Frames for PcapPort {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let mut received = Received::default();
        while let Some(input) = &mut self.input
            && received.frames + received.errors < budget
        {
            match input.next_record() {
                Ok(Some(record))
                    if record.wire_len as usize == record.frame.len()
                        && record.frame.len() <= MAX_FRAME =>
                {
                    received.frames += 1;
                    sink.arrived();
                    sink.frame(&record.frame, 0);
                }
                Ok(Some(_)) => received.errors += 1,
                Ok(None) => self.input = None,
                Err(error) => {
                    self.input = None;
                    return Err(io::Error::other(error));
                }
            }
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        let time = u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.output.write(time, frame)
    }

    fn flush(&mut self) -> io::Result<usize> {
        self.output.flush()?;
        Ok(0)
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(records: &[(u64, &[u8])]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (time, frame) in records {
            writer.write(*time, frame).unwrap();
        }
        writer.sink
    }

    fn read(bytes: &[u8]) -> Result<Vec<Record>, PcapError> {
        let mut reader = Reader::new(bytes)?;
        std::iter::from_fn(|| reader.next_record().transpose()).collect()
    }

    #[test]
    fn written_values_are_read_back() {
        let bytes = file(&[(1_700_000_000_123_456_789, b"first"), (5, b"")]);
        let records = read(&bytes).unwrap();
        assert_eq!(
            records[0],
            Record {
                time_ns: 1_700_000_000_123_456_789,
                frame: b"first".to_vec(),
                wire_len: 5
            }
        );
        assert_eq!(
            (records[1].time_ns, records[1].frame.len(), records.len()),
            (5, 0, 2)
        );
    }

    #[test]
    fn microseconds_and_the_other_byte_order() {
        let mut bytes = Vec::new();
        for word in [
            MICROSECONDS,
            0x0002_0004,
            0,
            0,
            65535,
            ETHERNET,
            7,
            8,
            2,
            60,
        ] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(b"ab");
        let records = read(&bytes).unwrap();
        assert_eq!(
            records,
            [Record {
                time_ns: 7_000_008_000,
                frame: b"ab".to_vec(),
                wire_len: 60
            }]
        );
    }

    #[test]
    fn broken_files_are_named() {
        let bytes = file(&[(0, b"frame")]);
        assert!(matches!(read(&bytes[..20]), Err(PcapError::Io(_))));
        assert!(matches!(
            read(&bytes[..bytes.len() - 1]),
            Err(PcapError::Truncated(0))
        ));
        assert!(matches!(read(&bytes[..30]), Err(PcapError::Truncated(0))));
        assert!(matches!(
            read(&[0x0a; 24]),
            Err(PcapError::Magic(0x0a0a_0a0a))
        ));
        let mut link = bytes.clone();
        link[20] = 113;
        assert!(matches!(read(&link), Err(PcapError::LinkType(113))));
        let mut huge = bytes;
        huge[35] = 0xff;
        assert!(matches!(
            read(&huge),
            Err(PcapError::Oversized { record: 0, .. })
        ));
    }
}
