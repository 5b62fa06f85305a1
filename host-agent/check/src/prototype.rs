//! Model of the prototype that this project replaces, for the model checker: a counter decides when sums are complete, and
//! nothing is retransmitted.
//!
//! A fragment's slot is its number modulo the number of slots. The first fragment to arrive owns the slot, the others are
//! added and counted, and the last one goes to the server with the sum. An acknowledgement, which no sender sends, would free
//! the slot; owner 0 means free. The frames are ours, as far as their content is the same.

use aggregation::Destination;
use wire::{Flags, Kind, Packet, Repr};

use crate::model::{Act, Frame, Model, Outbox, Status, Wrong};

/// Bounds of the model of the prototype.
#[derive(Debug, Clone)]
pub struct Prototype {
    /// Number of workers in the model.
    pub workers: u8,
    /// Number of slots of the switch.
    pub slots: u32,
    /// Number of fragments that each worker sends, all at once.
    pub fragments: u32,
    /// Number of the first fragment.
    pub first: u32,
}

/// A node of the model of the prototype.
#[derive(Debug, Clone)]
pub enum PrototypeNode {
    /// A worker of the job.
    Worker {
        /// Number of the worker.
        id: u8,
        /// Whether the worker has sent its fragments.
        has_sent: bool,
        /// For each fragment, whether the worker has received its sum.
        answered: Vec<bool>,
    },
    /// The switch, with its slots.
    Switch(Vec<Cell>),
    /// The server, which sends each sum to all workers.
    Server,
}

/// A slot of the prototype's switch.
#[derive(Debug, Clone, Default)]
pub struct Cell {
    owner: u32,
    count: u8,
    values: Vec<i32>,
}

impl Prototype {
    fn value(fragment: u32) -> i32 {
        1000 + fragment as i32
    }

    fn frame(&self, kind: Kind, fragment: u32, worker: u8, values: &[i32]) -> Vec<u8> {
        let repr = Repr {
            kind,
            flags: Flags::NONE,
            job: 0,
            chunk: fragment,
            slot: (fragment % self.slots) as u16,
            worker: u16::from(worker),
            transmission: 0,
            contributors: 0,
            scale: 0,
            next_scale: 0,
            count: values.len() as u16,
        };
        let mut bytes = vec![0; repr.buffer_len()];
        let mut packet = Packet::new_unchecked(&mut bytes[..]);
        repr.emit(&mut packet);
        packet.write_i32(values.iter().copied());
        bytes
    }

    fn update(&self, cells: &mut [Cell], fragment: u32, values: Vec<i32>) -> Option<Vec<i32>> {
        let cell = &mut cells[(fragment % self.slots) as usize];
        if cell.owner == 0 {
            let owner = fragment;
            let count = 1;
            *cell = Cell {
                owner,
                count,
                values,
            };
        } else if cell.owner == fragment {
            let sums = cell.values.iter_mut().zip(values);
            sums.for_each(|(sum, value)| *sum += value);
            cell.count = cell.count.saturating_add(1);
        } else {
            return None;
        }
        (cell.count == self.workers).then(|| cell.values.clone())
    }
}

impl Model for Prototype {
    type Node = PrototypeNode;

    fn nodes(&self) -> Vec<PrototypeNode> {
        let workers = (0..self.workers).map(|id| PrototypeNode::Worker {
            id,
            has_sent: false,
            answered: vec![false; self.fragments as usize],
        });
        let switch = PrototypeNode::Switch(vec![Cell::default(); self.slots as usize]);
        workers.chain([switch, PrototypeNode::Server]).collect()
    }

    fn interchangeable(&self) -> usize {
        usize::from(self.workers)
    }

    fn state(&self, node: &PrototypeNode, out: &mut Vec<u8>) {
        match node {
            PrototypeNode::Worker {
                has_sent, answered, ..
            } => {
                out.push(u8::from(*has_sent));
                out.extend(answered.iter().map(|answered| u8::from(*answered)));
            }
            PrototypeNode::Switch(cells) => {
                for cell in cells {
                    out.extend(cell.owner.to_le_bytes());
                    out.extend([cell.count, cell.values.len() as u8]);
                    let values = cell.values.iter();
                    values.for_each(|value| out.extend(value.to_le_bytes()));
                }
            }
            PrototypeNode::Server => {}
        }
    }

    fn status(&self, node: &PrototypeNode) -> Status {
        match node {
            PrototypeNode::Worker {
                has_sent: false, ..
            } => Status::Wants,
            PrototypeNode::Worker { answered, .. } if answered.iter().all(|answered| *answered) => {
                Status::Done
            }
            PrototypeNode::Worker { .. } => Status::Works,
            PrototypeNode::Switch(_) | PrototypeNode::Server => Status::Serves,
        }
    }

    fn acts(&self, node: &PrototypeNode) -> Vec<Act> {
        match node {
            PrototypeNode::Worker {
                has_sent: false, ..
            } => vec![Act::Submit],
            _ => Vec::new(),
        }
    }

    fn act(&self, node: &mut PrototypeNode, _act: Act, out: &mut Outbox) {
        let PrototypeNode::Worker { id, has_sent, .. } = node else {
            return;
        };
        *has_sent = true;
        for fragment in self.first..self.first + self.fragments {
            let values: Vec<i32> = (0..self.workers)
                .map(|place| {
                    if place == *id {
                        Self::value(fragment)
                    } else {
                        0
                    }
                })
                .collect();
            let bytes = self.frame(Kind::Update, fragment, *id, &values);
            out.send(*id, [self.workers], Destination::Server, &bytes);
        }
    }

    fn deliver(&self, node: &mut PrototypeNode, frame: &Frame, out: &mut Outbox) {
        let Ok(packet) = Packet::new_checked(&frame.bytes[..]) else {
            return;
        };
        let fragment = packet.chunk();
        let values: Vec<i32> = packet.values_i32().collect();
        match node {
            PrototypeNode::Worker { id, answered, .. } => {
                answered[(fragment - self.first) as usize] = true;
                if values.iter().any(|value| *value != Self::value(fragment)) {
                    out.wrong(Wrong::Sum(format!("worker {id} has {values:?}")));
                }
            }
            PrototypeNode::Switch(cells) => {
                if let Some(sums) = self.update(cells, fragment, values) {
                    let bytes = self.frame(Kind::Sum, fragment, 0, &sums);
                    let server = self.workers + 1;
                    out.send(self.workers, [server], Destination::Server, &bytes);
                }
            }
            PrototypeNode::Server => {
                let bytes = self.frame(Kind::Result, fragment, 0, &values);
                out.send(self.workers + 1, 0..self.workers, Destination::All, &bytes);
            }
        }
    }

    fn mask(&self, _frame: &mut Frame) -> Vec<Frame> {
        Vec::new()
    }

    fn has_more(&self) -> bool {
        false
    }

    /// Returns `false` if a fragment still holds a slot although all workers have its sum: such a slot is lost.
    fn ends(&self, nodes: &[&PrototypeNode]) -> bool {
        nodes.iter().all(|node| match node {
            PrototypeNode::Switch(cells) => cells.iter().all(|cell| cell.owner == 0),
            _ => true,
        })
    }

    fn name(&self, node: u8) -> String {
        if node < self.workers {
            format!("worker {node}")
        } else if node == self.workers {
            "the switch".into()
        } else {
            "the server".into()
        }
    }

    fn describe(&self, node: &PrototypeNode) -> String {
        let PrototypeNode::Switch(cells) = node else {
            return String::new();
        };
        let taken = cells.iter().filter(|cell| cell.owner != 0);
        let cells: Vec<String> = taken
            .map(|cell| {
                format!(
                    "#{}, {} arrivals, {:?}",
                    cell.owner, cell.count, cell.values
                )
            })
            .collect();
        cells.join("; ")
    }
}
