//! The operations of a daemon's rank: those that wait for capacity, and those in flight.
//!
//! The session's thread never waits for an operation, so it answers requests at once. One thread waits for room, and submits
//! operations to the rank in the order of their requests; another thread returns their sums, which complete in the same order.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use aggregation::rank::Reduction;

use super::message::Answer;
use super::refusal::{Refusal, broken, refusal};
use super::socket::Socket;
use super::values;
use crate::collective::{Member, Observer, Pending};

/// Maximum wait for sums: a year, since the rank reports its own failure, and the client waits as long as it wants.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 3_600);

/// A client's validated request for an operation.
pub struct OperationRequest {
    /// Number of the operation, by which the client knows it.
    pub operation: u64,
    /// Element type of the values.
    pub dtype: String,
    /// Number of values.
    pub length: usize,
    /// Length of the values in bytes.
    pub bytes: u64,
    /// How the operation reduces the values of all ranks.
    pub reduction: Reduction,
    /// Memory that has the values, and receives the sums.
    pub memory: File,
}

/// An operation that was submitted to the rank and has no sums yet.
struct UnderWay {
    operation: u64,
    bytes: u64,
    memory: File,
    pending: Pending,
}

/// Limit on all operations of a rank together. An operation beyond it must wait: if only this rank refused it, all later
/// operations would be summed with the wrong ones of other ranks.
#[derive(Debug)]
pub struct Capacity {
    /// Maximum number of bytes of values in flight.
    pub bytes: u64,
    /// Maximum number of unanswered operations. The client knows this limit and must not exceed it.
    pub operations: u64,
    held: Mutex<Held>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Held {
    operations: u64,
    bytes: u64,
    is_closed: bool,
}

impl Capacity {
    /// A limit of `bytes` and `operations`, with nothing in use.
    pub fn new(bytes: u64, operations: u64) -> Capacity {
        Capacity {
            bytes,
            operations,
            held: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a new operation, which keeps its memory file open; returns `false` if it exceeds the limit.
    fn admit(&self) -> bool {
        let mut held = self.lock();
        let fits = held.operations < self.operations;
        held.operations += u64::from(fits);
        fits
    }

    /// Waits for capacity for the values of an operation (at most `self.bytes`); returns `false` once the client has left.
    fn take(&self, bytes: u64) -> bool {
        let full =
            |held: &mut Held| !held.is_closed && held.bytes.saturating_add(bytes) > self.bytes;
        let held = self.freed.wait_while(self.lock(), full);
        let mut held = held.unwrap_or_else(PoisonError::into_inner);
        if !held.is_closed {
            held.bytes += bytes;
        }
        !held.is_closed
    }

    /// Releases an operation's capacity. Its memory must already be closed, since the client may then submit another one.
    fn free(&self, bytes: u64) {
        let mut held = self.lock();
        held.operations -= 1;
        held.bytes -= bytes;
        self.freed.notify_all();
    }

    fn close(&self) {
        self.lock().is_closed = true;
        self.freed.notify_all();
    }
}

/// Operations of a daemon's rank. Dropping this value makes the rank leave, and fails unfinished operations.
pub struct Operations {
    given: Option<Sender<OperationRequest>>,
    room: Arc<Capacity>,
    giver: Option<JoinHandle<()>>,
    finisher: Option<JoinHandle<()>>,
}

impl Operations {
    /// Starts the two threads that process operations of this rank, for the client at the other end of the socket.
    pub fn start(member: Member, room: Capacity, socket: &Arc<Socket>) -> io::Result<Operations> {
        let room = Arc::new(room);
        let (sums, to_come) = mpsc::channel();
        let seen = member.observer();
        let (told, counted) = (Arc::clone(socket), Arc::clone(&room));
        let finisher = std::thread::Builder::new().name("weir sums".to_owned());
        let finisher = finisher.spawn(move || finish(&to_come, &told, &counted, &seen))?;
        let (given, taken) = mpsc::channel();
        let (told, counted) = (Arc::clone(socket), Arc::clone(&room));
        let giver = std::thread::Builder::new().name("weir gives".to_owned());
        // If this thread cannot start, the other one ends: this one owns the member and the sender.
        let giver = giver.spawn(move || give(member, &taken, &sums, &counted, &told))?;
        Ok(Operations {
            given: Some(given),
            room,
            giver: Some(giver),
            finisher: Some(finisher),
        })
    }

    /// The limit on the rank's operations.
    pub fn room(&self) -> &Capacity {
        &self.room
    }

    /// Accepts an operation, whose sums are returned later. An error if it exceeds the limit, which the client knows.
    pub fn give(&self, given: OperationRequest) -> io::Result<()> {
        if !self.room.admit() {
            let told = "it has more unanswered operations than the limit";
            return Err(io::Error::new(io::ErrorKind::InvalidData, told));
        }
        let sent = self.given.as_ref().map(|sender| sender.send(given));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for Operations {
    fn drop(&mut self) {
        self.given = None;
        self.room.close();
        // The first thread owns the member, whose end finishes everything that the second waits for.
        for thread in [self.giver.take(), self.finisher.take()] {
            let _ = thread.map(JoinHandle::join);
        }
    }
}

/// Submits operations to the rank as capacity allows, until the client has left.
fn give(
    member: Member,
    given: &Receiver<OperationRequest>,
    sums: &Sender<UnderWay>,
    room: &Capacity,
    socket: &Socket,
) {
    while let Ok(given) = given.recv() {
        let (operation, bytes) = (given.operation, given.bytes);
        if !room.take(bytes) {
            return;
        }
        match begin(&member, given) {
            Ok(under_way) => {
                // The finisher ends only after this sender is dropped.
                let _ = sums.send(under_way);
            }
            Err((kind, text)) => {
                room.free(bytes);
                let _ = socket.send(&Answer::NotSummed {
                    operation,
                    kind,
                    text,
                });
            }
        }
    }
}

/// Reads the values of an operation from its memory, and submits them to the rank.
fn begin(member: &Member, given: OperationRequest) -> Result<UnderWay, Refusal> {
    let OperationRequest {
        operation,
        dtype,
        length,
        bytes,
        reduction,
        memory,
    } = given;
    let values = values::load(&dtype, length, &memory).map_err(|error| broken(&error))?;
    let pending = member.all_reduce_as(values, reduction);
    Ok(UnderWay {
        operation,
        bytes,
        memory,
        pending: pending.map_err(|error| refusal(&error))?,
    })
}

/// Returns sums to the client in the order of its requests, which is also the order in which operations complete.
fn finish(to_come: &Receiver<UnderWay>, socket: &Socket, room: &Capacity, seen: &Observer) {
    while let Ok(under_way) = to_come.recv() {
        let (operation, bytes) = (under_way.operation, under_way.bytes);
        let stored = store(under_way);
        room.free(bytes);
        let answer = match stored {
            Ok((error_bound, partial)) => Answer::Summed {
                operation,
                error_bound,
                partial,
                fallbacks: seen.fallbacks(),
            },
            Err((kind, text)) => Answer::NotSummed {
                operation,
                kind,
                text,
            },
        };
        // The client may have left; its session ends by itself.
        let _ = socket.send(&answer);
    }
}

/// Waits for an operation's sums, and writes them to its memory. Returns the error bound, and the number of partial chunks.
fn store(under_way: UnderWay) -> Result<(f64, u64), Refusal> {
    let UnderWay {
        operation: _,
        bytes,
        memory,
        pending,
    } = under_way;
    let sums = pending.wait(PATIENCE).map_err(|error| refusal(&error))?;
    let stored = values::store(&sums.values, &memory);
    let stored = stored.and_then(|()| values::store_partial(&sums.partial, bytes, &memory));
    stored.map_err(|error| broken(&error))?;
    Ok((sums.error_bound, sums.partial.len() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_wait_for_capacity_until_the_client_leaves() {
        let room = Capacity::new(10, 3);
        assert!(room.admit() && room.admit() && room.admit() && !room.admit());
        assert!(room.take(6));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| room.take(5));
            room.free(6);
            assert!(waits.join().unwrap());
            assert!(room.admit() && !room.admit());
            let waits = scope.spawn(|| room.take(6));
            room.close();
            assert!(!waits.join().unwrap());
        });
        // Regardless of the capacity.
        assert!(!room.take(1));
    }
}
