//! Cables in memory, for machines that refuse network namespaces: they connect the same agents and switch as veth pairs do.
//!
//! A cable has two ends, each a `SOCK_SEQPACKET` socket: one `send` is one frame, one `recv` is one frame, and a
//! recv of nothing means that the cable was unplugged. A thread carries frames between the ends, counts them, and records
//! them where that was asked for; so a run over cables has the same counters and the same evidence as one over veths.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, recv, send, setsockopt, socketpair, sockopt,
};
use nix::unistd::pipe2;

use crate::capture::{Collector, Direction, Limits, Recording};
use crate::net::Counters;

/// Length of the longest frame that a cable carries, in bytes.
pub const FRAME_LIMIT: usize = 65_536;
/// Maximum number of frames that wait in a cable, per direction; further frames are dropped and counted.
const QUEUE_LIMIT: usize = 1024;
/// Requested buffer size of each socket, in bytes; the kernel grants at most net.core.wmem_max.
const SOCKET_BUFFER: usize = 4 << 20;

/// Index of a cable in its [`Hub`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CableId(usize);

/// The two ends of a cable, for the processes that it connects.
#[derive(Debug)]
pub struct Ends {
    /// End A; frames that enter the cable here count as received.
    pub a: OwnedFd,
    /// End B; frames that enter the cable here count as sent.
    pub b: OwnedFd,
}

/// A set of cables before the thread that carries their frames is started.
#[derive(Debug, Default)]
pub struct HubBuilder {
    cables: Vec<Cable>,
}

impl HubBuilder {
    /// A hub without cables.
    pub fn new() -> HubBuilder {
        HubBuilder::default()
    }

    /// Adds a cable; returns its number and its two ends. `record`: limits of its recording; `None`: it is not recorded.
    pub fn cable(&mut self, record: Option<Limits>) -> io::Result<(CableId, Ends)> {
        let (a, inner_a) = seqpacket_pair()?;
        let (b, inner_b) = seqpacket_pair()?;
        let counts = Arc::default();
        let collector = Arc::new(Mutex::new(record.map(Collector::new)));
        self.cables.push(Cable {
            lanes: [Lane::new(Direction::In), Lane::new(Direction::Out)],
            sockets: [inner_a, inner_b],
            shared: Shared { counts, collector },
            state: State::Plugged,
        });
        Ok((CableId(self.cables.len() - 1), Ends { a, b }))
    }

    /// Starts the thread that carries the frames of all cables.
    pub fn start(self) -> io::Result<Hub> {
        let (stopped, stop) = pipe2(OFlag::O_CLOEXEC)?;
        let shared = self
            .cables
            .iter()
            .map(|cable| cable.shared.clone())
            .collect();
        let thread = thread::Builder::new()
            .name("cables".into())
            .spawn(move || carry(self.cables, &stopped))?;
        Ok(Hub {
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

/// A set of cables whose frames a thread carries. Dropping the hub unplugs all cables.
#[derive(Debug)]
pub struct Hub {
    shared: Vec<Shared>,
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Hub {
    /// Counters of a cable: "received" counts frames that entered at end A, "sent" frames that entered at end B.
    pub fn counters(&self, cable: CableId) -> Option<Counters> {
        let counts = &self.shared.get(cable.0)?.counts;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Some(Counters {
            rx_bytes: read(&counts[0].bytes),
            rx_frames: read(&counts[0].frames),
            rx_dropped: read(&counts[0].dropped),
            tx_bytes: read(&counts[1].bytes),
            tx_frames: read(&counts[1].frames),
            tx_dropped: read(&counts[1].dropped),
        })
    }

    /// Starts to record a cable; an earlier recording of it is discarded.
    pub fn record(&self, cable: CableId, limits: Limits) {
        if let Some(shared) = self.shared.get(cable.0) {
            *shared.collector() = Some(Collector::new(limits));
        }
    }

    /// Ends the recording of a cable and returns it; `None` if it is not recorded.
    pub fn recording(&self, cable: CableId) -> Option<Recording> {
        let collector = self.shared.get(cable.0)?.collector().take()?;
        // A cable records frames when they enter, so frames that it drops later are in the recording.
        Some(collector.finish(0))
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Creates a cable whose ends are connected directly: without a carrying thread, it has neither counters nor recordings.
pub fn direct() -> io::Result<Ends> {
    let (a, b) = seqpacket_pair()?;
    Ok(Ends { a, b })
}

#[derive(Debug, Default)]
struct Counts {
    bytes: AtomicU64,
    frames: AtomicU64,
    dropped: AtomicU64,
}

#[derive(Debug, Clone)]
struct Shared {
    counts: Arc<[Counts; 2]>,
    /// The cable's recording; `None` while it is not recorded.
    collector: Arc<Mutex<Option<Collector>>>,
}

impl Shared {
    fn collector(&self) -> MutexGuard<'_, Option<Collector>> {
        self.collector
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// One direction of a cable, with the frames that wait in it.
#[derive(Debug)]
struct Lane {
    direction: Direction,
    waiting: VecDeque<Box<[u8]>>,
}

impl Lane {
    fn new(direction: Direction) -> Lane {
        Lane {
            direction,
            waiting: VecDeque::new(),
        }
    }
}

#[derive(Debug)]
struct Cable {
    /// The two directions: lane 0 goes from socket 0 to socket 1, lane 1 from socket 1 to socket 0.
    lanes: [Lane; 2],
    sockets: [OwnedFd; 2],
    shared: Shared,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Plugged,
    /// The process at this end (0 or 1) has closed it; frames that it sent before are still delivered to the other end.
    Gone(usize),
    Unplugged,
}

impl Cable {
    /// Indices of the sockets (0, 1) that are still open.
    fn open(&self) -> impl Iterator<Item = usize> {
        let state = self.state;
        (0..2).filter(move |socket| state != State::Unplugged && state != State::Gone(*socket))
    }

    fn interest(&self, socket: usize) -> PollFlags {
        let mut flags = PollFlags::POLLIN;
        flags.set(
            PollFlags::POLLOUT,
            !self.lanes[1 - socket].waiting.is_empty(),
        );
        flags
    }

    /// Takes the frames that have arrived at the socket with index `socket` and forwards as many as possible.
    fn serve(&mut self, socket: usize, buffer: &mut [u8]) {
        // Bounded, so that one busy end does not keep the others waiting.
        for _ in 0..64 {
            match recv(
                self.sockets[socket].as_raw_fd(),
                buffer,
                MsgFlags::MSG_DONTWAIT,
            ) {
                Ok(0) => {
                    self.leave(socket);
                    break;
                }
                Ok(length) => self.accept(socket, &buffer[..length]),
                Err(Errno::EAGAIN) => break,
                // A reset means that frames were left unread. It is reported once, before the frames that wait here.
                Err(Errno::EINTR | Errno::ECONNRESET) => {}
                Err(_) => return self.unplug(),
            }
        }
        self.flush(socket);
        self.flush(1 - socket);
        if let State::Gone(gone) = self.state
            && self.lanes[gone].waiting.is_empty()
        {
            self.unplug();
        }
    }

    /// Handles that the process at a cable's end has closed its socket.
    fn leave(&mut self, socket: usize) {
        match self.state {
            State::Plugged => self.state = State::Gone(socket),
            State::Gone(_) | State::Unplugged => self.unplug(),
        }
        self.discard(1 - socket);
    }

    /// Drops and counts the frames that wait in a lane (one direction of the cable).
    fn discard(&mut self, lane: usize) {
        let dropped = self.lanes[lane].waiting.len() as u64;
        self.shared.counts[lane]
            .dropped
            .fetch_add(dropped, Ordering::Relaxed);
        self.lanes[lane].waiting.clear();
    }

    fn accept(&mut self, lane: usize, frame: &[u8]) {
        let counts = &self.shared.counts[lane];
        counts.frames.fetch_add(1, Ordering::Relaxed);
        counts
            .bytes
            .fetch_add(frame.len() as u64, Ordering::Relaxed);
        let direction = self.lanes[lane].direction;
        if let Some(collector) = &mut *self.shared.collector() {
            collector.record(now_ns(), direction, frame.len() as u32, frame);
        }
        let has_receiver = self.state == State::Plugged;
        if has_receiver && self.lanes[lane].waiting.len() < QUEUE_LIMIT {
            self.lanes[lane].waiting.push_back(frame.into());
        } else {
            counts.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn flush(&mut self, lane: usize) {
        let to = self.sockets[1 - lane].as_raw_fd();
        while let Some(frame) = self.lanes[lane].waiting.front() {
            match send(to, frame, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL) {
                Ok(_) => {
                    self.lanes[lane].waiting.pop_front();
                }
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => return,
                // The receiver has closed its end; `recv` reports that after the frames it sent before.
                Err(Errno::EPIPE | Errno::ECONNRESET) => return self.discard(lane),
                Err(_) => return self.unplug(),
            }
        }
    }

    /// Ends both directions of the cable, as when the peer of a veth is deleted.
    fn unplug(&mut self) {
        self.state = State::Unplugged;
        self.discard(0);
        self.discard(1);
        for socket in &self.sockets {
            let _ =
                nix::sys::socket::shutdown(socket.as_raw_fd(), nix::sys::socket::Shutdown::Both);
        }
    }
}

fn carry(mut cables: Vec<Cable>, stopped: &OwnedFd) {
    let mut buffer = vec![0; FRAME_LIMIT];
    loop {
        let mut ready: Vec<(usize, usize)> = Vec::new();
        {
            let mut places = Vec::new();
            let mut sources = vec![PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
            for (index, cable) in cables.iter().enumerate() {
                for socket in cable.open() {
                    sources.push(PollFd::new(
                        cable.sockets[socket].as_fd(),
                        cable.interest(socket),
                    ));
                    places.push((index, socket));
                }
            }
            match poll(&mut sources, PollTimeout::NONE) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(_) => return,
            }
            let happened =
                |source: &PollFd| source.revents().is_some_and(|events| !events.is_empty());
            if happened(&sources[0]) {
                return;
            }
            ready.extend(
                sources[1..]
                    .iter()
                    .zip(places)
                    .filter(|(source, _)| happened(source))
                    .map(|(_, p)| p),
            );
        }
        for (index, socket) in ready {
            cables[index].serve(socket, &mut buffer);
        }
    }
}

fn seqpacket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (a, b) = socketpair(
        AddressFamily::Unix,
        SockType::SeqPacket,
        None,
        SockFlag::SOCK_CLOEXEC,
    )?;
    for end in [&a, &b] {
        setsockopt(end, sockopt::SndBuf, &SOCKET_BUFFER)?;
    }
    Ok((a, b))
}

fn now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn receive(end: &OwnedFd) -> Vec<u8> {
        let mut sources = [PollFd::new(end.as_fd(), PollFlags::POLLIN)];
        poll(
            &mut sources,
            PollTimeout::try_from(Duration::from_secs(5)).unwrap(),
        )
        .unwrap();
        let mut buffer = vec![0; FRAME_LIMIT];
        let length = recv(end.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).unwrap();
        buffer.truncate(length);
        buffer
    }

    fn send_frame(end: &OwnedFd, frame: &[u8]) {
        send(end.as_raw_fd(), frame, MsgFlags::MSG_NOSIGNAL).unwrap();
    }

    #[test]
    fn frames_keep_their_boundaries_and_are_counted_and_recorded() {
        let mut builder = HubBuilder::new();
        let (cable, ends) = builder.cable(Some(Limits::WHOLE_FRAMES)).unwrap();
        let (other, _other_ends) = builder.cable(None).unwrap();
        let hub = builder.start().unwrap();
        send_frame(&ends.a, b"one");
        send_frame(&ends.a, b"three");
        assert_eq!(receive(&ends.b), b"one");
        assert_eq!(receive(&ends.b), b"three");
        send_frame(&ends.b, b"back");
        assert_eq!(receive(&ends.a), b"back");
        let counters = hub.counters(cable).unwrap();
        assert_eq!(
            (
                counters.rx_frames,
                counters.rx_bytes,
                counters.tx_frames,
                counters.tx_bytes
            ),
            (2, 8, 1, 4)
        );
        assert_eq!(hub.counters(other), Some(Counters::default()));
        let recording = hub.recording(cable).unwrap();
        let seen: Vec<_> = recording
            .frames
            .iter()
            .map(|frame| (frame.direction, &*frame.bytes))
            .collect();
        assert_eq!(
            seen,
            [
                (Direction::In, &b"one"[..]),
                (Direction::In, b"three"),
                (Direction::Out, b"back")
            ]
        );
        assert!(recording.is_complete());
        assert!(hub.recording(other).is_none());
    }

    #[test]
    fn a_cable_without_a_reader_drops_and_counts() {
        let mut builder = HubBuilder::new();
        let (cable, ends) = builder.cable(None).unwrap();
        let hub = builder.start().unwrap();
        for _ in 0..20_000 {
            send_frame(&ends.a, &[0; 1000]);
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        while hub.counters(cable).unwrap().rx_frames < 20_000
            && std::time::Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(1));
        }
        let counters = hub.counters(cable).unwrap();
        assert_eq!(counters.rx_frames, 20_000);
        assert!(counters.rx_dropped > 0);
    }

    #[test]
    fn an_end_that_goes_unplugs_the_other() {
        let mut builder = HubBuilder::new();
        let (_, ends) = builder.cable(None).unwrap();
        let _hub = builder.start().unwrap();
        drop(ends.a);
        assert_eq!(receive(&ends.b), b"");
    }

    #[test]
    fn frames_sent_before_an_end_goes_arrive() {
        let mut builder = HubBuilder::new();
        let (_, ends) = builder.cable(None).unwrap();
        send_frame(&ends.b, b"unread");
        send_frame(&ends.a, b"one");
        send_frame(&ends.a, b"two");
        drop(ends.a);
        let _hub = builder.start().unwrap();
        for expected in [&b"one"[..], b"two", b""] {
            assert_eq!(receive(&ends.b), expected);
        }
    }
}
