//! Orders of faults to programs of a workload, such as to pause, and their progress.

use std::io;

use testbeds::command::Census;

/// An order of a fault to all processes of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Stop the processes by SIGSTOP until they are resumed.
    Pause,
    /// Resume the paused processes.
    Resume,
    /// Kill the processes by SIGKILL.
    Kill {
        /// Whether the program stays ended; otherwise [`Order::Start`] starts it again.
        for_good: bool,
    },
    /// Send the program its stop signal, and kill it if it does not end in time.
    Stop {
        /// Whether the program stays ended; otherwise [`Order::Start`] starts it again.
        for_good: bool,
    },
    /// Start the program again, after it was killed or stopped.
    Start,
}

/// Progress of an order to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderProgress {
    /// The order was carried out, and weir observed its effect on all processes.
    Done {
        /// Number of processes that the order affected; 0 if the program did not run at that time.
        processes: u32,
        /// Remark for readers of the report; `None` if there is none.
        remark: Option<String>,
    },
    /// The order is not finished yet: poll it again.
    Pending,
    /// The order cannot be carried out, as the program does not run; contains the reason.
    Absent(String),
    /// The order was carried out, but weir observed another effect than the required one; contains a description.
    Unseen(String),
}

impl OrderProgress {
    pub(super) fn done(processes: u32) -> OrderProgress {
        let remark = None;
        OrderProgress::Done { processes, remark }
    }

    /// Result of an order by the state of its processes in /proc: done if all of them are `what`, such as "stopped".
    pub(super) fn from_census(seen: io::Result<Census>, what: &str) -> OrderProgress {
        /// Maximum number of processes that the description names.
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

    /// Result of an order that failed with an error.
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
