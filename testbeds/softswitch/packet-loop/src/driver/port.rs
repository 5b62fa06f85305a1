//! A port of the packet loop: its back end, its counters, and whether it is up.

use crate::ports::Frames;
use std::cell::Cell;
use std::time::Instant;

/// Numbers of frames and bytes at one port of the switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// The port's number.
    pub port: u32,
    /// Name of the port's interface, socket or file.
    pub name: String,
    /// Number of frames received and processed.
    pub rx_frames: u64,
    /// Number of bytes received and processed, without FCS.
    pub rx_bytes: u64,
    /// Number of frames handed to the link, without those known to be lost.
    pub tx_frames: u64,
    /// Number of bytes of the frames handed to the link, without FCS.
    pub tx_bytes: u64,
    /// Number of frames that arrived and were not processed.
    pub rx_errors: u64,
    /// Number of the frames among `rx_errors` that were lost because too many others waited for the switch.
    pub rx_lost_frames: u64,
    /// Number of frames lost because the link was full or down.
    pub tx_errors: u64,
    /// Number of frames that the switch marked (ECN) because too many frames waited for the link.
    pub tx_marked: u64,
}

/// A port of the packet loop: its back end, counters and state.
pub(super) struct Port {
    pub(super) io: Box<dyn Frames>,
    pub(super) counters: PortCounters,
    /// Whether the port is known to have frames.
    pub(super) ready: Cell<bool>,
    pub(super) unflushed: bool,
    pub(super) failed: bool,
    /// Whether the link had carrier when last checked.
    pub(super) carrier: bool,
}

impl Port {
    pub(super) fn new(number: u32, io: Box<dyn Frames>) -> Self {
        Self {
            counters: PortCounters {
                port: number,
                name: io.name().to_owned(),
                ..Default::default()
            },
            io,
            ready: Cell::new(false),
            unflushed: false,
            failed: false,
            carrier: true,
        }
    }

    /// Whether the port is up: it has not failed, and its link has carrier.
    pub(super) fn is_up(&self) -> bool {
        self.carrier && !self.failed
    }

    /// Time at which the back end must be polled and flushed, in nanoseconds since `origin`; `None`: no time is set.
    pub(super) fn due_ns(&self, origin: Instant) -> Option<u64> {
        let due = self.io.due().filter(|_| !self.failed)?;
        let since = due.saturating_duration_since(origin);
        Some(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    pub(super) fn send(&mut self, frame: &[u8]) {
        self.counters.tx_frames += 1;
        self.counters.tx_bytes += frame.len() as u64;
        self.unflushed = true;
        if let Err(error) = self.io.send(frame) {
            tracing::warn!(port = self.counters.port, %error, "frame lost");
            self.lost(1);
        }
    }

    pub(super) fn flush(&mut self) {
        self.unflushed = false;
        match self.io.flush() {
            Ok(lost) => self.lost(lost as u64),
            Err(error) => {
                tracing::warn!(port = self.counters.port, %error, "frames lost");
                self.lost(1);
            }
        }
    }

    fn lost(&mut self, frames: u64) {
        self.counters.tx_errors += frames;
        self.counters.tx_frames = self.counters.tx_frames.saturating_sub(frames);
    }

    /// The port's counters, updated with those of the kernel and the back end.
    pub(super) fn read_counters(&mut self) -> &PortCounters {
        let lost = self.io.overflow().unwrap_or(0);
        self.counters.rx_lost_frames += lost;
        self.counters.rx_errors += lost;
        self.counters.tx_marked += self.io.marked();
        &self.counters
    }
}
