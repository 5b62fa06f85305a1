//! Collects a recorder's output into one recording per port.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::{
    Batch, CaptureError, Direction, Filter, Frame, Handed, Limits, RecordedPort, Recorder,
    Recording,
};
use crate::host::Namespace;

/// Collects the frames of a port in a recording, within limits.
#[derive(Debug)]
pub(crate) struct Collector {
    limits: Limits,
    held_bytes: u64,
    recording: Recording,
}

impl Collector {
    pub(crate) fn new(limits: Limits) -> Collector {
        Collector {
            limits,
            held_bytes: 0,
            recording: Recording::default(),
        }
    }

    pub(crate) fn record(&mut self, at_ns: u64, direction: Direction, wire_len: u32, bytes: &[u8]) {
        let kept = &bytes[..bytes.len().min(self.limits.frame_bytes as usize)];
        let cost = (size_of::<Frame>() + kept.len()) as u64;
        let frames = self.recording.frames.len() as u64;
        if frames >= self.limits.frames || self.held_bytes + cost > self.limits.total_bytes {
            self.recording.over_limit += 1;
            return;
        }
        self.held_bytes += cost;
        self.recording.frames.push(Frame {
            at_ns,
            direction,
            wire_len,
            bytes: kept.into(),
        });
    }

    fn take(&mut self, batch: &Batch) {
        for sight in batch.sights() {
            self.record(sight.at_ns, sight.way.into(), sight.wire_len, sight.bytes);
        }
    }

    pub(crate) fn finish(self, lost: u64) -> Recording {
        Recording {
            lost,
            ..self.recording
        }
    }
}

/// One collector for each port of a recorder.
#[derive(Debug)]
struct Collection(Arc<Mutex<Vec<Collector>>>);

impl Collection {
    /// Creates collectors for the ports 0 to `ports` - 1.
    fn new(ports: usize, limits: Limits) -> Collection {
        let collectors = (0..ports).map(|_| Collector::new(limits));
        Collection(Arc::new(Mutex::new(collectors.collect())))
    }

    /// The sink that adds a recorder's frames to the collectors.
    fn sink(&self) -> impl FnMut(Handed) + Send + 'static {
        let collectors = Arc::clone(&self.0);
        move |handed| {
            if let Handed::Batch(batch) = handed {
                let mut collectors = collectors.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(collector) = collectors.get_mut(batch.port) {
                    collector.take(&batch);
                }
            }
        }
    }

    /// The finished recording of each port; `lost` has the number of lost frames for each port.
    fn finish(self, lost: Vec<u64>) -> Vec<Recording> {
        let mut collectors = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = collectors.drain(..).zip(lost);
        finished
            .map(|(collector, lost)| collector.finish(lost))
            .collect()
    }
}

/// A running capture of all frames of one interface.
///
/// It records the frames that the interface receives and sends. A socket with PACKET_QDISC_BYPASS sends past all
/// captures of its own interface: in this case capture at the other end of the link.
#[derive(Debug)]
pub struct Capture {
    recorder: Recorder,
    collection: Collection,
}

impl Capture {
    /// Starts to record an interface. Every frame that passes after this has returned is recorded, or counted as not recorded.
    pub fn start(
        namespace: &Namespace,
        interface: &str,
        filter: Filter,
        limits: Limits,
    ) -> Result<Capture, CaptureError> {
        let port = RecordedPort {
            port: 0,
            namespace: namespace.clone(),
            interface: interface.to_owned(),
            filter,
            keep: limits.frame_bytes,
            rate_bps: None,
        };
        let collection = Collection::new(1, limits);
        Ok(Capture {
            recorder: Recorder::start(vec![port], None, collection.sink())?,
            collection,
        })
    }

    /// Ends several captures at one time: no recording has a frame that passed after this call. Each recording keeps its tag.
    pub fn stop_all<T>(
        captures: impl IntoIterator<Item = (T, Capture)>,
    ) -> Result<Vec<(T, Recording)>, CaptureError> {
        let mut captures: Vec<(T, Capture)> = captures.into_iter().collect();
        let end = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let end_ns = end.map_or(u64::MAX, |end| {
            u64::try_from(end.as_nanos()).unwrap_or(u64::MAX)
        });
        for (_, capture) in &mut captures {
            capture.recorder.begin_stop();
        }
        let stopped = captures.into_iter().map(|(tag, capture)| {
            let mut recording = capture.stop()?;
            recording.frames.retain(|frame| frame.at_ns <= end_ns);
            Ok((tag, recording))
        });
        stopped.collect()
    }

    /// Ends the capture and returns its recording.
    pub fn stop(self) -> Result<Recording, CaptureError> {
        let lost = self.recorder.stop()?;
        let mut recordings = self.collection.finish(lost);
        Ok(recordings.pop().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_collector_counts_further_frames() {
        let by_bytes = Limits {
            frame_bytes: 4,
            total_bytes: 2 * (size_of::<Frame>() as u64 + 4),
            frames: 100,
        };
        let by_frames = Limits {
            total_bytes: 1 << 20,
            frames: 2,
            ..by_bytes
        };
        for limits in [by_bytes, by_frames] {
            let mut collector = Collector::new(limits);
            for at_ns in 0..3 {
                collector.record(at_ns, Direction::In, 9, &[0; 9]);
            }
            let recording = collector.finish(0);
            assert_eq!((recording.frames.len(), recording.over_limit), (2, 1));
            let first = &recording.frames[0];
            assert_eq!((first.bytes.len(), first.wire_len), (4, 9));
            assert!(!recording.is_complete());
        }
    }
}
