//! What a port has received, as its driver says in /sys: rxe's own count, else the standard's.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Below a port's folder.
const COUNTS: [&str; 2] = ["hw_counters/rcvd_pkts", "counters/port_rcv_packets"];
/// Who polls asks often, and a driver may take its time.
const FRESH: Duration = Duration::from_millis(100);

/// See the module.
pub struct Arrivals {
    count: Option<PathBuf>,
    last: Cell<Option<(Instant, u64)>>,
}

impl Arrivals {
    /// Of a port's folder.
    pub fn of(port: &Path) -> Self {
        let counts = COUNTS.map(|count| port.join(count));
        Self {
            count: counts.into_iter().find(|path| read(path).is_some()),
            last: Cell::new(None),
        }
    }

    /// Packets so far, or a moment ago; `None`: nothing counts them.
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
        assert_eq!(Arrivals::of(port.path()).count(), None);
        for (count, said) in COUNTS.into_iter().rev().zip(["7\n", "9\n"]) {
            let path = port.path().join(count);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, said).unwrap();
            assert_eq!(Arrivals::of(port.path()).count(), said.trim().parse().ok());
        }
    }
}
