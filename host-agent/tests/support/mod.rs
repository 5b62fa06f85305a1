//! A switch with the reference slots, in a thread of the test.

#[allow(dead_code)]
pub mod roce;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use aggregation::job::{ChunkId, Job, JobConfig, JobId};
use aggregation::{Destination, WorkerId};
use cluster::ranks::RankSwitch;
use host_agent::frames::{Endpoint, Frames, Mac, asking, build, open, receive_within, sum};

/// Number of the job that it sums.
pub const JOB: u16 = 3;

/// Addresses of a rank.
pub fn endpoint(rank: u16) -> Endpoint {
    Endpoint {
        mac: Mac([2, 0, 0, 0, 0, rank as u8]),
        ip: [10, 0, 0, rank as u8 + 1].into(),
    }
}

/// The next frame, after a wait of at most `timeout`; `None` if no frame has arrived.
#[allow(dead_code)]
pub fn next(
    frames: &mut (impl Frames + ?Sized),
    timeout: Duration,
) -> std::io::Result<Option<Vec<u8>>> {
    let mut came = None;
    receive_within(frames, timeout, 1, &mut |frame: &[u8]| {
        came = Some(frame.to_vec());
    })?;
    Ok(came)
}

/// The switch, until it is dropped.
pub struct Switch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Switch {
    /// Starts a switch; `ports` are the far ends of the ranks' links. It loses every `loses`th frame that it sends.
    pub fn start<F: Frames + 'static>(
        mut ports: Vec<F>,
        mut slots: impl RankSwitch + Send + 'static,
        loses: Option<u64>,
    ) -> Switch {
        let ends = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ends);
        let thread = std::thread::spawn(move || {
            let (mut sent, mut frame) = (0, Vec::new());
            while !over.load(Ordering::Relaxed) {
                for port in 0..ports.len() {
                    let from = port as u16;
                    // A link that is down, or whose rank has left, has no frames.
                    let Ok(Some(came)) = next(&mut ports[port], Duration::from_micros(200)) else {
                        continue;
                    };
                    let (to, addressee) = addressed(&came, from);
                    let Some(own) = open(&came, addressee).map(<[u8]>::to_vec) else {
                        continue;
                    };
                    let mut out = Vec::new();
                    slots.handle(0, WorkerId(from), to, &own, &mut out);
                    for (to, payload) in out {
                        sent += 1;
                        if loses.is_some_and(|loses| sent % loses == 0) {
                            continue;
                        }
                        build(&mut frame, endpoint(from), endpoint(to.0), &payload);
                        let to = &mut ports[usize::from(to.0)];
                        let _ = to.send(&frame).and_then(|()| to.flush());
                    }
                }
            }
        });
        Switch {
            ends,
            thread: Some(thread),
        }
    }
}

/// Destination of a frame.
pub fn addressed(frame: &[u8], from: u16) -> (Destination, Endpoint) {
    let asks = asking(JOB, endpoint(from));
    if frame[..6] == sum(JOB).mac.0 {
        (Destination::All, sum(JOB))
    } else if frame[..6] == asks.mac.0 {
        (Destination::Worker(WorkerId(from)), asks)
    } else {
        let to = u16::from(frame[5]);
        (Destination::Worker(WorkerId(to)), endpoint(to))
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the switch runs to its end");
        }
    }
}

/// A job of this many ranks, with a window of 64 frames of 256 values.
#[allow(dead_code)] // one of the two programs uses it
pub fn job(workers: u16) -> Job {
    let config = JobConfig {
        job: JobId(JOB),
        workers,
        window: 64,
        values_per_packet: 256,
        values_per_round: 0,
        first_chunk: ChunkId(0),
    };
    Job::new(config).unwrap()
}
