//! The operations of a rank: those that wait for room, and those that are under way.
//!
//! The session's thread waits for none of it, so what is asked is answered at once. One thread waits for room, and gives operations
//! to the rank in the order in which they came; another gives their sums back, which are done in the same order.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use aggregation::rank::Reduction;

use super::message::Answer;
use super::session::{Refusal, Socket, broken, refusal};
use super::values;
use crate::collective::{Member, Observer, Pending};

/// The member says itself when it gives up; who asked waits as long as it likes.
const PATIENCE: Duration = Duration::from_secs(365 * 24 * 3_600);

/// What is asked for, and was found to be possible.
pub struct Given {
    /// The asker's number of it.
    pub operation: u64,
    /// The values' type.
    pub dtype: String,
    /// How many.
    pub length: usize,
    /// Bytes that they take.
    pub bytes: u64,
    /// What becomes of them.
    pub reduction: Reduction,
    /// What they are in.
    pub memory: File,
}

/// An operation whose sums are to come.
struct UnderWay {
    operation: u64,
    bytes: u64,
    memory: File,
    pending: Pending,
}

/// What a rank's operations may take together. Who gives more waits until there is room: were an operation refused that other
/// ranks make, all that come after it would meet the wrong ones.
#[derive(Debug)]
pub struct Room {
    /// Bytes of values that may be under way.
    pub bytes: u64,
    /// So many may be given and not answered. The process knows, and gives no more.
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

impl Room {
    /// With nothing in it.
    pub fn new(bytes: u64, operations: u64) -> Room {
        Room {
            bytes,
            operations,
            held: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an operation that has come, whose memory is open from now on; `false` if it is one too many.
    fn admit(&self) -> bool {
        let mut held = self.lock();
        let fits = held.operations < self.operations;
        held.operations += u64::from(fits);
        fits
    }

    /// Waits for room for an operation's values, which are no more than all of it; `false` once nobody wants their sums.
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

    /// An operation is over. Its memory must be closed: its process may give another as soon as it knows.
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

/// A rank's operations. Dropped, the rank leaves, and who waited for sums is told.
pub struct Operations {
    given: Option<Sender<Given>>,
    room: Arc<Room>,
    giver: Option<JoinHandle<()>>,
    finisher: Option<JoinHandle<()>>,
}

impl Operations {
    /// Of this rank, for the process at the other end of the socket.
    pub fn start(member: Member, room: Room, socket: &Arc<Socket>) -> io::Result<Operations> {
        let room = Arc::new(room);
        let (sums, to_come) = mpsc::channel();
        let seen = member.observer();
        let (told, counted) = (Arc::clone(socket), Arc::clone(&room));
        let finisher = std::thread::Builder::new().name("weir sums".to_owned());
        let finisher = finisher.spawn(move || finish(&to_come, &told, &counted, &seen))?;
        let (given, taken) = mpsc::channel();
        let (told, counted) = (Arc::clone(socket), Arc::clone(&room));
        let giver = std::thread::Builder::new().name("weir gives".to_owned());
        // Without this thread the other ends: it has the member and the sender.
        let giver = giver.spawn(move || give(member, &taken, &sums, &counted, &told))?;
        Ok(Operations {
            given: Some(given),
            room,
            giver: Some(giver),
            finisher: Some(finisher),
        })
    }

    /// What they may take.
    pub fn room(&self) -> &Room {
        &self.room
    }

    /// Takes one, whose sums are answered. An error if more were given than may be: the process knows how many that are.
    pub fn give(&self, given: Given) -> io::Result<()> {
        if !self.room.admit() {
            let told = "it gives more operations than it may";
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
        // The first has the member, whose end is that of all that the second waits for.
        for thread in [self.giver.take(), self.finisher.take()] {
            let _ = thread.map(JoinHandle::join);
        }
    }
}

/// Gives the rank what there is room for, until the process has gone.
fn give(
    member: Member,
    given: &Receiver<Given>,
    sums: &Sender<UnderWay>,
    room: &Room,
    socket: &Socket,
) {
    while let Ok(given) = given.recv() {
        let (operation, bytes) = (given.operation, given.bytes);
        if !room.take(bytes) {
            return;
        }
        match begin(&member, given) {
            Ok(under_way) => {
                // The finisher ends after this sender has gone.
                let _ = sums.send(under_way);
            }
            Err((kind, text)) => {
                room.free(bytes);
                let _ = socket.say(&Answer::NotSummed {
                    operation,
                    kind,
                    text,
                });
            }
        }
    }
}

/// Reads an operation's values, and gives them.
fn begin(member: &Member, given: Given) -> Result<UnderWay, Refusal> {
    let Given {
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

/// Gives sums back, in the order in which they were asked for: that in which they are done.
fn finish(to_come: &Receiver<UnderWay>, socket: &Socket, room: &Room, seen: &Observer) {
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
        // Who has gone is not told; its session ends by itself.
        let _ = socket.say(&answer);
    }
}

/// Waits for an operation's sums, and writes them to its memory. What they are off by at most, and how many chunks are not of all.
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
    fn room_is_waited_for_until_it_is_there_or_nobody_wants_it() {
        let room = Room::new(10, 3);
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
        // However much there is.
        assert!(!room.take(1));
    }
}
