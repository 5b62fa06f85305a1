//! Stores batches of frames until the judge and the keeper have processed them: in memory up to a limit, then on disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use testbeds::capture::Batch;

/// Maximum size of the batches in memory, in bytes.
const MEMORY_BYTES: u64 = 16 << 20;
/// Size of a spool file, in bytes. Files are short, as a file's space is freed only when none of its batches is needed.
const FILE_BYTES: u64 = 64 << 20;

/// Stores batches of frames that wait for the judge. The recorder's thread, the judge's thread and the batches share it.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    memory: AtomicU64,
    disk: Disk,
    open: Mutex<Option<Arc<Segment>>>,
}

/// Counts the disk space that a run uses for frames, up to a limit. All clones count together.
#[derive(Debug, Clone)]
pub struct Disk {
    taken: Arc<AtomicU64>,
    limit: u64,
}

impl Disk {
    /// Creates a count with a limit of `limit` bytes.
    pub fn new(limit: u64) -> Disk {
        let taken = Arc::default();
        Disk { taken, limit }
    }

    /// Takes `bytes` of disk space; returns false, and takes none, if the total would exceed the limit.
    pub fn take(&self, bytes: u64) -> bool {
        let before = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.limit;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// An unnamed spool file: the system deletes it when no batch in it is needed, however weir ends.
#[derive(Debug)]
struct Segment {
    file: File,
    end: AtomicU64,
    disk: Disk,
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.disk.give_back(self.end.load(Ordering::Relaxed));
    }
}

/// Why the spool refuses a batch.
#[derive(Debug)]
pub enum SpoolError {
    /// The limit of disk space is reached.
    Full,
    /// A spool file could not be created or written.
    Failed(io::Error),
}

/// A batch of frames in the spool, in memory or on disk.
#[derive(Debug)]
pub struct Spooled {
    /// Index of the batch's port in the recorder's list of ports.
    pub port: usize,
    /// Number of frames in the batch.
    pub frames: usize,
    /// Number of frames that the recorder got too late: see [`Batch::late`].
    pub late: u64,
    /// When the first frame of the batch passed the port, in nanoseconds since 1970.
    pub first_ns: u64,
    held: Held,
}

#[derive(Debug)]
enum Held {
    Memory(Batch, Arc<Spool>),
    Disk {
        segment: Arc<Segment>,
        at: u64,
        bytes: usize,
    },
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Held::Memory(batch, spool) = self {
            let size = batch.size() as u64;
            spool.memory.fetch_sub(size, Ordering::Relaxed);
        }
    }
}

impl Spool {
    /// Creates a spool whose unnamed files are in `folder`, and whose disk space counts in `disk`.
    pub fn new(folder: PathBuf, disk: Disk) -> Arc<Spool> {
        Arc::new(Spool {
            folder,
            memory: AtomicU64::new(0),
            disk,
            open: Mutex::new(None),
        })
    }

    /// Puts a batch into the spool: into memory if it fits, otherwise on disk.
    pub fn put(self: &Arc<Spool>, batch: Batch) -> Result<Spooled, SpoolError> {
        let size = batch.size() as u64;
        let (port, frames, late) = (batch.port, batch.records.len(), batch.late);
        let first_ns = batch.records.first().map_or(0, |record| record.at_ns);
        let before = self.memory.fetch_add(size, Ordering::Relaxed);
        let held = if before + size <= MEMORY_BYTES {
            Held::Memory(batch, Arc::clone(self))
        } else {
            self.memory.fetch_sub(size, Ordering::Relaxed);
            self.write(&batch)?
        };
        Ok(Spooled {
            port,
            frames,
            late,
            first_ns,
            held,
        })
    }

    fn write(&self, batch: &Batch) -> Result<Held, SpoolError> {
        let mut text = Vec::new();
        batch.encode(&mut text);
        let bytes = text.len();
        if !self.disk.take(bytes as u64) {
            return Err(SpoolError::Full);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_short = |segment: &&Arc<Segment>| segment.end.load(Ordering::Relaxed) < FILE_BYTES;
        let segment = match open.as_ref().filter(is_short) {
            Some(segment) => Arc::clone(segment),
            None => {
                let file = tempfile::tempfile_in(&self.folder).map_err(|error| {
                    self.disk.give_back(bytes as u64);
                    SpoolError::Failed(error)
                })?;
                Arc::new(Segment {
                    file,
                    end: AtomicU64::new(0),
                    disk: self.disk.clone(),
                })
            }
        };
        *open = Some(Arc::clone(&segment));
        // The segment releases the space when dropped, whether or not this write succeeds.
        let at = segment.end.fetch_add(bytes as u64, Ordering::Relaxed);
        let written = segment.file.write_all_at(&text, at);
        written.map_err(SpoolError::Failed)?;
        Ok(Held::Disk { segment, at, bytes })
    }
}

impl Spooled {
    /// Calls `look` with the batch, which is read first if it is on disk.
    pub fn with<T>(&self, look: impl FnOnce(&Batch) -> T) -> io::Result<T> {
        match &self.held {
            Held::Memory(batch, _) => Ok(look(batch)),
            Held::Disk { segment, at, bytes } => {
                let mut text = vec![0; *bytes];
                segment.file.read_exact_at(&mut text, *at)?;
                let batch = Batch::decode(self.port, &text);
                let cut_off = || io::Error::other("frames that waited on disk are cut off");
                Ok(look(&batch.ok_or_else(cut_off)?))
            }
        }
    }

    /// Whether the batch is on disk.
    #[cfg(test)]
    fn is_on_disk(&self) -> bool {
        matches!(self.held, Held::Disk { .. })
    }
}

#[cfg(test)]
mod tests {
    use proof::{Digest, Way};

    use super::*;

    fn batch(bytes: usize, mark: u8) -> Batch {
        let frame = vec![mark; bytes];
        let identity = Digest::of_seed(1).of(&frame, bytes as u32);
        let mut batch = Batch::with_capacity(4, 1, bytes);
        batch.push(u64::from(mark), Way::In, bytes as u32, identity, &frame);
        batch
    }

    #[test]
    fn batches_wait_in_memory_then_on_disk_and_then_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        // Six batches fit in memory, and three on disk.
        let sixth = MEMORY_BYTES / 6;
        let disk = Disk::new(3 * sixth);
        let spool = Spool::new(folder.path().to_owned(), disk.clone());
        let mut waiting = Vec::new();
        let refused = loop {
            match spool.put(batch(sixth as usize - 1_024, waiting.len() as u8)) {
                Ok(spooled) => waiting.push(spooled),
                Err(refused) => break refused,
            }
        };
        assert!(matches!(refused, SpoolError::Full));
        let on_disk: Vec<bool> = waiting.iter().map(Spooled::is_on_disk).collect();
        assert_eq!(on_disk, [vec![false; 6], vec![true; 3]].concat());
        for (mark, spooled) in waiting.iter().enumerate() {
            let first = spooled.with(|batch| batch.bytes[0]).unwrap();
            assert_eq!((spooled.port, first as usize), (4, mark));
        }
        // No file has a name, and a finished batch releases its space.
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        drop(waiting);
        assert_eq!(spool.memory.load(Ordering::Relaxed), 0);
        *spool.open.lock().unwrap() = None;
        assert_eq!(disk.taken.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_folder_that_is_gone_is_an_error_and_takes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::new(1 << 30);
        let spool = Spool::new(folder.path().to_owned(), disk.clone());
        drop(folder);
        let refused = spool.put(batch(65 << 20, 1)).err();
        assert!(
            matches!(refused, Some(SpoolError::Failed(_))),
            "{refused:?}"
        );
        assert_eq!(disk.taken.load(Ordering::Relaxed), 0);
    }
}
