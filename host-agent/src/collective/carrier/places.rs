//! Allocation of buffers for outgoing RDMA WRITEs: each buffer is reused once its content was sent.

/// A ring of send buffers, for requests with ascending numbers.
///
/// ```text
///      done               next
///  ─────┼──────────────────┼─────▶ numbers; a number's place is the number modulo the places
///  free │ posted           │ free
/// ```
#[derive(Debug, Clone)]
pub struct Places {
    count: u64,
    next: u64,
    done: u64,
}

impl Places {
    /// A ring of `count` free send buffers.
    pub fn new(count: usize) -> Self {
        Self {
            count: count as u64,
            next: 0,
            done: 0,
        }
    }

    /// The next request number, and the index of its buffer; `None` if all buffers are in use.
    pub fn take(&mut self) -> Option<(u64, usize)> {
        let number = self.next;
        if number - self.done >= self.count {
            return None;
        }
        self.next += 1;
        Some((number, (number % self.count) as usize))
    }

    /// Returns the buffer that was taken last, whose request was not posted.
    pub fn give_back(&mut self) {
        self.next -= 1;
    }

    /// Whether a send request asks for a completion: one per quarter of the ring, whose completion covers earlier requests.
    pub fn is_told(&self, number: u64) -> bool {
        (number + 1).is_multiple_of((self.count / 4).max(1))
    }

    /// Records that the request with this number and all earlier ones were sent.
    pub fn sent(&mut self, number: u64) {
        self.done = self.done.max(number + 1).min(self.next);
    }

    /// Marks all buffers as free.
    pub fn forget(&mut self) {
        self.done = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_reused_after_its_transmission() {
        let mut places = Places::new(8);
        let taken: Vec<_> = std::iter::from_fn(|| places.take()).collect();
        assert_eq!(taken.len(), 8);
        let told: Vec<u64> = (0..8).filter(|number| places.is_told(*number)).collect();
        assert_eq!(told, [1, 3, 5, 7]);
        places.sent(1);
        assert_eq!(
            [places.take(), places.take(), places.take()],
            [Some((8, 0)), Some((9, 1)), None]
        );
        places.give_back();
        assert_eq!([places.take(), places.take()], [Some((9, 1)), None]);
        // A completion that was reported before, and one of a request that was never posted.
        places.sent(0);
        places.sent(99);
        assert_eq!(places.take(), Some((10, 2)));
        places.forget();
        assert_eq!(std::iter::from_fn(|| places.take()).count(), 8);
    }
}
