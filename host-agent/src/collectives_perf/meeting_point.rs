//! The store through which ranks find each other, from `--store` or torchrun.

use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rdma::group::{FolderStore, Store, TcpStore, TorchStore};

/// The store through which the ranks of a benchmark find each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MeetingPoint {
    /// A folder that all ranks can access.
    Folder(PathBuf),
    /// `HOST:PORT` at which rank 0 listens.
    Rank0(String),
    /// torch's `TCPStore`, and a prefix of the keys in it.
    Torch {
        /// `HOST:PORT` of the store.
        at: String,
        /// Prefix that separates the benchmark's keys from those of other users of the store.
        prefix: String,
    },
}

/// Interval of attempts to resolve a host name.
const LOOK: Duration = Duration::from_millis(200);

const RANK0: &str = "tcp://";
const TORCH: &str = "torch://";

impl FromStr for MeetingPoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = |at: &str| match at.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
                Ok(at.to_owned())
            }
            _ => Err(format!(
                "`{text}`: use {RANK0}HOST:PORT or {TORCH}HOST:PORT/NAME"
            )),
        };
        if let Some(at) = text.strip_prefix(RANK0) {
            return Ok(Self::Rank0(known(at)?));
        }
        if let Some(rest) = text.strip_prefix(TORCH) {
            // Other programs use the store, too, and earlier runs have used it.
            let (at, name) = match rest.split_once('/') {
                Some((at, name)) if !name.is_empty() => (at, name),
                _ => return Err(format!("`{text}`: use {TORCH}HOST:PORT/NAME")),
            };
            return Ok(Self::Torch {
                at: known(at)?,
                prefix: prefix(name),
            });
        }
        match text {
            "" => Err("name a folder".to_owned()),
            _ => Ok(Self::Folder(text.into())),
        }
    }
}

/// A prefix of keys in torch's store that no other program uses.
fn prefix(name: &str) -> String {
    format!("weir/collectives-perf/{name}")
}

impl MeetingPoint {
    /// The store for processes started by torchrun, or with its environment variables: torchrun's store, or rank 0 if there is
    /// none. Each run and each restart after a failure has its own name; a restart because of a change of membership does not.
    pub fn of_torchrun(said: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let at = format!("{}:{}", said("MASTER_ADDR")?, said("MASTER_PORT")?);
        if said("TORCHELASTIC_USE_AGENT_STORE").as_deref() != Some("True") {
            return Some(Self::Rank0(at));
        }
        let of = |name| said(name).unwrap_or_default();
        let run = of("TORCHELASTIC_RUN_ID");
        let restarts = of("TORCHELASTIC_RESTART_COUNT");
        let prefix = prefix(&format!("{run}/{restarts}"));
        Some(Self::Torch { at, prefix })
    }

    /// Opens the store for this rank; waits at most `patience` for the servers that the store needs.
    pub fn open(&self, rank: usize, ranks: usize, patience: Duration) -> Result<Box<dyn Store>> {
        let since = Instant::now();
        let left = || patience.saturating_sub(since.elapsed());
        Ok(match self {
            Self::Folder(folder) => Box::new(FolderStore::new(folder)),
            Self::Rank0(at) => {
                let address = if rank == 0 { own(at) } else { None };
                let address = address.map_or_else(|| known(at, patience), Ok)?;
                Box::new(TcpStore::open(address, rank, ranks, left())?)
            }
            Self::Torch { at, prefix } => {
                let address = known(at, patience)?;
                Box::new(TorchStore::open(address, prefix, left())?)
            }
        })
    }
}

/// Listening address of rank 0 if `at` has a host name: all its addresses, since the name may resolve to a loopback address
/// (Debian's 127.0.1.1). `None` if `at` has an IP address.
fn own(at: &str) -> Option<SocketAddr> {
    let (_, port) = at.rsplit_once(':')?;
    match at.parse::<SocketAddr>() {
        Ok(_) => None,
        Err(_) => Some((Ipv4Addr::UNSPECIFIED, port.parse().ok()?).into()),
    }
}

/// Resolves `HOST:PORT`, with retries: a cluster may still be publishing its names when ranks start.
fn known(at: &str, patience: Duration) -> Result<SocketAddr> {
    let since = Instant::now();
    loop {
        match resolved(at) {
            Err(_) if since.elapsed() < patience => std::thread::sleep(LOOK),
            known => return known,
        }
    }
}

/// Resolves `HOST:PORT`, with preference for IPv4, since servers that accept both versions listen there, too.
fn resolved(at: &str) -> Result<SocketAddr> {
    let mut found: Vec<SocketAddr> = at
        .to_socket_addrs()
        .with_context(|| format!("cannot resolve {at}"))?
        .collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found
        .first()
        .copied()
        .with_context(|| format!("{at} has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read() {
        let torch = |at: &str, name: &str| MeetingPoint::Torch {
            at: at.to_owned(),
            prefix: prefix(name),
        };
        for (text, place) in [
            ("/shared/run1", MeetingPoint::Folder("/shared/run1".into())),
            ("tcp://h0:4000", MeetingPoint::Rank0("h0:4000".to_owned())),
            ("torch://[::1]:29500/run/1", torch("[::1]:29500", "run/1")),
        ] {
            assert_eq!(text.parse(), Ok(place), "{text}");
        }
        for text in [
            "",
            "tcp://h0",
            "tcp://:1",
            "torch://h0:x/run",
            "torch://h0:70000/run",
            "torch://h0:29500",
            "torch://h0:29500/",
        ] {
            assert!(text.parse::<MeetingPoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn rank_0_listens_and_the_others_connect_by_name() {
        assert_eq!(own("h0:4000"), "0.0.0.0:4000".parse().ok());
        assert_eq!(own("10.0.0.1:4000"), None);
        assert_eq!(own("[::1]:4000"), None);
    }

    #[test]
    fn the_store_of_torchrun_is_found() {
        let all = [
            ("MASTER_ADDR", "h0"),
            ("MASTER_PORT", "29500"),
            ("TORCHELASTIC_RUN_ID", "train"),
            ("TORCHELASTIC_RESTART_COUNT", "2"),
            ("TORCHELASTIC_USE_AGENT_STORE", "True"),
        ];
        let of = |said: &[(&str, &str)]| {
            MeetingPoint::of_torchrun(|name| {
                let found = said.iter().find(|(said, _)| *said == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&all), "torch://h0:29500/train/2".parse().ok());
        assert_eq!(of(&all[..4]), "tcp://h0:29500".parse().ok());
        assert_eq!(of(&all[..1]), None);
    }
}
