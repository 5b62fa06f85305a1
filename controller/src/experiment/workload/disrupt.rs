//! What faults do to the programs of a workload.

use std::io;

use testbeds::command::Census;

/// What is to become of a program's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// They stand still.
    Pause,
    /// They go on.
    Resume,
    /// They are killed.
    Kill {
        /// Whether it is not started again.
        for_good: bool,
    },
    /// They are asked to end.
    Stop {
        /// Whether it is not started again.
        for_good: bool,
    },
    /// It is started again.
    Start,
}

/// How far an order is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It is, and that was seen.
    Done {
        /// Of so many processes.
        processes: u32,
        /// What else there is to say of it.
        remark: Option<String>,
    },
    /// Not yet: ask again.
    Pending,
    /// There is nobody to do it to, and why.
    Absent(String),
    /// It was carried out, and something else was seen than had to be.
    Unseen(String),
}

impl Progress {
    pub(super) fn done(processes: u32) -> Progress {
        let remark = None;
        Progress::Done { processes, remark }
    }

    /// From what /proc says: all had to become `what`.
    pub(super) fn of(seen: io::Result<Census>, what: &str) -> Progress {
        /// More are not named.
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

    /// It was to be done, and could not.
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
