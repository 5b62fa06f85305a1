//! A port of the packet loop: back end, counters, what is known of it.

use crate::ports::PortIo;
use std::cell::Cell;
use std::time::Instant;

/// Frames and bytes at one port, seen from the switch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// The port's number.
    pub port: u32,
    /// What stands behind it.
    pub name: String,
    /// Received and processed.
    pub rx_frames: u64,
    /// Without FCS.
    pub rx_bytes: u64,
    /// Handed to the link, less those known to be lost.
    pub tx_frames: u64,
    /// Without FCS; of frames handed to the link.
    pub tx_bytes: u64,
    /// Arrived and not processed.
    pub rx_errors: u64,
    /// Of these, frames that arrived while too many others waited for the switch.
    pub rx_lost_frames: u64,
    /// Lost at a link that was full or down.
    pub tx_errors: u64,
    /// Marked (ECN) because too many waited for the link.
    pub tx_marked: u64,
}

/// A port and its state.
pub(super) struct Port {
    pub(super) io: Box<dyn PortIo>,
    pub(super) counters: PortCounters,
    /// Has frames, as far as is known.
    pub(super) ready: Cell<bool>,
    pub(super) unflushed: bool,
    pub(super) failed: bool,
    /// The link has carrier, as far as is known.
    pub(super) carrier: bool,
}

impl Port {
    pub(super) fn new(number: u32, io: Box<dyn PortIo>) -> Self {
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

    /// Whether members of selectors that watch it may be picked.
    pub(super) fn is_up(&self) -> bool {
        self.carrier && !self.failed
    }

    /// When the back end is to be asked and flushed, as time since `origin`.
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

    /// The counters, with what the kernel and the back end have counted meanwhile.
    pub(super) fn read_counters(&mut self) -> &PortCounters {
        let lost = self.io.overflow();
        self.counters.rx_lost_frames += lost;
        self.counters.rx_errors += lost;
        self.counters.tx_marked += self.io.marked();
        &self.counters
    }
}
