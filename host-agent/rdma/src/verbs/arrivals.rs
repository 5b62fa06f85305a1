//! Packets that a port has received, from the driver's counters in /sys: rxe's own counter if there is one, otherwise the
//! standard one.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Counter files, below the folder of a port.
const COUNTS: [&str; 2] = ["hw_counters/rcvd_pkts", "counters/port_rcv_packets"];
/// Minimum interval of reads: pollers ask often, and a driver may be slow.
const FRESH: Duration = Duration::from_millis(100);

/// Counter of packets that a port has received.
pub struct Arrivals {
    count: Option<PathBuf>,
    last: Cell<Option<(Instant, u64)>>,
}

impl Arrivals {
    /// The counter of a port, by its folder.
    pub fn new(port: &Path) -> Self {
        let counts = COUNTS.map(|count| port.join(count));
        Self {
            count: counts.into_iter().find(|path| read(path).is_some()),
            last: Cell::new(None),
        }
    }

    /// Number of packets, at most 100 ms old; `None` if there is no counter.
    pub fn count(&self) -> Option<u64> {
        let last = self.last.get();
        if let Some((at, count)) = last
            && at.elapsed() < FRESH
        {
            return Some(count);
        }
        let count = read(self.count.as_deref()?)?;
        self.last.set(Some((Instant::now(), count)));
        Some(count)
    }
}

fn read(path: &Path) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_own_count_has_precedence() {
        let port = tempfile::tempdir().unwrap();
        assert_eq!(Arrivals::new(port.path()).count(), None);
        for (count, said) in COUNTS.into_iter().rev().zip(["7\n", "9\n"]) {
            let path = port.path().join(count);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, said).unwrap();
            assert_eq!(Arrivals::new(port.path()).count(), said.trim().parse().ok());
        }
    }
}
