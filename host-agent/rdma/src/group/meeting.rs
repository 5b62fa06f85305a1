//! Ranks find each other: each leaves a text in a [`Store`] and reads those of the others.
//!
//! A text has a line for the MTU, and one for each peer: the peer's rank and the keys of the queue pair that is for it.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use roce::packet::Mtu;

use super::store::{Store, StoreError};
use crate::perftest::Keys;
use crate::provider::ProviderError;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);

/// Why ranks do not find each other.
#[derive(Debug, thiserror::Error)]
pub enum MeetingError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What this rank leaves is there already.
    #[error("{place} is there already: another rank {rank}, or another run; take a new one")]
    Taken {
        /// What, and where.
        place: String,
        /// The rank.
        rank: usize,
    },
    /// It says something else.
    #[error("{place} is not what a rank leaves, or of a group of another size")]
    Content {
        /// What, and where.
        place: String,
    },
    /// Somebody is missing.
    #[error("rank {rank} has waited {patience:?} for ranks {missing:?}")]
    Missing {
        /// This.
        rank: usize,
        /// For so long.
        patience: Duration,
        /// Who has not come.
        missing: Vec<usize>,
    },
    /// This side.
    #[error(transparent)]
    Provider(#[from] ProviderError),
}

/// See the module.
pub struct Meeting<'a> {
    pub store: &'a mut dyn Store,
    pub rank: usize,
    pub ranks: usize,
    pub patience: Duration,
}

impl Meeting<'_> {
    /// What the others say, each of its queue pair for this rank, and the smallest MTU of all. `wait` is called between two looks.
    pub fn exchange(
        &mut self,
        own: &[(usize, Keys)],
        mtu: Mtu,
        mut wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<(Vec<(usize, Keys)>, Mtu), MeetingError> {
        let text = self.text(own, mtu);
        self.publish("rank", &text)?;
        let (mut theirs, mut least) = (Vec::new(), mtu);
        for (peer, text) in self.await_all("rank", &mut wait)? {
            let place = || self.store.place(&name("rank", peer));
            let content = || MeetingError::Content { place: place() };
            let (keys, its) = self.parse(&text).ok_or_else(content)?;
            theirs.push((peer, keys));
            least = least.min(its);
        }
        Ok((theirs, least))
    }

    /// Returns when all are connected.
    pub fn ready(
        &mut self,
        mut wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<(), MeetingError> {
        self.publish("ready", "")?;
        self.await_all("ready", &mut wait).map(|_| ())
    }

    /// What all others have left.
    fn await_all(
        &mut self,
        what: &str,
        wait: &mut impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<Vec<(usize, String)>, MeetingError> {
        let begin = Instant::now();
        let mut found = Vec::new();
        let mut missing: Vec<usize> = (0..self.ranks).filter(|peer| *peer != self.rank).collect();
        loop {
            let mut still = Vec::new();
            for peer in missing {
                match self.store.look(&name(what, peer))? {
                    Some(text) => found.push((peer, text)),
                    None => still.push(peer),
                }
            }
            missing = still;
            if missing.is_empty() {
                return Ok(found);
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

    fn publish(&mut self, what: &str, text: &str) -> Result<(), MeetingError> {
        let published = self.store.publish(&name(what, self.rank), text);
        published.map_err(|error| match error {
            StoreError::Taken(place) => MeetingError::Taken {
                place,
                rank: self.rank,
            },
            error => error.into(),
        })
    }

    fn text(&self, own: &[(usize, Keys)], mtu: Mtu) -> String {
        let mut text = format!("ranks {} mtu {}\n", self.ranks, mtu.bytes());
        for (peer, keys) in own {
            let keys = keys.encode();
            let keys = String::from_utf8_lossy(&keys[..Keys::LEN - 1]).into_owned();
            let _ = writeln!(text, "{peer} {keys}");
        }
        text
    }

    /// A peer's queue pair for this rank, and its MTU.
    fn parse(&self, text: &str) -> Option<(Keys, Mtu)> {
        let (head, lines) = text.split_once('\n')?;
        let words: Vec<&str> = head.split(' ').collect();
        let ["ranks", ranks, "mtu", mtu] = words[..] else {
            return None;
        };
        if ranks.parse() != Ok(self.ranks) {
            return None;
        }
        let mtu = Mtu::of_bytes(mtu.parse().ok()?)?;
        let mine = lines.lines().find_map(|line| {
            let (peer, keys) = line.split_once(' ')?;
            (peer.parse() == Ok(self.rank)).then_some(keys)
        })?;
        let mut bytes = [0; Keys::LEN];
        let (text, _) = bytes.split_at_mut_checked(mine.len())?;
        text.copy_from_slice(mine.as_bytes());
        Some((Keys::decode(&bytes)?, mtu))
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
    fn two_ranks_find_each_other_and_take_the_smaller_mtu() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let told = std::thread::scope(|scope| {
            let one = scope.spawn(|| {
                let own = [(1, keys(10))];
                meeting(&mut FolderStore::new(path), 0, 5000)
                    .exchange(&own, Mtu::B4096, sleep)
                    .unwrap()
            });
            let own = [(0, keys(20))];
            let other = meeting(&mut FolderStore::new(path), 1, 5000)
                .exchange(&own, Mtu::B1024, sleep)
                .unwrap();
            (one.join().unwrap(), other)
        });
        assert_eq!(told.0, (vec![(1, keys(20))], Mtu::B1024));
        assert_eq!(told.1, (vec![(0, keys(10))], Mtu::B1024));
    }

    #[test]
    fn who_is_missing_or_twice_or_of_another_group_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let own = [(1, keys(10))];
        let mut store = FolderStore::new(folder.path());
        let mut exchange = || meeting(&mut store, 0, 10).exchange(&own, Mtu::B256, sleep);
        let missing = exchange().unwrap_err();
        assert!(missing.to_string().contains("[1]"), "{missing}");
        let taken = exchange().unwrap_err();
        assert!(
            matches!(taken, MeetingError::Taken { rank: 0, .. }),
            "{taken}"
        );
        std::fs::remove_file(folder.path().join("rank-0")).unwrap();
        std::fs::write(folder.path().join("rank-1"), "ranks 3 mtu 256\n").unwrap();
        let other = exchange().unwrap_err();
        assert!(matches!(other, MeetingError::Content { .. }), "{other}");
    }
}
