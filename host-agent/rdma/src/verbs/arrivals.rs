//! Counts packets that a port has received, by the driver's counters in /sys: rxe's own counter if it exists, otherwise the
//! standard one.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Files with a port's counter of received packets, below the port's folder; the first that exists is used.
const COUNTS: [&str; 2] = ["hw_counters/rcvd_pkts", "counters/port_rcv_packets"];
/// Minimum interval between two reads of the counter file: callers poll often, and a driver may be slow.
const FRESH: Duration = Duration::from_millis(100);

/// Counter of the packets that a device's port has received.
pub struct Arrivals {
    count: Option<PathBuf>,
    last: Cell<Option<(Instant, u64)>>,
}

impl Arrivals {
    /// Creates the counter of a port, given the port's folder in /sys.
    pub fn new(port: &Path) -> Self {
        let counts = COUNTS.map(|count| port.join(count));
        Self {
            count: counts.into_iter().find(|path| read(path).is_some()),
            last: Cell::new(None),
        }
    }

    /// Number of packets that the port has received, at most 100 ms old; `None` if the port has no counter.
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
