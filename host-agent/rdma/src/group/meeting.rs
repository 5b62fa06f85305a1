//! Ranks find each other through a folder that all see: each writes a file, under its name at once, and reads those of the others.
//!
//! A file has a line for the MTU, and one for each queue pair: the rank that it is for, and its keys. Who is on the same node has
//! none.

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
/// The longest file: a line of 120 bytes for each of several queue pairs of 4,096 ranks.
const MOST: u64 = 1 << 22;

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

/// What a rank says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub mtu: Mtu,
    /// Its queue pairs: for whom, and their keys.
    pub keys: Vec<(usize, Keys)>,
}

impl Told {
    /// Its queue pairs for a rank.
    pub fn of(&self, rank: usize) -> Vec<&Keys> {
        let own = self.keys.iter().filter(|(peer, _)| *peer == rank);
        own.map(|(_, keys)| keys).collect()
    }
}

impl Meeting<'_> {
    /// What a rank says, once it does. `wait` is called between two looks.
    pub fn hear(
        &self,
        rank: usize,
        wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<Told, MeetingError> {
        self.await_from(rank, "rank", wait)?;
        self.read(&self.path("rank", rank))
    }

    /// This rank is connected.
    pub fn is_ready(&self) -> Result<(), MeetingError> {
        self.publish("ready", "")
    }

    /// Returns when all are.
    pub fn all_ready(
        &self,
        wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<(), MeetingError> {
        self.await_from(0, "ready", wait)
    }

    /// Until this rank and all after it have written such a file.
    fn await_from(
        &self,
        first: usize,
        what: &str,
        mut wait: impl FnMut(Duration) -> Result<(), ProviderError>,
    ) -> Result<(), MeetingError> {
        let begin = Instant::now();
        for peer in first..self.ranks {
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

    /// Says what this rank's queue pairs are.
    pub fn write(&self, own: &[(usize, Keys)], mtu: Mtu) -> Result<(), MeetingError> {
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

    fn read(&self, path: &Path) -> Result<Told, MeetingError> {
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

    fn parse(&self, text: &str) -> Option<Told> {
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
            Some((peer, Keys::decode(&bytes)?))
        });
        Some(Told {
            mtu: Mtu::of_bytes(mtu.parse().ok()?)?,
            keys: keys.collect::<Option<_>>()?,
        })
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
    fn two_ranks_find_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let told = std::thread::scope(|scope| {
            let one = scope.spawn(|| {
                let meeting = meeting(path, 0, 5000);
                meeting.write(&[(1, keys(10))], Mtu::B4096).unwrap();
                meeting.hear(1, sleep).unwrap()
            });
            let meeting = meeting(path, 1, 5000);
            let several = [(0, keys(20)), (0, keys(21))];
            meeting.write(&several, Mtu::B1024).unwrap();
            let other = meeting.hear(0, sleep).unwrap();
            meeting.is_ready().unwrap();
            (one.join().unwrap(), other)
        });
        assert_eq!(told.0.mtu, Mtu::B1024);
        assert_eq!(told.0.of(0), [&keys(20), &keys(21)]);
        assert!(told.0.of(1).is_empty());
        assert_eq!(told.1.keys, [(1, keys(10))]);
        let alone = meeting(path, 0, 10).all_ready(sleep).unwrap_err();
        assert!(alone.to_string().contains("[0]"), "{alone}");
    }

    #[test]
    fn who_is_missing_or_twice_or_of_another_group_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let first = meeting(path, 0, 10);
        let own = [(1, keys(10))];
        first.write(&own, Mtu::B256).unwrap();
        let missing = first.hear(1, sleep).unwrap_err();
        assert!(missing.to_string().contains("[1]"), "{missing}");
        let taken = first.write(&own, Mtu::B256).unwrap_err();
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
            let other = first.hear(1, sleep).unwrap_err();
            assert!(matches!(other, MeetingError::Content { .. }), "{other}");
        }
    }
}
