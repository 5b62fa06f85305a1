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

/// Progress of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
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

impl Progress {
    pub(super) fn done(processes: u32) -> Progress {
        let remark = None;
        Progress::Done { processes, remark }
    }

    /// Judges an order by the processes in /proc: all had to become `what`.
    pub(super) fn of(seen: io::Result<Census>, what: &str) -> Progress {
        /// Maximum number of processes that the message names.
        const NAMED: usize = 4;
        match seen {
            Ok(Census { processes, others }) if others.is_empty() => Progress::done(processes),
            Ok(Census { processes, others }) => {
                let named: Vec<String> = others
                    .iter()
                    .take(NAMED)
                    .map(|(pid, state)| format!("{pid} in state {state}"))
                    .collect();
                Progress::Unseen(format!(
                    "of {processes} processes {} were not {what}: {}",
                    others.len(),
                    named.join(", ")
                ))
            }
            Err(error) => Progress::Unseen(format!("its processes cannot be looked at: {error}")),
        }
    }

    /// Reports an order that could not be carried out.
    pub(super) fn failed(error: impl std::fmt::Display) -> Progress {
        Progress::Unseen(error.to_string())
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
        assert_eq!(Progress::of(seen(&[]), "stopped"), Progress::done(3));
        assert_eq!(
            Progress::of(seen(&[(17, 'D'), (19, 'R')]), "stopped"),
            Progress::Unseen(
                "of 3 processes 2 were not stopped: 17 in state D, 19 in state R".to_owned()
            )
        );
        let unreadable = Progress::of(Err(io::ErrorKind::NotFound.into()), "stopped");
        assert!(matches!(unreadable, Progress::Unseen(_)), "{unreadable:?}");
    }
}
