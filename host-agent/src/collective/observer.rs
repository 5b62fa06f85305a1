//! Observation of a rank's status from other threads.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aggregation::UnderWay;
use aggregation::rank::{RankCounters, Setup};
use nix::sys::eventfd::EventFd;

use super::Shared;
use crate::frames::Endpoint;
use crate::metrics::{Role, Status, Waits, count_rank, names};

/// Maximum wait for a rank's status: the request wakes the rank's thread to write it.
const PATIENCE: Duration = Duration::from_millis(500);

/// Status that a rank's thread writes on request.
#[derive(Debug, Clone)]
pub(super) struct MemberSnapshot {
    pub counters: RankCounters,
    pub foreign: u64,
    pub received: u64,
    pub lost: Option<u64>,
    pub unsent: u64,
    /// The chunk that is not finished, and the time since when it waits; `None` if there is none.
    pub under_way: Option<(UnderWay, Instant)>,
    pub failed: Option<String>,
}

/// Observer of a rank's status, from any thread.
#[derive(Debug, Clone)]
pub struct Observer {
    setup: Setup,
    me: Endpoint,
    shared: Arc<Shared>,
    wake: Arc<EventFd>,
}

impl Observer {
    pub(super) fn new(
        setup: Setup,
        me: Endpoint,
        shared: Arc<Shared>,
        wake: Arc<EventFd>,
    ) -> Observer {
        Observer {
            setup,
            me,
            shared,
            wake,
        }
    }

    /// Number of times that the switch fell silent, so that the ranks summed instead, as of the last finished operation.
    pub fn fallbacks(&self) -> u64 {
        self.shared.lock().counters.fallbacks
    }

    /// Counters and unfinished chunk of the rank; those known last if its thread hangs or has ended.
    pub fn status(&self) -> Status {
        let Setup {
            job, rank, place, ..
        } = self.setup;
        let mut status = Status::new(Role::Rank, &job, Some(rank.0));
        status.child = Some((place.child.0, place.siblings));
        status.address = Some(self.me.to_string());
        let wake = || {
            // The write fails only if the counter is full; the thread then wakes, too.
            let _ = self.wake.write(1);
        };
        let Some((seen, at)) = self.shared.board.request(PATIENCE, wake) else {
            status.age_ms = ms(PATIENCE);
            return status;
        };
        count_rank(&mut status, seen.counters, seen.foreign);
        status.count([
            (names::RECEIVED_FRAMES, seen.received),
            (names::UNSENT_FRAMES, seen.unsent),
        ]);
        if let Some(lost) = seen.lost {
            status.count([(names::LOST_FRAMES, lost)]);
        }
        let waits =
            |(found, since): (UnderWay, Instant)| Waits::new(&job, found, ms(since.elapsed()));
        status.waits = seen.under_way.map(waits);
        status.failed = seen.failed;
        status.age_ms = ms(at.elapsed());
        status
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
