//! Queue admission and the queues between ingress and egress (TNA 5.7.4, 5.7.5).
//!
//! Each port has several queues; a copy of a packet joins the one with number `qid`. A queue refuses copies if it is full, or
//! longer than their color allows. A refused unicast copy that asks for deflection then goes to the deflection queue, once.

use super::Tna;
use super::ghost::Report;
use super::multicast::EgressCopy;
use crate::arch::core::Core;
use crate::job::{Job, Path};
use crate::queues::{Admission, CLASSES, Waited};
use crate::stats::DropReason;

/// Number of bits for a queue's number within its port, in the queue number that a ghost gets. The port precedes them.
const QUEUE_BITS: u32 = 4;

impl Tna {
    /// Enqueues a copy at its port, runs its egress if it need not wait, or drops or deflects it if the queue refuses it.
    pub(super) fn enqueue(&self, core: &mut Core, now_ns: u64, mut copy: EgressCopy, bytes: &[u8]) {
        if !core.tofino.is_port(&core.config.ports, copy.port) {
            core.stats.drop(DropReason::InvalidPort);
            return;
        }
        let cells = core.queues.cells(copy.port, copy.qid);
        copy.congestion.0 = core.tofino.congestion(cells);
        let full = core.queues.admit(now_ns, copy.port, copy.qid) == Admission::Full;
        if full || refuses(copy.congestion.0, copy.colour) {
            match core.tofino.deflection().filter(|_| copy.deflects) {
                Some((port, qid)) => {
                    let deflected = EgressCopy {
                        port,
                        qid: qid.into(),
                        deflects: false,
                        deflected: true,
                        ..copy
                    };
                    self.enqueue(core, now_ns, deflected, bytes);
                }
                None => core.stats.drop(DropReason::QueueFull),
            }
            return;
        }
        let job = || Job {
            path: Path::Unicast,
            port: copy.port,
            instance: copy.rid,
            class: copy.qid,
            passes: copy.passes,
            ..Job::default()
        };
        let to = (copy.port, copy.qid);
        let meta = |_: &[u64], kept: &mut Vec<u64>| kept.extend(packed(&copy));
        if core.passes_straight(now_ns, to, bytes, job, meta) {
            copy.waited = Waited::not(now_ns);
            copy.congestion.1 = copy.congestion.0;
            self.egress(core, now_ns, copy, bytes);
        } else {
            self.changed(core, now_ns, to);
        }
    }

    /// Reports the length of a port's queue, after it has changed, to the ghost controls.
    fn changed(&self, core: &mut Core, now_ns: u64, (port, qid): (u32, u64)) {
        if self.pipelines.iter().all(|p| p.ghost.is_none()) {
            return;
        }
        let class = qid.min(CLASSES as u64 - 1);
        let report = Report {
            pipe: port >> 7,
            queue: u64::from(port & 0x7f) << QUEUE_BITS | class,
            cells: core.queues.cells(port, class),
        };
        self.report(core, now_ns, report);
    }

    /// Handles a report of a queue's length from the caller: pipe, queue number within it, and length in cells.
    pub(crate) fn reported(
        &self,
        core: &mut Core,
        now_ns: u64,
        (pipe, queue): (u32, u64),
        cells: u64,
    ) {
        let report = Report { pipe, queue, cells };
        self.report(core, now_ns, report);
    }

    /// Runs egress for a copy that has waited for its port in a queue.
    pub(crate) fn leave_queue(&self, core: &mut Core, now_ns: u64, job: &Job, waited: &Waited) {
        self.changed(core, now_ns, (job.port, job.class));
        let mut copy = unpacked(job);
        copy.waited = *waited;
        copy.congestion.1 = core.tofino.congestion(waited.dequeue_cells);
        self.egress(core, now_ns, copy, &job.bytes);
    }
}

/// Whether a queue with this congestion (0 none to 3 extreme) refuses packets of this color (0 green, 3 red, else yellow).
fn refuses(congestion: u64, colour: u64) -> bool {
    match colour & 3 {
        0 => congestion > 2,
        3 => congestion > 0,
        _ => congestion > 1,
    }
}

/// Packs those fields of a waiting copy for which a `Job` has no field of its own.
fn packed(copy: &EgressCopy) -> [u64; 5] {
    let flags = [copy.rid_first, copy.bypass, copy.deflected];
    let flags = flags.iter().fold(0, |all, f| all << 1 | u64::from(*f));
    [flags, copy.qid, copy.cos, copy.colour, copy.congestion.0]
}

fn unpacked(job: &Job) -> EgressCopy {
    let word = |i: usize| job.meta.get(i).copied().unwrap_or(0);
    EgressCopy {
        port: job.port,
        rid: job.instance,
        rid_first: word(0) & 4 != 0,
        bypass: word(0) & 2 != 0,
        deflected: word(0) & 1 != 0,
        qid: word(1),
        cos: word(2),
        colour: word(3),
        passes: job.passes,
        congestion: (word(4), 0),
        ..EgressCopy::default()
    }
}
