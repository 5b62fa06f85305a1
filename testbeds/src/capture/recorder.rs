//! A recorder: one thread that records any number of ports and hands over their frames while they pass.

use std::io;
use std::os::fd::OwnedFd;
use std::thread::{self, JoinHandle};

use frames::side_by_side;
use nix::fcntl::OFlag;
use nix::unistd::pipe2;
use proof::Digest;

use super::filter::WHOLE_PACKET;
use super::reader::{Reader, WatchedRing};
use super::ring::{PacketSocket, page_bytes};
use super::size::{LinkSize, ring_sizes};
use super::{CaptureError, Filter, Handed};
use crate::host::Namespace;

/// A port that a recorder is to record.
#[derive(Debug, Clone)]
pub struct RecordedPort {
    /// Index of the port in the caller's list, with which its frames are handed over.
    pub port: usize,
    /// Network namespace of the interface.
    pub namespace: Namespace,
    /// Name of the interface. Frames that it receives count as going to the switch, frames that it sends as leaving the switch.
    pub interface: String,
    /// Which frames of the port are recorded.
    pub filter: Filter,
    /// Number of bytes from the start of each frame that are kept.
    pub keep: u32,
    /// Rate of the link in bit/s, in each direction; `None` if it is unknown.
    pub rate_bps: Option<u64>,
}

/// A running recorder. Dropping it stops it.
///
/// It records the frames that the interfaces receive and send. A socket with PACKET_QDISC_BYPASS sends past all
/// recorders of its own interface: in this case record the other end of the link.
#[derive(Debug)]
pub struct Recorder {
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<io::Result<Vec<u64>>>>,
    /// Names of the recorded interfaces, for errors.
    interfaces: String,
}

impl Recorder {
    /// Starts to record. Every frame that passes after this has returned is handed over to `sink`, or counted as lost.
    ///
    /// The recorder's thread calls `sink`. As long as `sink` has not returned, frames wait in the rings, which hold about a second of
    /// their links' rate. The thread drops `sink` when the recording has ended.
    ///
    /// The kernel passes many frames of one flow as one packet (segmentation offload) and leaves checksums unfinished. Frames are
    /// handed over as a wire would carry them: each by itself, with finished checksums, and with the time of its packet.
    ///
    /// `digest` makes the identities of the frames from all their bytes. With `None`, the kernel copies only the bytes that are kept,
    /// which takes less of the rings, and an identity covers only these bytes and the length. It copies packets that are longer than a
    /// frame of the link nevertheless, to split them; the frames of shorter bundles are counted as lost.
    ///
    /// The kernel cuts frames longer than the largest MTU that fits in the smallest block of the rings (at least 3,936 bytes, and never
    /// less than each interface's MTU). The identity then covers the same number of bytes and the length at all ports.
    pub fn start(
        ports: Vec<RecordedPort>,
        digest: Option<Digest>,
        sink: impl FnMut(Handed) + Send + 'static,
    ) -> Result<Recorder, CaptureError> {
        let interfaces = match &ports[..] {
            [] => "no interface".to_owned(),
            [only] => only.interface.clone(),
            [first, others @ ..] => format!("{} and {} others", first.interface, others.len()),
        };
        let failed = |interface: &str, what| {
            let interface = interface.to_owned();
            move |source| CaptureError {
                interface,
                what,
                source,
            }
        };
        let mut sockets = Vec::with_capacity(ports.len());
        for port in &ports {
            let snap = match digest {
                Some(_) => WHOLE_PACKET,
                None => port.keep,
            };
            let open = || PacketSocket::open(&port.interface, port.filter, snap);
            let socket = port.namespace.run(open);
            sockets.push(socket.map_err(failed(&port.interface, "cannot open a packet socket"))?);
        }
        let links = ports.iter().zip(&sockets).map(|(port, socket)| LinkSize {
            rate_bps: port.rate_bps,
            mtu: socket.mtu,
        });
        let sizes = ring_sizes(&links.collect::<Vec<_>>(), page_bytes());
        let unstarted = ports.into_iter().zip(sockets).zip(sizes).collect();
        let rings = side_by_side(unstarted, |((port, socket), size)| {
            let what = "cannot give a packet socket its ring";
            let ring = socket.start(size).map_err(failed(&port.interface, what))?;
            Ok(WatchedRing::new(port.port, port.keep, ring))
        });
        let rings = rings.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (stopped, stop) = pipe2(OFlag::O_CLOEXEC)
            .map_err(io::Error::from)
            .map_err(failed(&interfaces, "cannot make a pipe"))?;
        let reader = Reader::new(rings, stopped, digest, sink)
            .map_err(failed(&interfaces, "cannot wait for packet sockets"))?;
        let thread = thread::Builder::new()
            .name("recorder".into())
            .spawn(move || reader.run())
            .map_err(failed(&interfaces, "cannot start a thread"))?;
        Ok(Recorder {
            stop: Some(stop),
            thread: Some(thread),
            interfaces,
        })
    }

    /// Asks the recorder's thread to stop and does not wait for it.
    pub(super) fn begin_stop(&mut self) {
        self.stop = None;
    }

    /// Ends the recording at one time for all ports, after this call. When it returns, `sink` has got every frame that passed before
    /// that time and was not lost, and none that passed after. Returns the number of lost frames for each port, in the order in which
    /// [`Recorder::start`] was given them.
    pub fn stop(mut self) -> Result<Vec<u64>, CaptureError> {
        self.begin_stop();
        let result = match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(io::Error::other("the recorder panicked")),
        };
        result.map_err(|source| CaptureError {
            interface: self.interfaces.clone(),
            what: "the recording failed",
            source,
        })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
