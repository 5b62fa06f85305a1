//! Keeps the posted work requests of a queue pair: a device completes them in order, and reports only signaled requests.

use std::collections::VecDeque;

use roce::completion::{Status, WorkKind};
use roce::{Completion, PostError, QpConfig, Qpn, State};

use super::abi::{self, WorkCompletion};

/// Send queue and receive queue of a queue pair. To the device, a work request's identifier is its position in its queue, times
/// 2, plus 1 for the receive queue.
pub struct Queues {
    qpn: Qpn,
    config: QpConfig,
    pub state: State,
    sends: Queue<Sent>,
    receives: Queue<u64>,
}

/// A posted work request of the send queue.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    pub wr_id: u64,
    pub kind: WorkKind,
    pub len: u32,
}

struct Queue<T> {
    work: VecDeque<T>,
    /// Position of the oldest request that has not completed.
    first: u64,
    most: usize,
}

const RECEIVE: u64 = 1;

impl Queues {
    pub fn new(qpn: Qpn, config: QpConfig) -> Self {
        Self {
            qpn,
            config,
            state: State::Init,
            sends: Queue::new(config.max_sends),
            receives: Queue::new(config.max_receives),
        }
    }

    pub fn config(&self) -> &QpConfig {
        &self.config
    }

    /// Records a work request for the send queue before it is posted; returns its identifier for the device.
    pub fn send(&mut self, work: Sent) -> Result<u64, PostError> {
        match self.state {
            State::Rts => Ok(self.sends.push(work)? << 1),
            state => Err(PostError::State(state)),
        }
    }

    /// Records a work request for the receive queue before it is posted; returns its identifier for the device.
    pub fn receive(&mut self, wr_id: u64) -> Result<u64, PostError> {
        Ok(self.receives.push(wr_id)? << 1 | RECEIVE)
    }

    /// Removes the last recorded work request, with this identifier, because the device has not accepted it.
    pub fn take_back(&mut self, number: u64) {
        match number & RECEIVE {
            RECEIVE => self.receives.work.pop_back().map(|_| ()),
            _ => self.sends.work.pop_back().map(|_| ()),
        };
    }

    /// Converts the device's completion to that of the caller's work request; `None` if no such request is posted.
    pub fn completed(&mut self, told: &WorkCompletion) -> Option<Completion> {
        let (status, qpn) = (status(told.status), self.qpn);
        let place = told.id >> 1;
        if told.id & RECEIVE == 0 {
            let Sent { wr_id, kind, len } = self.sends.done(place)?;
            return Some(Completion {
                wr_id,
                qpn,
                status,
                kind,
                byte_len: len,
                immediate: None,
            });
        }
        // If a work request failed, only its number and status are valid.
        let is_write = told.opcode == abi::RECEIVED_WRITE_IMMEDIATE;
        let has_immediate = told.flags & abi::WITH_IMMEDIATE != 0;
        Some(Completion {
            wr_id: self.receives.done(place)?,
            qpn,
            status,
            kind: match is_write && status == Status::Success {
                true => WorkKind::ReceiveWriteImmediate,
                false => WorkKind::Receive,
            },
            byte_len: told.byte_len,
            immediate: has_immediate.then_some(told.immediate),
        })
    }
}

impl<T: Copy> Queue<T> {
    fn new(most: usize) -> Self {
        let work = VecDeque::new();
        Self {
            work,
            first: 0,
            most,
        }
    }

    fn push(&mut self, work: T) -> Result<u64, PostError> {
        if self.work.len() >= self.most {
            return Err(PostError::QueueFull(self.most));
        }
        self.work.push_back(work);
        Ok(self.first + self.work.len() as u64 - 1)
    }

    /// Removes and returns the request at this position; all earlier requests complete with it.
    fn done(&mut self, place: u64) -> Option<T> {
        let at = usize::try_from(place.checked_sub(self.first)?).ok()?;
        let work = *self.work.get(at)?;
        self.work.drain(..=at);
        self.first = place + 1;
        Some(work)
    }
}

/// Converts a status number of libibverbs (`enum ibv_wc_status`).
fn status(told: u32) -> Status {
    match told {
        0 => Status::Success,
        1 => Status::LocalLength,
        2 => Status::LocalOperation,
        // Access to the requester's memory, or to that of a receive.
        4 | 8 => Status::LocalProtection,
        5 => Status::Flushed,
        7 => Status::BadResponse,
        9 => Status::RemoteInvalidRequest,
        10 => Status::RemoteAccess,
        11 => Status::RemoteOperation,
        12 => Status::RetryExceeded,
        13 => Status::RnrRetryExceeded,
        _ => Status::General,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use roce::packet::Service;

    fn queues(state: State) -> Queues {
        let config = QpConfig {
            max_sends: 2,
            max_receives: 2,
            ..QpConfig::new(Service::Reliable)
        };
        let mut queues = Queues::new(Qpn::new(7), config);
        queues.state = state;
        queues
    }

    fn told(id: u64, status: u32) -> WorkCompletion {
        WorkCompletion {
            id,
            status,
            ..WorkCompletion::default()
        }
    }

    fn sent(wr_id: u64) -> Sent {
        Sent {
            wr_id,
            kind: WorkKind::Write,
            len: 5,
        }
    }

    #[test]
    fn a_completion_completes_all_earlier_requests() {
        let mut queues = queues(State::Rts);
        queues.send(sent(40)).unwrap();
        let second = queues.send(sent(41)).unwrap();
        assert_eq!(queues.send(sent(42)), Err(PostError::QueueFull(2)));
        let done = queues.completed(&told(second, 0)).unwrap();
        assert_eq!(
            (done.wr_id, done.kind, done.byte_len),
            (41, WorkKind::Write, 5)
        );
        // Both queues have space again, and nothing completes twice.
        assert!(queues.completed(&told(second, 0)).is_none());
        let third = queues.send(sent(43)).unwrap();
        queues.send(sent(44)).unwrap();
        let failed = queues.completed(&told(third, 12)).unwrap();
        assert_eq!((failed.wr_id, failed.status), (43, Status::RetryExceeded));
    }

    #[test]
    fn receives_are_apart_from_sends() {
        let mut queues = queues(State::Init);
        assert_eq!(queues.send(sent(1)), Err(PostError::State(State::Init)));
        let first = queues.receive(8).unwrap();
        let second = queues.receive(9).unwrap();
        assert_eq!(queues.receive(10), Err(PostError::QueueFull(2)));
        queues.take_back(second);
        let again = queues.receive(11).unwrap();
        assert_eq!(again, second);
        let came = WorkCompletion {
            opcode: abi::RECEIVED_WRITE_IMMEDIATE,
            flags: abi::WITH_IMMEDIATE,
            immediate: [1, 2, 3, 4],
            byte_len: 77,
            ..told(first, 0)
        };
        let done = queues.completed(&came).unwrap();
        assert_eq!(done.kind, WorkKind::ReceiveWriteImmediate);
        assert_eq!(
            (done.wr_id, done.byte_len, done.immediate),
            (8, 77, Some([1, 2, 3, 4]))
        );
        let flushed = queues.completed(&told(again, 5)).unwrap();
        assert_eq!((flushed.wr_id, flushed.status), (11, Status::Flushed));
        assert_eq!(flushed.kind, WorkKind::Receive);
    }
}
