//! Ranks find each other through a folder that all see: each writes a file, under its name at once, and reads those of the others.
//!
//! A file has a line for the MTU, and one for each peer: the peer's rank and the keys of the queue pair that is for it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use roce::packet::Mtu;

use crate::perftest::Keys;
use crate::provider::ProviderError;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(2);
/// The longest file: a line of 120 bytes for each of 4,096 ranks.
const MOST: u64 = 1 << 19;

/// Why ranks do not find each other.
#[derive(Debug, thiserror::Error)]
pub enum MeetingError {
    /// A file cannot be written or read.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is there already.
    #[error("{} is there already: another rank {rank}, or another run; take a new folder", .path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// The rank.
        rank: usize,
    },
    /// It says something else.
    #[error("{} is not what a rank writes, or of a group of another size", .path.display())]
    Content {
        /// The file.
        path: PathBuf,
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
    pub folder: &'a Path,
    pub rank: usize,
    pub ranks: usize,
    pub patience: Duration,
}

impl Meeting<'_> {
    /// What the others say, each of its queue pair for this rank, and the smallest MTU of all. `wait` is called between two looks.
    pub fn exchange(
        &self,
        own: &[(usize, Keys)],
        mtu: Mtu,
        mut wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<(Vec<(usize, Keys)>, Mtu), MeetingError> {
        self.write(own, mtu)?;
        self.await_all("rank", &mut wait)?;
        let (mut theirs, mut least) = (Vec::new(), mtu);
        for peer in (0..self.ranks).filter(|peer| *peer != self.rank) {
            let (keys, its) = self.read(&self.path("rank", peer))?;
            theirs.push((peer, keys));
            least = least.min(its);
        }
        Ok((theirs, least))
    }

    /// Returns when all are connected.
    pub fn ready(
        &self,
        mut wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<(), MeetingError> {
        self.publish("ready", "")?;
        self.await_all("ready", &mut wait)
    }

    fn await_all(
        &self,
        what: &str,
        wait: &mut impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<(), MeetingError> {
        let begin = Instant::now();
        for peer in 0..self.ranks {
            while !self.path(what, peer).is_file() {
                if begin.elapsed() > self.patience {
                    let is_missing = |peer: &usize| !self.path(what, *peer).is_file();
                    return Err(MeetingError::Missing {
                        rank: self.rank,
                        patience: self.patience,
                        missing: (0..self.ranks).filter(is_missing).collect(),
                    });
                }
                wait(LOOK)?;
            }
        }
        Ok(())
    }

    fn path(&self, what: &str, rank: usize) -> PathBuf {
        self.folder.join(format!("{what}-{rank}"))
    }

    fn write(&self, own: &[(usize, Keys)], mtu: Mtu) -> Result<(), MeetingError> {
        let mut text = format!("ranks {} mtu {}\n", self.ranks, mtu.bytes());
        for (peer, keys) in own {
            let keys = keys.encode();
            let keys = String::from_utf8_lossy(&keys[..Keys::LEN - 1]).into_owned();
            let _ = writeln!(text, "{peer} {keys}");
        }
        self.publish("rank", &text)
    }

    /// A file, all of it at once.
    fn publish(&self, what: &str, text: &str) -> Result<(), MeetingError> {
        let path = self.path(what, self.rank);
        // Nobody else's, whatever rank it takes itself for.
        let own = (std::process::id(), std::thread::current().id());
        let part = self.folder.join(format!(".{what}-{}-{own:?}", self.rank));
        let of = |path: &Path| {
            let path = path.to_owned();
            move |source| MeetingError::File { path, source }
        };
        fs::create_dir_all(self.folder).map_err(of(self.folder))?;
        fs::write(&part, text).map_err(of(&part))?;
        // A link, not a new name: it fails where the file is there already.
        let linked = fs::hard_link(&part, &path);
        let _ = fs::remove_file(&part);
        linked.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => MeetingError::Taken {
                path: path.clone(),
                rank: self.rank,
            },
            _ => of(&path)(source),
        })
    }

    /// A peer's queue pair for this rank, and its MTU.
    fn read(&self, path: &Path) -> Result<(Keys, Mtu), MeetingError> {
        let of = |source| MeetingError::File {
            path: path.to_owned(),
            source,
        };
        if fs::metadata(path).map_err(of)?.len() > MOST {
            return Err(self.content(path));
        }
        let text = fs::read_to_string(path).map_err(of)?;
        self.parse(&text).ok_or_else(|| self.content(path))
    }

    fn content(&self, path: &Path) -> MeetingError {
        let path = path.to_owned();
        MeetingError::Content { path }
    }

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

#[cfg(test)]
mod tests {
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

    fn meeting(folder: &Path, rank: usize, patience_ms: u64) -> Meeting<'_> {
        Meeting {
            folder,
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
                meeting(path, 0, 5000)
                    .exchange(&own, Mtu::B4096, sleep)
                    .unwrap()
            });
            let own = [(0, keys(20))];
            let other = meeting(path, 1, 5000)
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
        let exchange = || meeting(folder.path(), 0, 10).exchange(&own, Mtu::B256, sleep);
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
