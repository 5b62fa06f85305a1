//! Writes what passes a port to pcap files, as BMv2's `--pcap` does.

use super::pcap::Writer;
use super::{PortIo, Received, Sink};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Any port, captured in both directions. A capture that cannot be written ends; the port goes on.
pub struct Dump {
    port: Box<dyn PortIo>,
    incoming: Option<Writer<BufWriter<File>>>,
    outgoing: Option<Writer<BufWriter<File>>>,
}

impl Dump {
    /// Captures `port` to `<name>_in.pcap` and `<name>_out.pcap` in `folder`.
    pub fn new(port: Box<dyn PortIo>, folder: &Path) -> io::Result<Self> {
        // A port's name may be a path.
        let name = port.name().replace('/', "_");
        let open = |direction: &str| {
            let file = File::create(folder.join(format!("{name}_{direction}.pcap")))?;
            Writer::new(BufWriter::new(file)).map(Some)
        };
        let (incoming, outgoing) = (open("in")?, open("out")?);
        Ok(Self {
            port,
            incoming,
            outgoing,
        })
    }
}

fn capture(writer: &mut Option<Writer<BufWriter<File>>>, frame: &[u8]) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let time = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    if let Some(file) = writer
        && let Err(error) = file.write(time, frame)
    {
        tracing::warn!(%error, "capture ended");
        *writer = None;
    }
}

/// Captures what passes to a sink.
struct Tap<'a> {
    incoming: &'a mut Option<Writer<BufWriter<File>>>,
    sink: &'a mut dyn Sink,
}

impl Sink for Tap<'_> {
    fn arrived(&mut self) {
        self.sink.arrived();
    }

    fn frame(&mut self, frame: &[u8]) {
        capture(self.incoming, frame);
        self.sink.frame(frame);
    }
}

impl PortIo for Dump {
    fn receive(&mut self, budget: usize, sink: &mut dyn Sink) -> io::Result<Received> {
        let incoming = &mut self.incoming;
        let received = self.port.receive(budget, &mut Tap { incoming, sink })?;
        if received.frames > 0
            && let Some(file) = &mut self.incoming
        {
            file.flush()?;
        }
        Ok(received)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        capture(&mut self.outgoing, frame);
        self.port.send(frame)
    }

    fn flush(&mut self) -> io::Result<usize> {
        if let Some(file) = &mut self.outgoing {
            file.flush()?;
        }
        self.port.flush()
    }

    fn has_arrived(&self) -> Option<bool> {
        self.port.has_arrived()
    }

    fn overflow(&mut self) -> u64 {
        self.port.overflow()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.port.fd()
    }

    fn interface(&self) -> Option<u32> {
        self.port.interface()
    }

    fn name(&self) -> &str {
        self.port.name()
    }
}
