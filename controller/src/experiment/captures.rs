//! What was captured, as files: one for each port of a recorded switch and direction, and a list of the frames that faults
//! hit.

use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use testbeds::capture::{Direction, Recording, write_pcap};

use super::{ExperimentError, Planned, Run};
use proof::{Hit, Outcome};

/// Writes `SWITCH-PORT_in.pcap` and `SWITCH-PORT_out.pcap` for each port, seen from the switch, and `hits.csv`, into a folder
/// that is made if missing.
pub fn write_captures(folder: &Path, planned: &Planned, run: &Run) -> Result<(), ExperimentError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ExperimentError::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for port in &run.evidence.recordings {
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
    let path = folder.join("hits.csv");
    fs::write(&path, hits(planned, &run.hits)).map_err(failed(&path))
}

/// Which fault hit which frame of which file. Frames count from 1, as packet analysers have it.
fn hits(planned: &Planned, hits: &[Hit]) -> String {
    let mut text = "fault,flow,file,frame\n".to_owned();
    let done = hits.iter().filter(|hit| hit.outcome != Outcome::Missed);
    for hit in done {
        let injection = &planned.plan.injections[hit.injection];
        let file = file_name(&hit.switch, hit.port, Direction::In);
        let (fault, flow, frame) = (&injection.fault, &injection.flow, hit.frame);
        text += &format!("{fault},{flow},{file},{frame}\n");
    }
    text
}

/// Where the frames of a port are that went one way.
fn file_name(switch: &str, port: u32, direction: Direction) -> String {
    let way = match direction {
        Direction::In => "in",
        Direction::Out => "out",
    };
    format!("{switch}-{port}_{way}.pcap")
}
