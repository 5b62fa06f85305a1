//! Before a job begins: one rank asks from which chunk number on the switch's cells are free.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aggregation::job::ChunkId;
use aggregation::rank::{Opening, Setup};

use super::CollectiveError;
use crate::frames::{Endpoint, Frames, asking, build, open, source};

/// Asks the switch from an endpoint, and gives the job's first chunk, which all ranks are then to be told. It asks from the
/// chunk on that the job has now.
pub fn open_job(
    setup: &Setup,
    me: Endpoint,
    frames: &mut (impl Frames + AsFd),
) -> Result<ChunkId, CollectiveError> {
    let io = |error: io::Error| CollectiveError::Io(Arc::new(error));
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
    let (mut payload, mut frame) = (Vec::new(), Vec::new());
    loop {
        while opening.poll_transmit(now_ns(), &mut payload) {
            build(&mut frame, me, asking(job.id().0, me), &payload);
            frames.send(&frame).map_err(io)?;
        }
        // An answer may have said that nothing can begin.
        if let Err(error) = opening.handle_timeout(now_ns()) {
            let fault = frames.fault();
            return Err(fault.map_or(error.into(), CollectiveError::Link));
        }
        if let Some(first) = opening.first_chunk() {
            return Ok(first);
        }
        let due_ns = opening.poll_timeout().unwrap_or(0);
        let wait = Duration::from_nanos(due_ns.saturating_sub(now_ns()));
        if let Some(frame) = frames.receive(wait).map_err(io)?
            && let Some(payload) = open(frame, me)
            // A switch answers with the header of who asked. Of what comes of others nothing is known.
            && source(frame) == Some(me.ip)
        {
            opening.handle_packet(payload);
        }
    }
}
