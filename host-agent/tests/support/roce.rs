//! A switch for ranks that use RoCEv2, in a thread of the test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use aggregation::job::{Job, TreePosition, WorkerId};
use cluster::ranks::RankSlotSwitch;
use cluster::rdma::{LinkFrame, RdmaCounters, RdmaSwitch};
use host_agent::frames::{Endpoint, Frames, build, open, receive_within};
use roce::packet::Address;

use super::{addressed, endpoint};

/// Addresses of a rank, as RoCEv2 needs them.
pub fn address(rank: u16) -> Address {
    let Endpoint { mac, ip } = endpoint(rank);
    Address { mac: mac.0, ip }
}

/// The switch, until it is dropped.
pub struct Switch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<RdmaCounters>>,
}

impl Switch {
    /// Starts a switch; each rank has a link for RoCEv2 and one for UDP. It loses every `loses`th frame that it sends.
    pub fn start<F: Frames + 'static>(
        job: Job,
        slots: RankSlotSwitch,
        mut ports: Vec<[F; 2]>,
        loses: Option<u64>,
    ) -> Switch {
        let ends = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ends);
        let places = (0..job.workers()).map(|rank| {
            let place = TreePosition::under_one_switch(&job, WorkerId(rank));
            (address(rank), place)
        });
        let (id, window) = (job.id().0, job.window());
        let mut switch = RdmaSwitch::new(slots, id, window, places.collect());
        let thread = std::thread::spawn(move || {
            let mut sent = 0;
            while !over.load(Ordering::Relaxed) {
                for from in 0..ports.len() {
                    for frame in taken(&mut ports[from]) {
                        let mut out = Vec::new();
                        handle(&mut switch, from as u16, &frame, &mut out);
                        for (to, frame) in out {
                            sent += 1;
                            if loses.is_none_or(|loses| sent % loses != 0) {
                                send(&mut ports[usize::from(to.0)], from as u16, to.0, &frame);
                            }
                        }
                    }
                }
            }
            switch.counters
        });
        let thread = Some(thread);
        Switch { ends, thread }
    }

    /// Stops the switch, and returns its counters.
    pub fn counters(mut self) -> RdmaCounters {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A failing test reports its own reason.
            let _ = thread.join();
        }
    }
}

/// The frames that have arrived at a port.
fn taken<F: Frames>([roce, udp]: &mut [F; 2]) -> Vec<LinkFrame> {
    let mut taken = Vec::new();
    // A link whose rank has left has no frames.
    let mut take = |frame: &[u8]| taken.push(LinkFrame::Roce(frame.to_vec()));
    let _ = receive_within(roce, Duration::from_micros(100), 64, &mut take);
    let mut take = |frame: &[u8]| taken.push(LinkFrame::Udp(frame.to_vec()));
    let _ = udp.receive(64, &mut take);
    taken
}

fn handle(
    switch: &mut RdmaSwitch<RankSlotSwitch>,
    from: u16,
    frame: &LinkFrame,
    out: &mut Vec<(WorkerId, LinkFrame)>,
) {
    match frame {
        LinkFrame::Roce(frame) => switch.handle_roce(0, WorkerId(from), frame, out),
        LinkFrame::Udp(frame) => {
            let (to, addressee) = addressed(frame, from);
            if let Some(payload) = open(frame, addressee) {
                switch.handle_udp(0, WorkerId(from), to, payload, out);
            }
        }
    }
}

fn send<F: Frames>([roce, udp]: &mut [F; 2], from: u16, to: u16, frame: &LinkFrame) {
    let _ = match frame {
        LinkFrame::Roce(frame) => roce.send(frame).and_then(|()| roce.flush()),
        LinkFrame::Udp(payload) => {
            let mut frame = Vec::new();
            build(&mut frame, endpoint(from), endpoint(to), payload);
            udp.send(&frame).and_then(|()| udp.flush())
        }
    };
}
