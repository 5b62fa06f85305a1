//! Opening of a job: one rank probes the switch for the first chunk number whose register cells are free.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aggregation::job::ChunkId;
use aggregation::rank::{Opening, Setup, Transmit};
use aggregation::{Destination, Mark};
use wire::Repr;

use super::{Carrier, CollectiveError, Datagrams, Takes};
use crate::frames::{Endpoint, Frames};

/// Maximum number of received frames that are processed before the result is checked.
const BURST: usize = 64;

/// Probes the switch from this rank, beginning at the job's configured first chunk. Returns the chunk number at which the job
/// begins, which the caller must announce to all ranks.
pub fn open_job(
    setup: &Setup,
    me: Endpoint,
    frames: &mut impl Frames,
) -> Result<ChunkId, CollectiveError> {
    let (job, rank) = (setup.job.id().0, setup.rank.0);
    open_job_by(setup, &mut Datagrams::alone(frames, job, rank, me))
}

/// Like [`open_job`], over any carrier of frames.
pub fn open_job_by(setup: &Setup, carrier: &mut dyn Carrier) -> Result<ChunkId, CollectiveError> {
    let Setup {
        job,
        place,
        retransmission,
        lateness,
        ..
    } = *setup;
    let origin = Instant::now();
    let now_ns = || u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut opening = Opening::new(job, place, retransmission);
    if lateness.is_some() {
        opening = opening.with_deadlines();
    }
    let me = Destination::Worker(setup.rank);
    loop {
        let now = now_ns();
        carrier.handle_timeout(now)?;
        while carrier.is_ready()
            && let Some(probe) = opening.poll_transmit(now)
        {
            carrier.send(now, &Transmit::without_values(me, probe))?;
        }
        carrier.flush()?;
        // An answer may have made the opening fail.
        if let Err(error) = opening.handle_timeout(now_ns()) {
            let fault = carrier.fault();
            return Err(fault.map_or(error.into(), CollectiveError::Link));
        }
        if let Some(first) = opening.first_chunk() {
            return Ok(first);
        }
        if carrier.receive(now_ns(), BURST, &mut Taker(&mut opening))? > 0 {
            continue;
        }
        let now = now_ns();
        let due_ns = opening.poll_timeout().into_iter();
        let due_ns = due_ns.chain(carrier.poll_timeout(now)).min().unwrap_or(now);
        wait(carrier, Duration::from_nanos(due_ns.saturating_sub(now)))?;
    }
}

/// Waits at most `timeout` for a frame.
fn wait(carrier: &dyn Carrier, timeout: Duration) -> Result<(), CollectiveError> {
    match frames::wait_readable(carrier.readable(), timeout) {
        Ok(_) => Ok(()),
        Err(error) => Err(CollectiveError::Io(Arc::new(error))),
    }
}

/// Passes received frames to the state machine that probes the switch.
struct Taker<'a>(&'a mut Opening);

impl Takes for Taker<'_> {
    fn take(&mut self, _mark: Mark, header: &Repr, _payload: &[u8]) {
        self.0.handle_frame(header);
    }

    fn malformed(&mut self) {}

    fn unreachable(&mut self, _host: Ipv4Addr) {}

    fn near(&self, low: u16) -> (u32, u8) {
        (self.0.near(low).0, 0)
    }
}
