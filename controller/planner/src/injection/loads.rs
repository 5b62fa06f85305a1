//! Loads of switches in a placement, updated as blocks are placed and removed.

use std::cell::Cell;

use super::blocks::{BlockId, Blocks};
use super::cost::{Cost, Utilisation};
use super::problem::SwitchId;

/// Worst utilizations of the resources of a switch.
#[derive(Debug, Clone, Copy)]
struct Worst {
    binding: Utilisation,
    slowing: Utilisation,
    /// Worst ratio of the taken amount to the limit.
    pressed: Utilisation,
}

impl Worst {
    const NONE: Worst = Worst {
        binding: Utilisation::NONE,
        slowing: Utilisation::NONE,
        pressed: Utilisation::NONE,
    };

    fn is_over(&self) -> bool {
        self.pressed > Utilisation::ALL
    }
}

/// Loads of all switches in a complete or partial placement.
#[derive(Debug, Clone)]
pub(super) struct SwitchLoads<'b, 'p> {
    blocks: &'b Blocks<'p>,
    /// Amount that faults take, by switch and resource.
    taken: Vec<u64>,
    /// Number of placed blocks of faults that need a charge (amounts of resources that blocks may share), by charge and switch.
    needed: Vec<u32>,
    /// Number of fault blocks (faults that are placed together) at each switch.
    standing: Vec<u32>,
    worst: Vec<Worst>,
    /// Worst utilizations at any switch: of resources with a hard limit, and of others; `None`: not computed since a change.
    of_all: Cell<Option<(Utilisation, Utilisation)>>,
    hops: u64,
    touched: usize,
    /// Number of times that a block of faults was placed, as a measure of the work of a search.
    puts: u64,
}

impl<'b, 'p> SwitchLoads<'b, 'p> {
    /// Loads of a placement without blocks of faults.
    pub fn new(blocks: &'b Blocks<'p>) -> SwitchLoads<'b, 'p> {
        let problem = blocks.problem;
        let switches = problem.switches.len();
        SwitchLoads {
            blocks,
            taken: vec![0; switches * problem.resources.len()],
            needed: vec![0; switches * problem.charges.len()],
            standing: vec![0; switches],
            worst: vec![Worst::NONE; switches],
            of_all: Cell::new(None),
            hops: 0,
            touched: 0,
            puts: 0,
        }
    }

    /// Adds the load of a block of faults that one of its options places.
    pub fn put(&mut self, block: BlockId, option: usize) {
        let blocks = self.blocks;
        let (block, switches) = (&blocks.blocks[block], blocks.problem.switches.len());
        let place = &block.options[option];
        for &switch in &place.switches {
            if self.standing[switch] == 0 {
                self.touched += 1;
                for (resource, cost) in blocks.problem.switches[switch].opening.iter().enumerate() {
                    self.take(switch, resource, *cost);
                }
            }
            self.standing[switch] += 1;
            for &charge in &block.charges {
                let needed = &mut self.needed[charge * switches + switch];
                *needed += 1;
                if *needed == 1 {
                    for &(resource, cost) in &blocks.problem.charges[charge].cost {
                        self.take(switch, resource, cost);
                    }
                }
            }
            self.look_at(switch);
        }
        self.hops += place.hops;
        self.puts += 1;
    }

    /// Removes the load that [`SwitchLoads::put`] added for the block of faults and option.
    pub fn lift(&mut self, block: BlockId, option: usize) {
        let blocks = self.blocks;
        let (block, switches) = (&blocks.blocks[block], blocks.problem.switches.len());
        let place = &block.options[option];
        for &switch in &place.switches {
            for &charge in &block.charges {
                let needed = &mut self.needed[charge * switches + switch];
                *needed -= 1;
                if *needed == 0 {
                    for &(resource, cost) in &blocks.problem.charges[charge].cost {
                        self.give(switch, resource, cost);
                    }
                }
            }
            self.standing[switch] -= 1;
            if self.standing[switch] == 0 {
                self.touched -= 1;
                for (resource, cost) in blocks.problem.switches[switch].opening.iter().enumerate() {
                    self.give(switch, resource, *cost);
                }
            }
            self.look_at(switch);
        }
        self.hops -= place.hops;
    }

    fn take(&mut self, switch: SwitchId, resource: usize, cost: u64) {
        self.taken[self.blocks.row(switch, resource)] += cost;
    }

    fn give(&mut self, switch: SwitchId, resource: usize, cost: u64) {
        self.taken[self.blocks.row(switch, resource)] -= cost;
    }

    fn look_at(&mut self, switch: SwitchId) {
        let mut worst = Worst::NONE;
        for (resource, about) in self.blocks.problem.resources.iter().enumerate() {
            let row = self.blocks.row(switch, resource);
            let taken = self.taken[row];
            if taken == 0 {
                continue;
            }
            let pressed = match self.blocks.limits[row] {
                u64::MAX => Utilisation::NONE,
                // Worse than a full limit, and the more is taken the worse.
                0 => Utilisation {
                    taken: taken.saturating_add(1),
                    of: 1,
                },
                of => Utilisation { taken, of },
            };
            worst.pressed = worst.pressed.max(pressed);
            let of = self.blocks.free[row];
            let level = match about.binds {
                true => &mut worst.binding,
                false => &mut worst.slowing,
            };
            *level = (*level).max(Utilisation { taken, of });
        }
        if let Some((binding, slowing)) = self.of_all.get() {
            let was = self.worst[switch];
            let was_worst = was.binding == binding || was.slowing == slowing;
            let is_less = worst.binding < was.binding || worst.slowing < was.slowing;
            self.of_all.set(match was_worst && is_less {
                // Another switch may be as full: recompute on demand.
                true => None,
                false => Some((binding.max(worst.binding), slowing.max(worst.slowing))),
            });
        }
        self.worst[switch] = worst;
    }

    /// Whether no limit is exceeded at the switches of an option.
    pub fn fits(&self, block: BlockId, option: usize) -> bool {
        let mut switches = self.blocks.blocks[block].options[option].switches.iter();
        switches.all(|switch| !self.worst[*switch].is_over())
    }

    /// Whether a switch's faults take more than the limit of one of its resources.
    pub fn is_over(&self, switch: SwitchId) -> bool {
        self.worst[switch].is_over()
    }

    /// Worst utilizations at a switch: of resources with a hard limit, and of other resources.
    pub fn at(&self, switch: SwitchId) -> (Utilisation, Utilisation) {
        (self.worst[switch].binding, self.worst[switch].slowing)
    }

    /// Worst ratio, over a switch's resources, of the taken amount to the limit.
    pub fn pressed(&self, switch: SwitchId) -> Utilisation {
        self.worst[switch].pressed
    }

    /// Worst utilizations at any switch of an option: of resources with a hard limit, and of other resources.
    pub fn worst_of(&self, block: BlockId, option: usize) -> (Utilisation, Utilisation) {
        let switches = self.blocks.blocks[block].options[option].switches.iter();
        switches.fold(
            (Utilisation::NONE, Utilisation::NONE),
            |(binding, slowing), switch| {
                let at = &self.worst[*switch];
                (binding.max(at.binding), slowing.max(at.slowing))
            },
        )
    }

    /// Number of times that a block of faults was placed so far.
    pub fn puts(&self) -> u64 {
        self.puts
    }

    /// Number of blocks of faults that are placed at a switch.
    pub fn standing(&self, switch: SwitchId) -> u32 {
        self.standing[switch]
    }

    /// Amount that faults take, by switch and resource; [`Blocks::row`] gives the index.
    pub fn taken(&self) -> &[u64] {
        &self.taken
    }

    /// Cost of the current placement.
    pub fn cost(&self) -> Cost {
        let (worst, slowest) = self.of_all.get().unwrap_or_else(|| {
            let none = (Utilisation::NONE, Utilisation::NONE);
            let of_all = self.worst.iter().fold(none, |(binding, slowing), at| {
                (binding.max(at.binding), slowing.max(at.slowing))
            });
            self.of_all.set(Some(of_all));
            of_all
        });
        Cost {
            worst,
            slowest,
            touched: self.touched,
            hops: self.hops,
        }
    }
}
