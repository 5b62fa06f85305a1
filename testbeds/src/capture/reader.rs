//! The thread of a recorder: waits until rings have blocks of frames, reads them in place, and hands over batches.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use frames::side_by_side;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use proof::{Digest, Identity, Loser, Way};

use super::ring::{RETIRE_MS, Ring};
use super::{Batch, Handed, Lost};

/// Time after the end of a recording within which the kernel usually hands over all earlier frames.
const SETTLE: Duration = Duration::from_millis(5 * RETIRE_MS as u64);
/// Maximum lateness on a busy machine of the kernel's timer that hands over a block of a ring.
const HANDING_OVER: Duration = Duration::from_secs(2);
/// Lateness of the kernel, 50 times [`RETIRE_MS`], beyond which [`Handed::Until`] is wrong and [`Batch::late`] counts, in ns.
const SLACK_NS: u64 = 200_000_000;
/// Pause between two rounds over all rings, in which finished blocks gather. Without it, 512 rings whose timers expire at
/// different times wake the thread 128,000 times a second.
const GATHERING: Duration = Duration::from_millis(2);
/// Interval between two queries of the kernel's counters of dropped frames.
const COUNTING: Duration = Duration::from_millis(100);
/// Size of a batch in bytes: the batch ends with the block that exceeds it, or with the ring's last ready block.
const BATCH_BYTES: usize = 1 << 20;
/// Number of the stop pipe among the events of `epoll`; a ring's number is its index.
const STOP: u64 = u64::MAX;

/// A ring that is read, and how its frames are handed over.
pub(super) struct WatchedRing {
    port: usize,
    keep: usize,
    ring: Ring,
    /// Number of frames that are lost because their bundle is cut off.
    cut_off: u64,
    /// Number of losses that have been reported, as [`Lost::frames`] counts them.
    reported: u64,
    /// Time of the last query of the kernel's counters, in nanoseconds since 1970.
    counted_ns: u64,
}

impl WatchedRing {
    pub fn new(port: usize, keep: u32, ring: Ring) -> WatchedRing {
        WatchedRing {
            port,
            keep: keep as usize,
            ring,
            cut_off: 0,
            reported: 0,
            counted_ns: now_ns(),
        }
    }

    /// Reports new losses to `sink`. `dropped`: number of packets that the ring has lost since the start, for which the kernel was
    /// asked after `now_ns`.
    fn report(&mut self, dropped: u64, now_ns: u64, sink: &mut impl FnMut(Handed)) {
        let lost = dropped + self.cut_off;
        let frames = lost.saturating_sub(self.reported);
        let since_ns = std::mem::replace(&mut self.counted_ns, now_ns);
        if frames > 0 {
            self.reported = lost;
            sink(Handed::Lost(Lost {
                port: self.port,
                frames,
                by: Loser::Recorder,
                since_ns,
            }));
        }
    }

    /// Whether every packet that the filter accepted has been read or was dropped, by the kernel's counters.
    fn is_drained(&mut self) -> io::Result<bool> {
        self.ring.count()?;
        Ok(self.ring.delivered + self.ring.dropped >= self.ring.passed)
    }
}

/// Computes the identities of frames.
pub(super) struct Identifier {
    digest: Digest,
    /// Number of bytes from the start of a frame that the identity covers.
    whole: usize,
}

impl Identifier {
    /// Maximum number of bytes of a frame that its identity covers.
    const LONGEST_FRAME: u32 = 65_535;

    fn identify(&self, frame: &[u8], wire_len: u32) -> Identity {
        self.digest
            .of(&frame[..frame.len().min(self.whole)], wire_len)
    }
}

/// Limits on the times of the frames in a batch.
struct Bounds {
    /// Frames stamped before this time, in nanoseconds since 1970, are handed over but count as late.
    until_ns: u64,
    /// Frames stamped after this time, in nanoseconds since 1970, are left out.
    end_ns: u64,
}

/// State of a recorder's thread: the rings that it reads, and the sink that gets the frames.
pub(super) struct Reader<S> {
    rings: Vec<WatchedRing>,
    epoll: Epoll,
    /// Pipe that becomes ready when the recorder has to stop. It stays open as long as `epoll` watches it.
    _stopped: OwnedFd,
    identifier: Identifier,
    bounds: Bounds,
    sink: S,
}

impl<S: FnMut(Handed)> Reader<S> {
    pub fn new(
        rings: Vec<WatchedRing>,
        stopped: OwnedFd,
        digest: Option<Digest>,
        sink: S,
    ) -> io::Result<Reader<S>> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(&stopped, EpollEvent::new(EpollFlags::EPOLLIN, STOP))?;
        for (number, watched) in (0..).zip(&rings) {
            epoll.add(&watched.ring, EpollEvent::new(EpollFlags::EPOLLIN, number))?;
        }
        let longest = rings
            .iter()
            .map(|watched| watched.ring.size().longest_packet());
        let whole = longest.fold(Identifier::LONGEST_FRAME, u32::min) as usize;
        Ok(Reader {
            rings,
            epoll,
            _stopped: stopped,
            identifier: Identifier {
                digest: digest.unwrap_or(Digest::of_seed(0)),
                whole,
            },
            bounds: Bounds {
                until_ns: 0,
                end_ns: u64::MAX,
            },
            sink,
        })
    }

    /// Records until the recorder is stopped. Returns the number of lost frames for each ring, in the order of the rings.
    pub fn run(mut self) -> io::Result<Vec<u64>> {
        // One round visits all rings that are ready.
        let mut events = vec![EpollEvent::empty(); self.rings.len() + 1];
        let mut next_count = Instant::now() + COUNTING;
        loop {
            // Blocks that become ready while the thread waits are later than this.
            let before_ns = now_ns();
            let wait = next_count.saturating_duration_since(Instant::now()) + GATHERING;
            let wait = EpollTimeout::try_from(wait).unwrap_or(EpollTimeout::ZERO);
            let ready = match self.epoll.wait(&mut events, wait) {
                Ok(ready) => &events[..ready],
                Err(Errno::EINTR) => &[],
                Err(errno) => return Err(errno.into()),
            };
            if ready.iter().any(|event| event.data() == STOP) {
                return self.finish();
            }
            for event in ready {
                let number = event.data() as usize;
                if event.events().contains(EpollFlags::EPOLLERR) {
                    self.rings[number].ring.clear_error()?;
                }
                self.read(number);
            }
            if Instant::now() >= next_count {
                for watched in &mut self.rings {
                    let now_ns = now_ns();
                    watched.ring.count()?;
                    watched.report(watched.ring.dropped, now_ns, &mut self.sink);
                }
                next_count = Instant::now() + COUNTING;
            }
            self.pass(before_ns.saturating_sub(SLACK_NS));
            thread::sleep(GATHERING);
        }
    }

    /// Tells the sink that all frames stamped before `until_ns` have been handed over.
    fn pass(&mut self, until_ns: u64) {
        if until_ns > self.bounds.until_ns {
            self.bounds.until_ns = until_ns;
            (self.sink)(Handed::Until(until_ns));
        }
    }

    /// Hands over the ready blocks of the ring with this index, at most as many as it has, so that other rings do not wait.
    fn read(&mut self, number: usize) {
        let watched = &mut self.rings[number];
        let mut left = watched.ring.size().blocks;
        while left > 0 {
            let ready = watched.ring.ready(left, BATCH_BYTES);
            if ready.blocks == 0 {
                return;
            }
            left -= ready.blocks;
            // Estimates: a bundle stands for more frames than packets, about as many as fit in its bytes.
            let longest = watched.ring.longest_frame;
            let frames = ready.packets.max(ready.bytes / longest.max(1));
            let kept = ready.bytes.min(frames.saturating_mul(watched.keep));
            let mut batch = Batch::with_capacity(watched.port, frames, kept);
            let (identifier, bounds, keep) = (&self.identifier, &self.bounds, watched.keep);
            let mut cut_off = 0;
            watched.ring.read(ready, |packet| {
                let at_ns = packet.at_ns;
                if at_ns > bounds.end_ns {
                    return;
                }
                let way = match packet.is_outgoing {
                    true => Way::Out,
                    false => Way::In,
                };
                cut_off += packet.split(longest, |frame, wire_len| {
                    let identity = identifier.identify(frame, wire_len);
                    let kept = &frame[..frame.len().min(keep)];
                    batch.push(at_ns, way, wire_len, identity, kept);
                    batch.late += u64::from(at_ns < bounds.until_ns);
                });
            });
            watched.cut_off += cut_off;
            if !batch.records.is_empty() {
                (self.sink)(Handed::Batch(batch));
            }
        }
    }

    /// Ends the recording: hands over all frames that passed before this call. Returns the number of lost frames for each ring.
    fn finish(mut self) -> io::Result<Vec<u64>> {
        // All frames handed over so far were stamped before this.
        let end_ns = now_ns();
        self.bounds.end_ns = end_ns;
        // A frame that passes from now on would be in a block that the kernel hands over too late, and be taken for lost.
        for watched in &self.rings {
            watched.ring.accept_no_more()?;
        }
        let settled = Instant::now() + SETTLE;
        while Instant::now() < settled {
            (0..self.rings.len()).for_each(|number| self.read(number));
            thread::sleep(GATHERING);
        }
        let patience = Instant::now() + HANDING_OVER;
        let mut open: Vec<usize> = (0..self.rings.len()).collect();
        loop {
            let mut still_open = Vec::new();
            for number in open {
                self.read(number);
                if !self.rings[number].is_drained()? {
                    still_open.push(number);
                }
            }
            open = still_open;
            if open.is_empty() || Instant::now() > patience {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        for watched in &mut self.rings {
            let missing = watched.ring.passed.saturating_sub(watched.ring.delivered);
            watched.report(missing, end_ns, &mut self.sink);
        }
        self.pass(end_ns);
        let lost = self.rings.iter().map(|watched| watched.reported).collect();
        side_by_side(self.rings, drop);
        Ok(lost)
    }
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}
