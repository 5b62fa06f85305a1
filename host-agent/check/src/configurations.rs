//! Named configurations that the model checker explores: the rows of `docs/model-checking.md`.

use aggregation::job::{ChunkId, JobError};
use aggregation::server::Mode;

use crate::all_reduce::{self, AllReduce, Operation};
use crate::machines::Broken;
use crate::parameter_server::{self, ParameterServer};
use crate::prototype::Prototype;
use crate::search::{Report, Search, explore};
use crate::slots::Rule;

/// Bounds of a model to be checked, by kind of model.
#[derive(Debug, Clone)]
pub enum Bounds {
    /// An all-reduce: ranks and a switch.
    AllReduce(all_reduce::AllReduceBounds),
    /// A training with a parameter server: workers, a server, and perhaps a switch.
    ParameterServer(parameter_server::TrainingBounds),
    /// The prototype that this project replaces, in which the checker must find errors.
    Prototype(Prototype),
}

/// A named configuration that the model checker explores.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// Name of the configuration.
    pub name: &'static str,
    /// Description of the configuration, for people.
    pub what: &'static str,
    /// Whether only `cargo xtask model-check` explores it, because of its size.
    pub is_large: bool,
    /// Bounds of the model that the configuration explores.
    pub bounds: Bounds,
}

/// Reason why the model checker did not explore a configuration.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The settings of the model's job are invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The bounds of the all-reduce model are invalid.
    #[error(transparent)]
    Bounds(#[from] all_reduce::BoundsError),
    /// The model cannot be explored.
    #[error(transparent)]
    Broken(#[from] Broken),
}

impl Bounds {
    /// Explores the configuration's model.
    pub fn explore(&self, search: Search) -> Result<Report, CheckError> {
        Ok(match self {
            Self::AllReduce(bounds) => explore(&AllReduce::new(bounds.clone())?, search)?,
            Self::ParameterServer(bounds) => {
                explore(&ParameterServer::new(bounds.clone())?, search)?
            }
            Self::Prototype(bounds) => explore(bounds, search)?,
        })
    }

    /// Removes a rule of the protocol from the model, so that the checker should find an error.
    #[must_use]
    pub fn without(mut self, rule: Rule) -> Self {
        match &mut self {
            Self::AllReduce(bounds) => bounds.without = Some(rule),
            Self::ParameterServer(bounds) => bounds.without = Some(rule),
            Self::Prototype(_) => {}
        }
        self
    }

    /// Makes ranks that wait ask only the switch, not each other.
    #[must_use]
    fn alone(mut self) -> Self {
        if let Self::AllReduce(bounds) = &mut self {
            bounds.asks = false;
        }
        self
    }

    /// Allows the switch to restart once, with all registers zero. The job then begins at chunk 0, which such registers accept.
    #[must_use]
    fn restarted(mut self) -> Self {
        match &mut self {
            Self::AllReduce(bounds) => {
                bounds.restarts = 1;
                bounds.first_chunk = ChunkId(0);
            }
            Self::ParameterServer(bounds) => {
                bounds.restarts = 1;
                bounds.first_chunk = ChunkId(0);
            }
            Self::Prototype(_) => {}
        }
        self
    }

    /// Allows ranks to close chunks (end their sums early) with at least `quorum` contributors; each keeps `keeps` sums a slot.
    #[must_use]
    fn until(mut self, quorum: u8, keeps: u32) -> Self {
        if let Self::AllReduce(bounds) = &mut self {
            bounds.deadline = Some(all_reduce::Deadline { quorum, keeps });
        }
        self
    }

    /// Allows ranks or workers to crash.
    #[must_use]
    fn crashed(mut self) -> Self {
        match &mut self {
            Self::AllReduce(bounds) => bounds.crashes = true,
            Self::ParameterServer(bounds) => bounds.crashes = true,
            Self::Prototype(_) => {}
        }
        self
    }
}

fn ranks(ranks: u8, window: u32, operations: Vec<Operation>) -> Bounds {
    Bounds::AllReduce(all_reduce::AllReduceBounds::new(ranks, window, operations))
}

fn integers(chunks: u8, operations: usize) -> Vec<Operation> {
    vec![Operation::Integers(chunks); operations]
}

fn server(mode: Mode, workers: u8, window: u32, rounds: u64, chunks: u8) -> Bounds {
    let bounds = parameter_server::TrainingBounds::new(mode, workers, window, rounds, chunks);
    Bounds::ParameterServer(bounds)
}

fn apart(bounds: Bounds, exponents: &[i8]) -> Bounds {
    match bounds {
        Bounds::ParameterServer(bounds) => {
            Bounds::ParameterServer(parameter_server::TrainingBounds {
                exponents: exponents.to_vec(),
                ..bounds
            })
        }
        other => other,
    }
}

/// Bounds of an all-reduce among two racks of two ranks each, summed by a tree of switches.
fn tree(window: u32, operations: Vec<Operation>) -> Bounds {
    Bounds::AllReduce(all_reduce::AllReduceBounds {
        racks: 2,
        ..all_reduce::AllReduceBounds::new(4, window, operations)
    })
}

/// Bounds of an all-reduce whose ranks sum the values themselves while no switch answers.
fn hosts(ranks: u8, window: u32, operations: Vec<Operation>) -> Bounds {
    Bounds::AllReduce(all_reduce::AllReduceBounds {
        hosts: true,
        ..all_reduce::AllReduceBounds::new(ranks, window, operations)
    })
}

/// Bounds of an all-reduce in which rank 1 of 3 is cut off from the switch. Another rank hosts (sums) the first chunk.
fn cut() -> Bounds {
    Bounds::AllReduce(all_reduce::AllReduceBounds {
        hosts: true,
        cut: Some(1),
        ..all_reduce::AllReduceBounds::new(3, 1, integers(1, 1))
    })
}

/// Bounds of an all-reduce in which a node outside the job, at another port, forges frames of the first rank.
fn stranger() -> Bounds {
    Bounds::AllReduce(all_reduce::AllReduceBounds {
        stranger: true,
        ..all_reduce::AllReduceBounds::new(2, 1, integers(1, 2))
    })
}

/// The configurations in which no error may be found.
pub fn configurations() -> Vec<Configuration> {
    let floats = Operation::Floats;
    let small = |name, what, bounds| Configuration {
        name,
        what,
        is_large: false,
        bounds,
    };
    let large = |name, what, bounds| Configuration {
        is_large: true,
        ..small(name, what, bounds)
    };
    let guesses = vec![floats(2, vec![9; 3]), floats(2, vec![0; 3])];
    let agreed = vec![floats(4, vec![0, 9]), floats(1, vec![9, 0])];
    let mixed = vec![
        Operation::Integers(1),
        floats(3, vec![3; 3]),
        floats(1, vec![20; 3]),
        Operation::Integers(2),
    ];
    vec![
        small(
            "two-ranks",
            "2 ranks, 1 slot, 2 operations",
            ranks(2, 1, integers(1, 2)),
        ),
        small(
            "three-ranks",
            "3 ranks, 2 slots, 2 operations of 2 chunks",
            ranks(3, 2, integers(2, 2)),
        ),
        small(
            "guesses",
            "3 ranks, 2 slots, floats: guesses too low, then too high",
            ranks(3, 2, guesses.clone()),
        ),
        small(
            "guesses-apart",
            "2 ranks, 1 slot, floats: each rank wants another exponent",
            ranks(2, 1, vec![floats(1, vec![0, 9]), floats(1, vec![9, 0])]),
        ),
        small(
            "agreed",
            "2 ranks, 2 slots, a long operation, whose exponents are agreed on",
            ranks(2, 2, agreed),
        ),
        small(
            "not-finite",
            "2 ranks, 1 slot, a value that is none",
            ranks(2, 1, vec![Operation::Integers(1), Operation::NotFinite]),
        ),
        small(
            "stranger",
            "2 ranks, 1 slot, a stranger speaks for one",
            stranger(),
        ),
        small(
            "crash",
            "2 ranks, 1 slot, 3 operations, any may crash",
            ranks(2, 1, integers(1, 3)).crashed(),
        ),
        small(
            "restart",
            "2 ranks, 1 slot, 3 operations, the switch restarts",
            ranks(2, 1, integers(1, 3)).restarted(),
        ),
        small(
            "hosts",
            "2 ranks, 1 slot, 2 operations, ranks sum when they hear nothing of the switch",
            hosts(2, 1, integers(1, 2)),
        ),
        small(
            "hosts-cut",
            "3 ranks, 1 slot, 1 operation, one is cut off from the switch, and the others hear it",
            cut(),
        ),
        small(
            "server-sums",
            "3 workers, 2 slots, 2 rounds of 2 chunks, the server sums",
            server(Mode::Direct, 3, 2, 2, 2),
        ),
        small(
            "server",
            "3 workers, 2 slots, 2 rounds of 1 chunk, the switch sums",
            server(Mode::Switch, 3, 2, 2, 1),
        ),
        small(
            "server-apart",
            "2 workers, 1 slot, 2 rounds of 2 chunks, each worker wants another exponent",
            apart(server(Mode::Switch, 2, 1, 2, 2), &[0, 9]),
        ),
        small(
            "tree",
            "2 racks of 2 ranks, 1 slot, 2 operations",
            tree(1, integers(1, 2)),
        ),
        small(
            "deadline",
            "2 ranks, 1 slot, 2 operations, chunks may be closed",
            ranks(2, 1, integers(1, 2)).until(1, 2),
        ),
        small(
            "deadline-restart",
            "2 ranks, 1 slot, 2 operations, chunks may be closed, the switch restarts",
            ranks(2, 1, integers(1, 2)).until(1, 2).restarted(),
        ),
        large(
            "deadline-three-operations",
            "2 ranks, 1 slot, 3 operations, chunks may be closed",
            ranks(2, 1, integers(1, 3)).until(1, 2),
        ),
        large(
            "deadline-slots",
            "2 ranks, 2 slots, 1 operation of 2 chunks, chunks may be closed, the switch restarts",
            ranks(2, 2, integers(2, 1)).until(1, 2).restarted(),
        ),
        large(
            "deadline-three",
            "3 ranks, 1 slot, 1 operation, chunks may be closed, the switch restarts",
            ranks(3, 1, integers(1, 1)).until(1, 2).restarted(),
        ),
        large(
            "deadline-quorum",
            "3 ranks, 1 slot, 1 operation, chunks may be closed when 2 are there, any may crash, the switch restarts",
            ranks(3, 1, integers(1, 1))
                .until(2, 2)
                .crashed()
                .restarted(),
        ),
        large(
            "hosts-restart",
            "2 ranks, 1 slot, 2 operations, ranks sum when they hear nothing of the switch, which restarts",
            hosts(2, 1, integers(1, 2)).restarted(),
        ),
        large(
            "hosts-slots",
            "3 ranks, 2 slots, 2 operations of 2 chunks, ranks sum when they hear nothing of the switch",
            hosts(3, 2, integers(2, 2)),
        ),
        large(
            "tree-restart",
            "2 racks of 2 ranks, 1 slot, 2 operations, each switch restarts once",
            tree(1, integers(1, 2)).restarted(),
        ),
        large(
            "tree-crash",
            "2 racks of 2 ranks, 1 slot, 2 operations, any may crash",
            tree(1, integers(1, 2)).crashed(),
        ),
        large(
            "tree-agreed",
            "2 racks of 2 ranks, 1 slot, a long operation, whose exponents are agreed on",
            tree(1, vec![floats(2, vec![0, 0, 9, 9])]),
        ),
        large(
            "tree-slots",
            "2 racks of 2 ranks, 2 slots, 2 operations of 2 chunks",
            tree(2, integers(2, 2)),
        ),
        large(
            "all-at-once",
            "3 ranks, 2 slots, 2 operations of 2 chunks, any may crash, the switch restarts",
            ranks(3, 2, integers(2, 2)).crashed().restarted(),
        ),
        large(
            "guesses-restart",
            "2 ranks, 2 slots, floats: guesses too low, then too high, the switch restarts",
            ranks(2, 2, guesses).restarted(),
        ),
        large(
            "mixed",
            "3 ranks, 2 slots, integers and floats, short and long: 4 operations",
            ranks(3, 2, mixed),
        ),
        large(
            "four-ranks",
            "4 ranks, 2 slots, 2 operations of 2 chunks, any may crash",
            ranks(4, 2, integers(2, 2)).crashed(),
        ),
        large(
            "four-ranks-restart",
            "4 ranks, 2 slots, 2 operations of 2 chunks, the switch restarts",
            ranks(4, 2, integers(2, 2)).restarted(),
        ),
        large(
            "four-slots",
            "3 ranks, 4 slots, 2 operations of 4 chunks",
            ranks(3, 4, integers(4, 2)),
        ),
        large(
            "long",
            "3 ranks, 2 slots, 6 operations of 2 chunks",
            ranks(3, 2, integers(2, 6)),
        ),
        large(
            "server-restart",
            "3 workers, 2 slots, 2 rounds of 1 chunk, the switch restarts",
            server(Mode::Switch, 3, 2, 2, 1).restarted(),
        ),
        large(
            "server-crash",
            "3 workers, 2 slots, 2 rounds of 2 chunks, any may crash",
            server(Mode::Switch, 3, 2, 2, 2).crashed(),
        ),
        large(
            "server-all-at-once",
            "2 workers, 2 slots, 2 rounds of 2 chunks, any may crash, the switch restarts",
            server(Mode::Switch, 2, 2, 2, 2).crashed().restarted(),
        ),
        large(
            "one-slot-all-at-once",
            "3 workers, 1 slot, 2 rounds of 2 chunks, any may crash, the switch restarts",
            server(Mode::Switch, 3, 1, 2, 2).crashed().restarted(),
        ),
        large(
            "server-sums-crash",
            "4 workers, 2 slots, 2 rounds of 2 chunks, the server sums, any may crash",
            server(Mode::Direct, 4, 2, 2, 2).crashed(),
        ),
    ]
}

/// Each rule of the protocol, with bounds in which the checker finds an error without it. In most of them ranks do not ask each
/// other, since that would repair the error.
pub fn rules() -> Vec<(Rule, Bounds)> {
    let short = || ranks(2, 1, integers(1, 3));
    let bounds = |rule| match rule {
        Rule::Scale => ranks(2, 1, vec![Operation::Floats(1, vec![0, 9])]),
        Rule::Flag => ranks(2, 1, vec![Operation::NotFinite]),
        Rule::Port => stranger(),
        // Without values, the answer to a probe is the sum, and the racks want different exponents.
        Rule::Up => tree(1, vec![Operation::Floats(2, vec![0, 0, 9, 9])]),
        Rule::Peers => short().restarted(),
        Rule::Closed => short().until(1, 2),
        Rule::Opened | Rule::Forgotten | Rule::Kept => {
            ranks(3, 1, integers(1, 1)).until(1, 2).restarted()
        }
        Rule::Asked => cut(),
        _ => short(),
    };
    Rule::ALL
        .map(|rule| {
            let bounds = bounds(rule).without(rule);
            match rule {
                // Here, late ranks and ranks that give values to a host must ask others.
                Rule::Closed | Rule::Opened | Rule::Forgotten | Rule::Kept | Rule::Asked => {
                    (rule, bounds)
                }
                _ => (rule, bounds.alone()),
            }
        })
        .to_vec()
}

/// Errors that the checker must find in the prototype: name, bounds, and search.
pub fn prototype() -> [(&'static str, Bounds, Search); 3] {
    let bounds = Bounds::Prototype(Prototype {
        workers: 2,
        slots: 1,
        fragments: 1,
        first: 1,
    });
    let nothing = Search {
        wrong: false,
        stuck: false,
        leaks: false,
        ..Search::ALL
    };
    let sums = Search {
        wrong: true,
        ..nothing
    };
    let stuck = Search {
        stuck: true,
        ..nothing
    };
    let leaks = Search {
        leaks: true,
        ..nothing
    };
    [
        ("a duplicate is counted twice", bounds.clone(), sums),
        ("a loss stalls for ever", bounds.clone(), stuck),
        ("no slot is freed", bounds, leaks),
    ]
}
