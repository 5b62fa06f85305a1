//! The counters of Tofino 2 that make a register a log, a queue or a stack.
//!
//! They are the register's, not those of one action: what one action enqueues another one dequeues.

/// One register's counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// Cells that it goes through.
    size: u64,
    /// Where the next value goes.
    next: u64,
    /// Values that were put in and not yet taken out; a log does not count them.
    held: u64,
}

/// How an execution moves the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// `execute_log`: round and round.
    Log,
    /// `enqueue`
    Enqueue,
    /// `dequeue`
    Dequeue,
    /// `push`
    Push,
    /// `pop`
    Pop,
}

/// What a register's counters are for: they have one purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A log.
    Log,
    /// First in, first out.
    Queue,
    /// Last in, first out.
    Stack,
    /// To go through all cells at once.
    Sweep,
}

impl std::fmt::Display for Purpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Purpose::Log => "a log",
            Purpose::Queue => "a queue",
            Purpose::Stack => "a stack",
            Purpose::Sweep => "what is swept or cleared",
        })
    }
}

impl Turn {
    /// Of a method of a register action.
    pub fn of(method: &str) -> Option<Turn> {
        Some(match method {
            "execute_log" => Turn::Log,
            "enqueue" => Turn::Enqueue,
            "dequeue" => Turn::Dequeue,
            "push" => Turn::Push,
            "pop" => Turn::Pop,
            _ => return None,
        })
    }

    /// What the counters are for.
    pub fn purpose(self) -> Purpose {
        match self {
            Turn::Log => Purpose::Log,
            Turn::Enqueue | Turn::Dequeue => Purpose::Queue,
            Turn::Push | Turn::Pop => Purpose::Stack,
        }
    }

    /// The method that is executed instead where there is no cell: full, or empty.
    pub fn otherwise(self) -> &'static str {
        match self {
            Turn::Log | Turn::Enqueue | Turn::Push => "overflow",
            Turn::Dequeue | Turn::Pop => "underflow",
        }
    }
}

impl Log {
    /// Empty.
    pub fn new(size: u64) -> Log {
        Log {
            size,
            next: 0,
            held: 0,
        }
    }

    /// Cells that it goes through: an index that no cell has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Moves on; the index of the cell, or none: a queue or stack that is full or empty stays as it is.
    pub fn turn(&mut self, turn: Turn) -> Option<u64> {
        let (size, next) = (self.size, self.next);
        let after = (next + 1).checked_rem(size).unwrap_or(0);
        match turn {
            Turn::Log => self.next = after,
            Turn::Enqueue | Turn::Push if self.held >= size => return None,
            Turn::Dequeue | Turn::Pop if self.held == 0 => return None,
            Turn::Enqueue | Turn::Push => {
                (self.next, self.held) = (after, self.held + 1);
            }
            Turn::Dequeue => {
                let oldest = (next + size - self.held) % size;
                self.held -= 1;
                return Some(oldest);
            }
            Turn::Pop => {
                self.held -= 1;
                self.next = self.held;
                return Some(self.held);
            }
        }
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_goes_round_and_a_stack_up_and_down() {
        let mut queue = Log::new(3);
        let put: Vec<_> = (0..4).map(|_| queue.turn(Turn::Enqueue)).collect();
        assert_eq!(put, [Some(0), Some(1), Some(2), None]);
        assert_eq!(queue.turn(Turn::Dequeue), Some(0));
        assert_eq!(queue.turn(Turn::Enqueue), Some(0));
        let taken: Vec<_> = (0..4).map(|_| queue.turn(Turn::Dequeue)).collect();
        assert_eq!(taken, [Some(1), Some(2), Some(0), None]);

        let mut stack = Log::new(2);
        let put: Vec<_> = (0..3).map(|_| stack.turn(Turn::Push)).collect();
        assert_eq!(put, [Some(0), Some(1), None]);
        assert_eq!(stack.turn(Turn::Pop), Some(1));
        assert_eq!(stack.turn(Turn::Push), Some(1));
        let taken: Vec<_> = (0..3).map(|_| stack.turn(Turn::Pop)).collect();
        assert_eq!(taken, [Some(1), Some(0), None]);
    }

    #[test]
    fn a_register_without_cells_holds_nothing() {
        let mut none = Log::new(0);
        assert_eq!(none.turn(Turn::Log), Some(0));
        assert_eq!(none.turn(Turn::Enqueue), None);
        assert_eq!(none.turn(Turn::Dequeue), None);
    }
}
