//! What was captured, as files: one for each port of a recorded switch and direction.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use testbeds::bed::PortRecording;
use testbeds::capture::{Direction, Recording, write_pcap};

use super::ExperimentError;

/// Writes `SWITCH-PORT_in.pcap` and `SWITCH-PORT_out.pcap` for each port, seen from the switch, into a folder that is made if
/// missing.
pub fn write_captures(folder: &Path, recordings: &[PortRecording]) -> Result<(), ExperimentError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ExperimentError::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for port in recordings {
        for direction in [Direction::In, Direction::Out] {
            let path = folder.join(file_name(&port.switch, port.port, direction));
            let recording = Recording {
                frames: port.recording.going(direction).cloned().collect(),
                ..Recording::default()
            };
            let file = File::create(&path).map_err(failed(&path))?;
            write_pcap(&recording, BufWriter::new(file)).map_err(failed(&path))?;
        }
    }
    Ok(())
}

/// Where the frames of a port are that went one way.
pub fn file_name(switch: &str, port: u32, direction: Direction) -> String {
    let way = match direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    format!("{switch}-{port}_{way}.pcap")
}
