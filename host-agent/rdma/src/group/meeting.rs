//! Exchanges queue pairs between ranks: each rank publishes a text in a [`Store`], and reads the texts of the other ranks.
//!
//! A text has one line for the MTU, and one for each queue pair: number of the peer rank that it is for, and its keys (numbers
//! and addresses for the connection). Ranks of the same node have no queue pairs for each other.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use roce::packet::Mtu;

use super::store::{Store, StoreError};
use crate::perftest::Keys;
use crate::provider::ProviderError;

/// Interval at which a rank polls the store for the texts of other ranks.
const LOOK: Duration = Duration::from_millis(2);

/// Reason why the ranks could not exchange their queue pairs.
#[derive(Debug, thiserror::Error)]
pub enum MeetingError {
    /// The store by which the ranks exchange texts failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store already has a text of this rank.
    #[error("{place} already exists: another rank {rank}, or another run; use a new store")]
    Taken {
        /// Name and location of the text in the store.
        place: String,
        /// Number of the rank whose text exists already.
        rank: usize,
    },
    /// A rank's text in the store has an unexpected form.
    #[error("{place} is not a rank's text, or belongs to a group of another size")]
    Content {
        /// Name and location of the text in the store.
        place: String,
    },
    /// Some ranks have not published their texts.
    #[error("rank {rank} has waited {patience:?} for ranks {missing:?}")]
    Missing {
        /// Number of this rank.
        rank: usize,
        /// Time for which this rank waited.
        patience: Duration,
        /// Numbers of the ranks whose texts are missing.
        missing: Vec<usize>,
    },
    /// The RDMA provider failed.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// Exchange of queue pairs between the ranks of a group, by texts in a store.
pub struct Meeting<'a> {
    pub store: &'a mut dyn Store,
    /// Number of this rank; if this process has several ranks, of the first one.
    pub rank: usize,
    pub ranks: usize,
    pub patience: Duration,
}

/// Content of the text that a rank publishes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Announcement {
    pub mtu: Mtu,
    /// For each queue pair of the rank: number of the peer rank for which it was created, and its keys.
    pub keys: Vec<(usize, Keys)>,
}

impl Announcement {
    /// Keys of those queue pairs that this text's rank has created for the peer `rank`.
    pub fn keys_for(&self, rank: usize) -> Vec<&Keys> {
        let own = self.keys.iter().filter(|(peer, _)| *peer == rank);
        own.map(|(_, keys)| keys).collect()
    }
}

impl Meeting<'_> {
    /// Publishes the text with a rank's queue pairs.
    pub fn publish_keys(
        &mut self,
        rank: usize,
        own: &[(usize, Keys)],
        mtu: Mtu,
    ) -> Result<(), MeetingError> {
        let mut text = format!("ranks {} mtu {}\n", self.ranks, mtu.bytes());
        for (peer, keys) in own {
            let keys = keys.encode(0);
            let keys = String::from_utf8_lossy(&keys[..Keys::LEN - 1]).into_owned();
            let _ = writeln!(text, "{peer} {keys}");
        }
        self.publish("rank", rank, &text)
    }

    /// Waits for the texts of all ranks, and returns their contents in order of rank. `wait` is called between polls.
    pub fn await_keys(
        &mut self,
        wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<Vec<Announcement>, MeetingError> {
        let texts = self.await_all("rank", wait)?;
        let told = texts.iter().enumerate().map(|(rank, text)| {
            self.parse(text).ok_or_else(|| MeetingError::Content {
                place: self.store.place(&name("rank", rank)),
            })
        });
        told.collect()
    }

    /// Publishes that `rank` has connected its queue pairs.
    pub fn is_ready(&mut self, rank: usize) -> Result<(), MeetingError> {
        self.publish("ready", rank, "")
    }

    /// Waits until all ranks have connected their queue pairs.
    pub fn all_ready(
        &mut self,
        wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<(), MeetingError> {
        self.await_all("ready", wait).map(|_| ())
    }

    /// Waits until every rank has published its text of the kind `what`; returns the texts in order of rank.
    fn await_all(
        &mut self,
        what: &str,
        mut wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<Vec<String>, MeetingError> {
        let begin = Instant::now();
        let mut found: Vec<Option<String>> = vec![None; self.ranks];
        loop {
            for (rank, found) in found
                .iter_mut()
                .enumerate()
                .filter(|(_, found)| found.is_none())
            {
                *found = self.store.read(&name(what, rank))?;
            }
            let missing = found
                .iter()
                .enumerate()
                .filter(|(_, found)| found.is_none());
            let missing: Vec<usize> = missing.map(|(rank, _)| rank).collect();
            if missing.is_empty() {
                return Ok(found.into_iter().flatten().collect());
            }
            if begin.elapsed() > self.patience {
                return Err(MeetingError::Missing {
                    rank: self.rank,
                    patience: self.patience,
                    missing,
                });
            }
            wait(LOOK)?;
        }
    }

    fn publish(&mut self, what: &str, rank: usize, text: &str) -> Result<(), MeetingError> {
        let published = self.store.publish(&name(what, rank), text);
        published.map_err(|error| match error {
            StoreError::Taken(place) => MeetingError::Taken { place, rank },
            error => error.into(),
        })
    }

    fn parse(&self, text: &str) -> Option<Announcement> {
        let (head, lines) = text.split_once('\n')?;
        let words: Vec<&str> = head.split(' ').collect();
        let ["ranks", ranks, "mtu", mtu] = words[..] else {
            return None;
        };
        if ranks.parse() != Ok(self.ranks) {
            return None;
        }
        let keys = lines.lines().map(|line| {
            let (peer, told) = line.split_once(' ')?;
            let peer = peer.parse().ok().filter(|peer| *peer < self.ranks)?;
            let mut bytes = [0; Keys::LEN];
            let (text, _) = bytes.split_at_mut_checked(told.len())?;
            text.copy_from_slice(told.as_bytes());
            Some((peer, Keys::decode(&bytes)?.0))
        });
        Some(Announcement {
            mtu: Mtu::of_bytes(mtu.parse().ok()?)?,
            keys: keys.collect::<Option<_>>()?,
        })
    }
}

fn name(what: &str, rank: usize) -> String {
    format!("{what}-{rank}")
}

#[cfg(test)]
mod tests {
    use super::super::store::FolderStore;
    use super::*;
    use roce::{Psn, Qpn};

    fn keys(qpn: u32) -> Keys {
        Keys {
            reads: 1,
            qpn: Qpn::new(qpn),
            psn: Psn::new(5),
            rkey: 77,
            address: 1 << 32,
            gid: std::net::Ipv4Addr::new(10, 0, 0, 1).into(),
        }
    }

    fn meeting(store: &mut FolderStore, rank: usize, patience_ms: u64) -> Meeting<'_> {
        Meeting {
            store,
            rank,
            ranks: 2,
            patience: Duration::from_millis(patience_ms),
        }
    }

    fn sleep(time: Duration) -> Result<(), ProviderError> {
        std::thread::sleep(time);
        Ok(())
    }

    #[test]
    fn two_ranks_find_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let told = std::thread::scope(|scope| {
            let one = scope.spawn(|| {
                let mut store = FolderStore::new(path);
                let mut meeting = meeting(&mut store, 0, 5000);
                meeting
                    .publish_keys(0, &[(1, keys(10))], Mtu::B4096)
                    .unwrap();
                meeting.await_keys(sleep).unwrap()
            });
            let mut store = FolderStore::new(path);
            let mut meeting = meeting(&mut store, 1, 5000);
            let several = [(0, keys(20)), (0, keys(21))];
            meeting.publish_keys(1, &several, Mtu::B1024).unwrap();
            let other = meeting.await_keys(sleep).unwrap();
            meeting.is_ready(1).unwrap();
            (one.join().unwrap(), other)
        });
        assert_eq!(told.0, told.1);
        let [first, second] = &told.0[..] else {
            panic!("{told:?}");
        };
        assert_eq!((first.mtu, second.mtu), (Mtu::B4096, Mtu::B1024));
        assert_eq!(second.keys_for(0), [&keys(20), &keys(21)]);
        assert!(second.keys_for(1).is_empty());
        assert_eq!(first.keys, [(1, keys(10))]);
        let alone = meeting(&mut FolderStore::new(path), 0, 10)
            .all_ready(sleep)
            .unwrap_err();
        assert!(alone.to_string().contains("[0]"), "{alone}");
    }

    #[test]
    fn missing_duplicate_and_foreign_ranks_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let mut store = FolderStore::new(path);
        let mut first = meeting(&mut store, 0, 10);
        let own = [(1, keys(10))];
        first.publish_keys(0, &own, Mtu::B256).unwrap();
        let missing = first.await_keys(sleep).unwrap_err();
        assert!(missing.to_string().contains("[1]"), "{missing}");
        let taken = first.publish_keys(0, &own, Mtu::B256).unwrap_err();
        assert!(
            matches!(taken, MeetingError::Taken { rank: 0, .. }),
            "{taken}"
        );
        for text in [
            "ranks 3 mtu 256\n",
            "ranks 2 mtu 256\n5 x\n",
            "ranks 2 mtu 99\n",
            "",
        ] {
            std::fs::write(path.join("rank-1"), text).unwrap();
            let other = first.await_keys(sleep).unwrap_err();
            assert!(matches!(other, MeetingError::Content { .. }), "{other}");
        }
    }
}
