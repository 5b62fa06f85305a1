//! What the controller tells switches, for whoever judges their frames meanwhile.

use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use proof::EpochWrite;
use scenario::telling::Telling;

/// What was told and not taken yet.
#[derive(Debug, Default)]
pub struct Log(Mutex<Untaken>);

#[derive(Debug, Default)]
struct Untaken {
    /// Since when a step is being written that is not confirmed by all switches.
    writing_ns: Option<u64>,
    writes: Vec<EpochWrite>,
    tellings: Vec<Telling>,
}

/// What was told since it was asked.
#[derive(Debug)]
pub struct Taken {
    /// Steps that were confirmed.
    pub writes: Vec<EpochWrite>,
    /// What switches were told of RDMA connections.
    pub tellings: Vec<Telling>,
    /// All that was sent until then is in here, or was before.
    pub until_ns: u64,
}

impl Log {
    /// A step is about to be written.
    pub fn begin(&self) {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Read while nobody takes: what is sent from now on is later.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        untaken.writing_ns = Some(since.map_or(0, |since| since.as_nanos() as u64));
    }

    /// It was, on these switches.
    pub fn end(&self, writes: &[EpochWrite]) {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        untaken.writes.extend_from_slice(writes);
        untaken.writing_ns = None;
    }

    /// A switch was told of an RDMA connection.
    pub fn tell(&self, tellings: &[Telling]) {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        untaken.tellings.extend_from_slice(tellings);
    }

    /// Takes what was told; all that was until a time, if nothing is being written.
    pub fn take(&self, until_ns: u64) -> Taken {
        let mut untaken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let until_ns = untaken.writing_ns.unwrap_or(until_ns).min(until_ns);
        Taken {
            writes: std::mem::take(&mut untaken.writes),
            tellings: std::mem::take(&mut untaken.tellings),
            until_ns,
        }
    }
}
