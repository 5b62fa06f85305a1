//! Executes a schedule on symbolic values in a random order given by a seed, and finds wrong results and deadlocks.
//!
//! A symbolic value says which contributions were combined into it. A put copies its elements in pieces, each at its own time.
//! The put's completion at the sender and its signal at the receiver also come at separate times. So every order of events that
//! the schedule permits occurs for some seed.

use std::collections::BTreeMap;
use std::rc::Rc;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::collective::{Collective, Contribution};
use crate::graph::{At, FormError, Graph};
use crate::schedule::{Action, Buffer, Schedule, Span};

/// Symbolic value of an element in a buffer; `None` if no step has written the element.
pub type Value = Option<Rc<Symbol>>;

/// Symbolic value of an element: which contributions were combined, and in which order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// How often each contribution was combined into the element.
    pub contributions: BTreeMap<Contribution, u32>,
    /// Hash of the contributions and the order of their combination: equal hashes mean equal bits of floating-point sums.
    pub expression: u64,
}

/// Reason why the symbolic execution of a schedule failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    /// The schedule is not well-formed, so it cannot be executed.
    #[error(transparent)]
    Form(#[from] FormError),
    /// A step reads an element that no earlier step has written.
    #[error("step {} of rank {} reads element {element} of its {buffer:?}, which is undefined", at.step, at.rank)]
    Undefined {
        /// Rank and index of the step that reads.
        at: At,
        /// Buffer that contains the undefined element.
        buffer: Buffer,
        /// Index of the undefined element in the buffer.
        element: usize,
    },
    /// No event is possible any more, but some ranks have not finished.
    #[error("deadlock: ranks {ranks:?} wait")]
    Deadlock {
        /// The ranks that have not finished their programs.
        ranks: Vec<usize>,
    },
    /// The output of a rank differs from the collective's specification.
    #[error("element {element} of rank {rank}'s output is {got:?}, not each of {wanted:?} once")]
    Wrong {
        /// The rank with the wrong output.
        rank: usize,
        /// Index of the wrong element in the output.
        element: usize,
        /// Contributions that the element combines, and how often each.
        got: Vec<(Contribution, u32)>,
        /// Contributions that the element should combine, once each.
        wanted: Vec<Contribution>,
    },
}

/// Contents of all buffers at the end of a symbolic execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Symbolic values by rank, then by buffer ([`Buffer::index`]), then by element.
    pub memory: Vec<[Vec<Value>; 3]>,
    /// For each rank, whether it has finished all its steps.
    pub finished: Vec<bool>,
}

/// Executes a schedule to its end, in a random order that `seed` determines.
pub fn execute(schedule: &Schedule, seed: u64) -> Result<Contents, ExecutionError> {
    let mut run = Execution::new(schedule, seed, None)?;
    while run.advance()? {}
    let contents = run.contents();
    let ranks: Vec<usize> = (0..schedule.ranks())
        .filter(|rank| !contents.finished[*rank])
        .collect();
    if ranks.is_empty() {
        Ok(contents)
    } else {
        Err(ExecutionError::Deadlock { ranks })
    }
}

/// Executes a schedule as far as possible while the rank `absent` executes no step.
pub fn execute_without(
    schedule: &Schedule,
    seed: u64,
    absent: usize,
) -> Result<Contents, ExecutionError> {
    let mut run = Execution::new(schedule, seed, Some(absent))?;
    while run.advance()? {}
    Ok(run.contents())
}

/// Checks that every rank has the result that the collective specifies.
pub fn check(collective: &Collective, contents: &Contents) -> Result<(), ExecutionError> {
    for (rank, memory) in contents.memory.iter().enumerate() {
        let output = &memory[Buffer::Output.index()];
        for (element, wanted) in collective.expected(rank).into_iter().enumerate() {
            let value = output.get(element).cloned().flatten();
            let parts = value.iter().flat_map(|symbol| &symbol.contributions);
            let got: Vec<(Contribution, u32)> = parts.map(|(of, times)| (*of, *times)).collect();
            if !got.iter().copied().eq(wanted.iter().map(|one| (*one, 1))) {
                return Err(ExecutionError::Wrong {
                    rank,
                    element,
                    got,
                    wanted,
                });
            }
        }
    }
    Ok(())
}

/// An event that may happen next in the symbolic execution; steps are given as nodes of the graph.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A step begins; steps other than puts also finish.
    Step(usize),
    /// Elements of a put are copied: node of the put, first element and number of elements.
    Piece(usize, usize, usize),
    /// The completion of this put reaches the sender.
    Complete(usize),
    /// The signal of this put reaches the receiver.
    Deliver(usize),
}

struct Execution<'s> {
    schedule: &'s Schedule,
    graph: Graph,
    random: ChaCha8Rng,
    memory: Vec<[Vec<Value>; 3]>,
    possible: Vec<Event>,
    /// Number of unfinished predecessors of each node (step).
    missing: Vec<usize>,
    behind: Vec<Vec<usize>>,
    /// For each put, number of pieces of its elements that were not copied yet.
    pieces: Vec<usize>,
    done: Vec<bool>,
    absent: Option<usize>,
}

impl<'s> Execution<'s> {
    fn new(schedule: &'s Schedule, seed: u64, absent: Option<usize>) -> Result<Self, FormError> {
        let graph = Graph::new(schedule)?;
        let mut run = Self {
            schedule,
            random: ChaCha8Rng::seed_from_u64(seed),
            memory: (0..schedule.ranks()).map(|r| memory(schedule, r)).collect(),
            possible: Vec::new(),
            missing: vec![0; graph.len()],
            behind: vec![Vec::new(); graph.len()],
            pieces: vec![0; graph.len()],
            done: vec![false; graph.len()],
            graph,
            absent,
        };
        for node in 0..run.graph.len() {
            let before: Vec<usize> = run.graph.before(schedule, node).collect();
            run.missing[node] = before.len();
            for earlier in before {
                run.behind[earlier].push(node);
            }
            run.offer(node);
        }
        Ok(run)
    }

    /// Executes one random event; returns `false` if none is possible.
    fn advance(&mut self) -> Result<bool, ExecutionError> {
        if self.possible.is_empty() {
            return Ok(false);
        }
        let drawn = self.draw(self.possible.len());
        match self.possible.swap_remove(drawn) {
            Event::Step(node) => self.step(node)?,
            Event::Piece(put, start, len) => self.transfer(put, start, len)?,
            Event::Complete(put) => self.finish(put),
            Event::Deliver(put) => {
                let wait = self.graph.partner(put);
                if let Some(wait) = wait {
                    self.missing[wait] -= 1;
                    self.offer(wait);
                }
            }
        }
        Ok(true)
    }

    fn step(&mut self, node: usize) -> Result<(), ExecutionError> {
        let at = self.graph.at(node);
        match self.action(node) {
            Action::Put { source, .. } => {
                let cut = self.draw(source.len + 1);
                let pieces = [(0, cut), (cut, source.len - cut)];
                self.pieces[node] = pieces.len();
                for (start, len) in pieces {
                    self.possible.push(Event::Piece(node, start, len));
                }
                return Ok(());
            }
            Action::Wait { .. } => {}
            Action::Copy { source, target } => {
                let values = self.read(at, source)?;
                self.slice(at.rank, target).clone_from_slice(&values);
            }
            Action::Reduce { source, target } => {
                let (one, other) = (self.read(at, source)?, self.read(at, target)?);
                let sums = one.iter().zip(&other).map(|(a, b)| sum(a, b));
                let sums: Vec<Value> = sums.collect();
                self.slice(at.rank, target).clone_from_slice(&sums);
            }
        }
        self.finish(node);
        Ok(())
    }

    fn transfer(&mut self, put: usize, start: usize, len: usize) -> Result<(), ExecutionError> {
        let Action::Put {
            to, source, target, ..
        } = self.action(put)
        else {
            return Ok(());
        };
        let values = self.read(self.graph.at(put), source.part(start, len))?;
        self.slice(to, target.part(start, len))
            .clone_from_slice(&values);
        self.pieces[put] -= 1;
        if self.pieces[put] == 0 {
            self.possible.push(Event::Complete(put));
            self.possible.push(Event::Deliver(put));
        }
        Ok(())
    }

    /// Finishes a step, and enables the steps that waited only for it.
    fn finish(&mut self, node: usize) {
        self.done[node] = true;
        let wait = match self.action(node) {
            Action::Put { .. } => self.graph.partner(node),
            _ => None,
        };
        for next in std::mem::take(&mut self.behind[node]) {
            if Some(next) != wait {
                self.missing[next] -= 1;
                self.offer(next);
            }
        }
    }

    fn offer(&mut self, node: usize) {
        let is_here = Some(self.graph.at(node).rank) != self.absent;
        if self.missing[node] == 0 && is_here {
            self.possible.push(Event::Step(node));
        }
    }

    fn action(&self, node: usize) -> Action {
        let at = self.graph.at(node);
        self.schedule.programs[at.rank].steps[at.step].action
    }

    fn read(&self, at: At, span: Span) -> Result<Vec<Value>, ExecutionError> {
        let values = &self.memory[at.rank][span.buffer.index()][span.start..span.end()];
        if let Some(undefined) = values.iter().position(Option::is_none) {
            return Err(ExecutionError::Undefined {
                at,
                buffer: span.buffer,
                element: span.start + undefined,
            });
        }
        Ok(values.to_vec())
    }

    fn slice(&mut self, rank: usize, span: Span) -> &mut [Value] {
        &mut self.memory[rank][span.buffer.index()][span.start..span.end()]
    }

    /// A random number from 0 to `bound` − 1.
    fn draw(&mut self, bound: usize) -> usize {
        (self.random.next_u64() % bound as u64) as usize
    }

    fn contents(self) -> Contents {
        let mut finished = vec![true; self.schedule.ranks()];
        for (node, done) in self.done.iter().enumerate() {
            finished[self.graph.at(node).rank] &= done;
        }
        Contents {
            memory: self.memory,
            finished,
        }
    }
}

fn memory(schedule: &Schedule, rank: usize) -> [Vec<Value>; 3] {
    let lens = schedule.programs[rank].lens;
    Buffer::ALL.map(|buffer| {
        let symbol = |element| Symbol {
            contributions: BTreeMap::from([((rank, element), 1)]),
            expression: mix(rank as u64, element as u64),
        };
        let value = |element| (buffer == Buffer::Input).then(|| Rc::new(symbol(element)));
        (0..lens[buffer.index()]).map(value).collect()
    })
}

/// Combines the symbolic value of the source into that of the target.
fn sum(source: &Value, target: &Value) -> Value {
    let (source, target) = (source.as_ref()?, target.as_ref()?);
    let mut contributions = target.contributions.clone();
    for (contribution, times) in &source.contributions {
        *contributions.entry(*contribution).or_default() += times;
    }
    // IEEE addition is commutative, but not associative.
    let (a, b) = (source.expression, target.expression);
    Some(Rc::new(Symbol {
        contributions,
        expression: mix(a.min(b), a.max(b)),
    }))
}

/// Mixes two numbers to a hash (SplitMix64's finalizer).
fn mix(a: u64, b: u64) -> u64 {
    let mut z = a.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(b);
    for multiplier in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
        z = (z ^ (z >> 29)).wrapping_mul(multiplier);
    }
    z ^ (z >> 32)
}
