//! `SWITCH.pcapng`: what passed the ports of a switch, an interface each, with a comment on each frame that a fault hit.
//! Times are in nanoseconds. <https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html>

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
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
use testbeds::bed::PortRecording;
use testbeds::capture::{Direction, Frame, Recording};

use super::{WriteError, written};
use crate::experiment::{Planned, Run};
use proof::Outcome;

/// Of `if_tsresol`: ten to the power of minus this.
const NANOSECONDS: u8 = 9;
/// Of `epb_flags`: the direction, in its two lowest bits.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

pub(super) fn file_name(switch: &str) -> String {
    format!("{switch}.pcapng")
}

/// Writes a file for each switch.
pub(super) fn write(folder: &Path, planned: &Planned, run: &Run) -> Result<(), WriteError> {
    // By switch, port and number among the frames that came in there.
    let mut comments: BTreeMap<(&str, u32, usize), Vec<String>> = BTreeMap::new();
    for hit in &run.hits {
        let injection = &planned.plan.injections[hit.injection];
        let mut faults = planned.scenario.faults.iter();
        let effect = faults.find(|fault| fault.id == injection.fault);
        let effect = effect.map_or_else(String::new, |fault| fault.effect.to_string());
        let was = match hit.outcome {
            Outcome::Hit => "",
            Outcome::Unforwarded => ", forwarded nowhere",
            Outcome::Missed => ", missed",
            Outcome::Collateral => ", wrongly",
        };
        let place = (hit.switch.as_str(), hit.port, hit.frame);
        let stands = hit.place.map_or_else(String::new, |place| {
            format!(", PSN {} in round {}", place.relative, place.round)
        });
        comments.entry(place).or_default().push(format!(
            "{}: {effect}{was}, {} #{}{stands}",
            injection.fault, injection.flow, hit.ordinal
        ));
    }
    let recordings = &run.evidence.recordings;
    let switches: BTreeSet<&str> = recordings.iter().map(|port| port.switch.as_str()).collect();
    for switch in switches {
        let ports: Vec<&PortRecording> = recordings
            .iter()
            .filter(|port| port.switch == switch)
            .collect();
        let path = folder.join(file_name(switch));
        let result = File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            write_switch(&mut file, &ports, &comments)?;
            file.flush()
        });
        written(path, result)?;
    }
    Ok(())
}

fn write_switch(
    file: &mut impl Write,
    ports: &[&PortRecording],
    comments: &BTreeMap<(&str, u32, usize), Vec<String>>,
) -> io::Result<()> {
    let mut pcapng = PcapNgWriter::new(file).map_err(io::Error::other)?;
    for port in ports {
        let name = format!("{} port {}", port.switch, port.port);
        let interface = InterfaceDescriptionBlock {
            linktype: DataLink::ETHERNET,
            snaplen: 0,
            options: vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ],
        };
        pcapng
            .write_pcapng_block(interface)
            .map_err(io::Error::other)?;
    }
    // All ports by time; each in the order of its recording, which is the order in which its switch took the frames.
    let mut next = vec![0; ports.len()];
    let mut numbers = vec![0; ports.len()];
    loop {
        let waiting = ports.iter().enumerate().filter_map(|(index, port)| {
            let frame = port.recording.frames.get(next[index])?;
            Some((frame.at_ns, index))
        });
        let Some((_, index)) = waiting.min() else {
            return Ok(());
        };
        let frame = &ports[index].recording.frames[next[index]];
        next[index] += 1;
        let mut options = Vec::new();
        if frame.direction == Direction::In {
            numbers[index] += 1;
            let place = (
                ports[index].switch.as_str(),
                ports[index].port,
                numbers[index],
            );
            let said = comments.get(&place).into_iter().flatten();
            options.extend(said.map(|text| EnhancedPacketOption::Comment(text.as_str().into())));
        }
        options.push(EnhancedPacketOption::Flags(match frame.direction {
            Direction::In => INBOUND,
            Direction::Out => OUTBOUND,
        }));
        let block = EnhancedPacketBlock {
            interface_id: index as u32,
            timestamp: Duration::from_nanos(frame.at_ns),
            original_len: frame.wire_len,
            data: Cow::Borrowed(&frame.bytes),
            options,
        };
        pcapng.write_pcapng_block(block).map_err(io::Error::other)?;
    }
}

/// Why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What is in it.
    #[error("{}: {reason}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// The recordings of a switch's ports, in the order of the file's interfaces.
pub(super) fn read(folder: &Path, switch: &str, ports: usize) -> Result<Vec<Recording>, ReadError> {
    let path = folder.join(file_name(switch));
    let opened = match std::fs::metadata(&path).is_ok_and(|is| !is.is_file()) {
        true => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")),
        false => File::open(&path),
    };
    let file = opened.map_err(|source| ReadError::File {
        path: path.clone(),
        source,
    })?;
    let wrong = |reason: String| ReadError::Content {
        path: path.clone(),
        reason,
    };
    let mut pcapng =
        PcapNgReader::new(BufReader::new(file)).map_err(|error| wrong(error.to_string()))?;
    let mut recordings: Vec<Recording> = (0..ports).map(|_| Recording::default()).collect();
    let mut frames = 0_usize;
    while let Some(block) = pcapng.next_block() {
        let block = block.map_err(|error| wrong(format!("after {frames} frames: {error}")))?;
        let Block::EnhancedPacket(packet) = block else {
            continue;
        };
        frames += 1;
        let recording = recordings.get_mut(packet.interface_id as usize);
        let recording = recording.ok_or_else(|| {
            wrong(format!(
                "frame {frames} is of an interface that the run did not have"
            ))
        })?;
        let flags = packet.options.iter().find_map(|option| match option {
            EnhancedPacketOption::Flags(flags) => Some(flags & 3),
            _ => None,
        });
        let direction = match flags {
            Some(INBOUND) => Direction::In,
            Some(OUTBOUND) => Direction::Out,
            _ => {
                return Err(wrong(format!(
                    "frame {frames} does not say which way it went"
                )));
            }
        };
        recording.frames.push(Frame {
            at_ns: u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX),
            direction,
            wire_len: packet.original_len,
            bytes: packet.data.as_ref().into(),
        });
    }
    Ok(recordings)
}
