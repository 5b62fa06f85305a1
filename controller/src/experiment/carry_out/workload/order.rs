//! Effects of faults on the programs of a workload.

use std::io;

use testbeds::command::Census;

/// An order for a program's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Pause the processes.
    Pause,
    /// Resume the processes.
    Resume,
    /// Kill the processes.
    Kill {
        /// Whether the program is not started again.
        for_good: bool,
    },
    /// Ask the processes to end.
    Stop {
        /// Whether the program is not started again.
        for_good: bool,
    },
    /// Start the program again.
    Start,
}

/// OrderProgress of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderProgress {
    /// The order was carried out, and the effect was observed.
    Done {
        /// Number of processes that the order affected.
        processes: u32,
        /// Other remarks.
        remark: Option<String>,
    },
    /// The order is not finished: poll again.
    Pending,
    /// The program has no process to act on, for this reason.
    Absent(String),
    /// The order was carried out, but another effect than required was observed.
    Unseen(String),
}

impl OrderProgress {
    pub(super) fn done(processes: u32) -> OrderProgress {
        let remark = None;
        OrderProgress::Done { processes, remark }
    }

    /// Judges an order by the processes in /proc: all had to become `what`.
    pub(super) fn from_census(seen: io::Result<Census>, what: &str) -> OrderProgress {
        /// Maximum number of processes that the message names.
        const NAMED: usize = 4;
        match seen {
            Ok(Census { processes, others }) if others.is_empty() => OrderProgress::done(processes),
            Ok(Census { processes, others }) => {
                let named: Vec<String> = others
                    .iter()
                    .take(NAMED)
                    .map(|(pid, state)| format!("{pid} in state {state}"))
                    .collect();
                OrderProgress::Unseen(format!(
                    "of {processes} processes {} were not {what}: {}",
                    others.len(),
                    named.join(", ")
                ))
            }
            Err(error) => OrderProgress::Unseen(format!("its processes cannot be read: {error}")),
        }
    }

    /// Reports an order that could not be carried out.
    pub(super) fn failed(error: impl std::fmt::Display) -> OrderProgress {
        OrderProgress::Unseen(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_did_not_become_what_it_had_to_is_named() {
        let seen = |others: &[(i32, char)]| {
            Ok(Census {
                processes: 3,
                others: others.to_vec(),
            })
        };
        assert_eq!(
            OrderProgress::from_census(seen(&[]), "stopped"),
            OrderProgress::done(3)
        );
        assert_eq!(
            OrderProgress::from_census(seen(&[(17, 'D'), (19, 'R')]), "stopped"),
            OrderProgress::Unseen(
                "of 3 processes 2 were not stopped: 17 in state D, 19 in state R".to_owned()
            )
        );
        let unreadable = OrderProgress::from_census(Err(io::ErrorKind::NotFound.into()), "stopped");
        assert!(
            matches!(unreadable, OrderProgress::Unseen(_)),
            "{unreadable:?}"
        );
    }
}
