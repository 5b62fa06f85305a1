//! Writes the frames of a port to pcap files, as BMv2's `--pcap` does.

use super::pcap::Writer;
use super::{Frames, Received, Sink};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A port that is captured in both directions. If a pcap file cannot be written, its capture ends, and the port continues.
pub struct Dump {
    port: Box<dyn Frames>,
    incoming: Capture,
    outgoing: Capture,
}

impl Dump {
    /// Captures `port` to `<name>_in.pcap` and `<name>_out.pcap` in `folder`, which is created if missing.
    pub fn new(port: Box<dyn Frames>, folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        // A port's name may be a path.
        let name = port.name().replace('/', "_");
        let open = |direction| Capture::new(folder.join(format!("{name}_{direction}.pcap")));
        let (incoming, outgoing) = (open("in")?, open("out")?);
        Ok(Self {
            port,
            incoming,
            outgoing,
        })
    }
}

/// The capture of a port's frames in one direction.
struct Capture {
    path: PathBuf,
    /// The pcap file; `None`: a write has failed, and the capture has ended.
    file: Option<Writer<BufWriter<File>>>,
}

impl Capture {
    fn new(path: PathBuf) -> io::Result<Capture> {
        let file = Some(Writer::new(BufWriter::new(File::create(&path)?))?);
        Ok(Capture { path, file })
    }

    fn frame(&mut self, frame: &[u8]) {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let time = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.attempt(|file| file.write(time, frame));
    }

    fn flush(&mut self) {
        self.attempt(Writer::flush);
    }

    fn attempt(&mut self, write: impl FnOnce(&mut Writer<BufWriter<File>>) -> io::Result<()>) {
        if let Some(file) = &mut self.file
            && let Err(error) = write(file)
        {
            tracing::warn!(file = %self.path.display(), %error, "capture ended");
            self.file = None;
        }
    }
}

/// Passes frames on to `sink`, and captures them.
struct Tap<'a> {
    incoming: &'a mut Capture,
    sink: &'a mut dyn Sink,
}

impl Sink for Tap<'_> {
    fn arrived(&mut self) {
        self.sink.arrived();
    }

    fn frame(&mut self, frame: &[u8], waited_ns: u64) {
        self.incoming.frame(frame);
        self.sink.frame(frame, waited_ns);
    }
}

impl Frames for Dump {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let incoming = &mut self.incoming;
        let received = self.port.receive(budget, &mut Tap { incoming, sink })?;
        if received.frames > 0 {
            self.incoming.flush();
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.outgoing.frame(frame);
        self.port.send(frame)
    }

    fn flush(&mut self) -> io::Result<usize> {
        self.outgoing.flush();
        self.port.flush()
    }

    fn due(&self) -> Option<std::time::Instant> {
        self.port.due()
    }

    fn has_arrived(&self) -> Option<bool> {
        self.port.has_arrived()
    }

    fn overflow(&mut self) -> Option<u64> {
        self.port.overflow()
    }

    fn marked(&mut self) -> u64 {
        self.port.marked()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.port.readable()
    }

    fn interface(&self) -> Option<u32> {
        self.port.interface()
    }

    fn name(&self) -> &str {
        self.port.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::memory::link;

    #[derive(Default)]
    struct Counted(usize);

    impl Sink for Counted {
        fn arrived(&mut self) {}

        fn frame(&mut self, _: &[u8], _: u64) {
            self.0 += 1;
        }
    }

    #[test]
    fn the_folder_of_captures_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("deep/captures");
        let (port, _host) = link("p").unwrap();
        let _dump = Dump::new(Box::new(port), &deep).unwrap();
        assert!(deep.join("p_in.pcap").is_file() && deep.join("p_out.pcap").is_file());
    }

    #[test]
    fn a_capture_that_cannot_be_written_ends_and_the_port_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        for file in ["p_in.pcap", "p_out.pcap"] {
            std::os::unix::fs::symlink("/dev/full", folder.path().join(file)).unwrap();
        }
        let (port, host) = link("p").unwrap();
        let mut dump = Dump::new(Box::new(port), folder.path()).unwrap();
        for _ in 0..3 {
            assert!(host.send(&[1; 64]));
            let mut sink = Counted::default();
            assert_eq!(dump.receive(8, &mut sink).unwrap().frames, 1);
            assert_eq!(sink.0, 1);
            dump.send(&[2; 64]).unwrap();
            dump.flush().unwrap();
            assert!(host.receive(std::time::Duration::ZERO).is_some());
        }
        assert!(dump.incoming.file.is_none() && dump.outgoing.file.is_none());
    }
}
