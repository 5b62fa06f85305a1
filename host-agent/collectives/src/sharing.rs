//! Distributes queue pairs over the few NICs of a node with many GPUs. Each queue pair is bound to a NIC, and to the GPU that
//! receives its data first. The module predicts the time of the most loaded edge (link, port or memory).
//!
//! The problem: minimize the time θ in which every edge e can carry its bytes, at most θ·Bₑ for its rate Bₑ. A queue pair is
//! indivisible: it has one NIC and one GPU. Equal GPUs and equal NICs get equal numbers of queue pairs, up to one. So the
//! search only varies how many GPUs near each NIC take part, and how many queue pairs are bound to GPUs far from any NIC, by
//! the uplinks. It is exact if NICs and GPUs are distributed evenly over the PCIe switches; a test compares it with all
//! bindings.
//!
//! In an all-gather, each shard of another node enters the node once, and is then sent to all its GPUs. In an all-to-all, all
//! data enters, and moves by NVLink or PCIe from the first GPU to its destination. Outgoing traffic mirrors incoming traffic,
//! so only incoming traffic and traffic inside the node are counted.

use crate::cost::ModelError;
use crate::machine::{Inside, Machine};

/// Traffic pattern of the GPUs of all nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// All-gather with equal shards.
    AllGather {
        /// Bytes that each GPU contributes.
        bytes: u64,
    },
    /// All-to-all with equally many bytes for each pair of GPUs.
    AllToAll {
        /// Bytes that each GPU sends to each other GPU.
        bytes: u64,
    },
}

/// How received data is distributed to all GPUs of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FanOut {
    /// The GPU that received the data sends it to each other GPU.
    Star,
    /// GPUs forward data so that all send equally much, and data for several GPUs at a PCIe switch passes its uplink once:
    /// the optimum of trees.
    Balanced,
}

/// Kind of an edge (link, port or memory) whose load limits the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// Network port of a NIC.
    Nic,
    /// Network fabric between nodes.
    Fabric,
    /// PCIe slot of a NIC.
    NicSlot,
    /// PCIe slot of a GPU.
    GpuSlot,
    /// Uplink of a PCIe switch.
    Uplink,
    /// NVLink port of a GPU.
    NvLink,
    /// Memory of the host, by which ranks copy.
    Memory,
}

/// A binding of queue pairs to NICs and GPUs, with its predicted time.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// Number of queue pairs that are bound to a NIC and a GPU: `queue_pairs[nic][gpu]`.
    pub queue_pairs: Vec<Vec<usize>>,
    /// θ: time that the most loaded edge needs for its bytes, in seconds.
    pub time_s: f64,
    /// Kind of the most loaded edge; the first one in [`EdgeKind`]'s order if several are equal.
    pub fullest: EdgeKind,
    /// Time of the most loaded edge of each kind, in seconds.
    pub by_kind: Vec<(EdgeKind, f64)>,
    /// Share of the rate of all NICs that is used in the time θ, 0 to 1.
    pub utilisation: f64,
}

/// Finds the binding of `queue_pairs` queue pairs per node (at least 1) with the shortest time, for `nodes` equal nodes.
///
/// # Errors
/// As [`Machine::check`].
pub fn bind(
    machine: &Machine,
    nodes: usize,
    traffic: Traffic,
    fan_out: FanOut,
    queue_pairs: usize,
) -> Result<Binding, ModelError> {
    machine.check()?;
    let queue_pairs = queue_pairs.max(1);
    let mut best: Option<Binding> = None;
    for near in 1..=machine.gpus {
        for far in 0..=queue_pairs.div_ceil(machine.nics) {
            let Some(bound) = spread(machine, queue_pairs, near, far) else {
                continue;
            };
            let binding = evaluate(machine, nodes, traffic, fan_out, bound);
            if best
                .as_ref()
                .is_none_or(|best| binding.time_s < best.time_s * (1.0 - 1e-12))
            {
                best = Some(binding);
            }
        }
    }
    // Every NIC has a GPU, so one queue pair near each NIC is always possible.
    best.ok_or(ModelError::Without("GPU"))
}

/// Distributes queue pairs evenly over NICs. Each NIC gives `far` of its queue pairs to GPUs that have no near NIC, and the
/// others to `near` of the GPUs close to it. `None` if the machine has too few such GPUs.
fn spread(
    machine: &Machine,
    queue_pairs: usize,
    near: usize,
    far: usize,
) -> Option<Vec<Vec<usize>>> {
    let is_near = machine.near_gpus();
    let distant: Vec<usize> = (0..machine.gpus)
        .filter(|gpu| !is_near.contains(gpu))
        .collect();
    if far > 0 && distant.is_empty() {
        return None;
    }
    let mut bound = vec![vec![0; machine.gpus]; machine.nics];
    let mut next_far = 0;
    for (nic, bound) in bound.iter_mut().enumerate() {
        let all = crate::collective::even(queue_pairs, machine.nics)[nic];
        let far = far.min(all);
        for _ in 0..far {
            bound[distant[next_far % distant.len()]] += 1;
            next_far += 1;
        }
        let own: Vec<usize> = near_nic(machine, nic).into_iter().take(near).collect();
        if own.len() < near && far < all {
            return None;
        }
        for i in 0..all - far {
            bound[own[i % own.len()]] += 1;
        }
    }
    Some(bound)
}

/// GPUs to which this NIC's queue pairs are bound: those at its PCIe switch that use it, else all at this switch, else the one
/// in proportion to the NIC's number.
fn near_nic(machine: &Machine, nic: usize) -> Vec<usize> {
    let at_switch = |gpu: &usize| machine.switch_of_gpu(*gpu) == machine.switch_of_nic(nic);
    let there: Vec<usize> = (0..machine.gpus).filter(at_switch).collect();
    let bound = there
        .iter()
        .copied()
        .filter(|gpu| machine.nic_of(*gpu) == nic);
    let bound: Vec<usize> = bound.collect();
    match (bound.is_empty(), there.is_empty()) {
        (false, _) => bound,
        (true, false) => there,
        (true, true) => vec![nic * machine.gpus / machine.nics],
    }
}

/// Computes time and loads of a binding, on a machine that passes [`Machine::check`].
pub fn evaluate(
    machine: &Machine,
    nodes: usize,
    traffic: Traffic,
    fan_out: FanOut,
    queue_pairs: Vec<Vec<usize>>,
) -> Binding {
    let loads = Loads::new(machine, nodes, traffic, &queue_pairs);
    let kinds = [
        (EdgeKind::Nic, Some(machine.nic_bps), largest(&loads.nics)),
        (EdgeKind::Fabric, machine.fabric_bps, loads.enters),
        (
            EdgeKind::NicSlot,
            slot(machine, machine.nic_slot_bps),
            largest(&loads.nics),
        ),
        (
            EdgeKind::GpuSlot,
            slot(machine, machine.gpu_slot_bps),
            largest(&loads.gpu_slots(fan_out)),
        ),
        (
            EdgeKind::Uplink,
            slot(machine, machine.uplink_bps),
            largest(&loads.uplinks(fan_out)),
        ),
        (
            EdgeKind::NvLink,
            nvlink(machine),
            largest(&loads.ports(fan_out)),
        ),
        (EdgeKind::Memory, memory(machine), loads.copied()),
    ];
    let time = |(kind, rate_bps, bytes): (EdgeKind, Option<u64>, f64)| {
        rate_bps.map(|rate| (kind, bytes * 8.0 / rate as f64))
    };
    let by_kind: Vec<(EdgeKind, f64)> = kinds.into_iter().filter_map(time).collect();
    let mut fullest = by_kind[0];
    for kind in &by_kind {
        if kind.1 > fullest.1 * (1.0 + 1e-9) {
            fullest = *kind;
        }
    }
    let carried = machine.nics as f64 * machine.nic_bps as f64 * fullest.1;
    let utilisation = if carried > 0.0 {
        loads.enters * 8.0 / carried
    } else {
        0.0
    };
    Binding {
        queue_pairs,
        time_s: fullest.1,
        fullest: fullest.0,
        by_kind,
        utilisation,
    }
}

fn slot(machine: &Machine, rate_bps: u64) -> Option<u64> {
    (!matches!(machine.inside, Inside::Memory { .. })).then_some(rate_bps)
}

fn nvlink(machine: &Machine) -> Option<u64> {
    match machine.inside {
        Inside::NvLink { port_bps } => Some(port_bps),
        _ => None,
    }
}

fn memory(machine: &Machine) -> Option<u64> {
    match machine.inside {
        Inside::Memory { copy_bps } => Some(copy_bps),
        _ => None,
    }
}

fn largest(loads: &[f64]) -> f64 {
    loads.iter().copied().fold(0.0, f64::max)
}

/// Bytes that pass the edges of one node. Of the two directions of an edge, the one with more bytes counts.
struct Loads<'m> {
    machine: &'m Machine,
    traffic: Traffic,
    /// Bytes that enter the node from other nodes.
    enters: f64,
    /// Bytes that enter the node through each NIC.
    nics: Vec<f64>,
    /// For each GPU, bytes that enter the node and reach this GPU first.
    lands: Vec<f64>,
    /// For each PCIe switch, bytes that pass its uplink between a NIC and a GPU at different switches.
    detours: Vec<f64>,
}

impl<'m> Loads<'m> {
    fn new(machine: &'m Machine, nodes: usize, traffic: Traffic, bound: &[Vec<usize>]) -> Self {
        let (gpus, others) = (machine.gpus as f64, nodes.saturating_sub(1) as f64);
        let enters = match traffic {
            Traffic::AllGather { bytes } => others * gpus * bytes as f64,
            Traffic::AllToAll { bytes } => others * gpus * gpus * bytes as f64,
        };
        let all: usize = bound.iter().flatten().sum();
        let share = enters / all.max(1) as f64;
        let mut loads = Self {
            machine,
            traffic,
            enters,
            nics: vec![0.0; machine.nics],
            lands: vec![0.0; machine.gpus],
            detours: vec![0.0; machine.switches],
        };
        // A detour passes down at the GPU's switch and up at the NIC's; outgoing data passes in reverse.
        for (nic, by_gpu) in bound.iter().enumerate() {
            for (gpu, count) in by_gpu.iter().enumerate() {
                let bytes = share * *count as f64;
                loads.nics[nic] += bytes;
                loads.lands[gpu] += bytes;
                let switches = [machine.switch_of_nic(nic), machine.switch_of_gpu(gpu)];
                if switches[0] != switches[1] {
                    for switch in switches {
                        loads.detours[switch] += bytes;
                    }
                }
            }
        }
        loads
    }

    /// Bytes that pass each GPU's NVLink port, for a node that has such ports.
    fn ports(&self, fan_out: FanOut) -> Vec<f64> {
        let of = |gpu: usize| self.sends(gpu, fan_out).max(self.gets(gpu));
        (0..self.machine.gpus).map(of).collect()
    }

    /// Bytes that a GPU receives from the other GPUs of its node.
    fn gets(&self, gpu: usize) -> f64 {
        let (gpus, lands) = (self.machine.gpus as f64, self.lands[gpu]);
        match self.traffic {
            Traffic::AllGather { bytes } => self.enters - lands + (gpus - 1.0) * bytes as f64,
            Traffic::AllToAll { .. } => self.relays(gpu),
        }
    }

    /// Bytes that a GPU sends to the other GPUs of its node.
    fn sends(&self, gpu: usize, fan_out: FanOut) -> f64 {
        let (gpus, lands) = (self.machine.gpus as f64, self.lands[gpu]);
        match (self.traffic, fan_out) {
            (Traffic::AllGather { bytes }, FanOut::Star) => (gpus - 1.0) * (lands + bytes as f64),
            (Traffic::AllGather { bytes }, FanOut::Balanced) => {
                // Trees send each byte g − 1 times in total.
                let all = (gpus - 1.0) * (self.enters + gpus * bytes as f64);
                self.once(gpu).max(all / gpus)
            }
            (Traffic::AllToAll { .. }, _) => self.relays(gpu),
        }
    }

    /// Bytes that a GPU sends to GPUs of its node in an all-to-all: received data of other GPUs; its own data for other nodes,
    /// if the data leaves by another GPU; and its own data for GPUs of its node. It receives equally many.
    fn relays(&self, gpu: usize) -> f64 {
        let Traffic::AllToAll { bytes } = self.traffic else {
            return 0.0;
        };
        let (gpus, lands) = (self.machine.gpus as f64, self.lands[gpu]);
        let others = lands * (1.0 - 1.0 / gpus);
        let own = self.enters / gpus - lands / gpus;
        others + own + (gpus - 1.0) * bytes as f64
    }

    /// Bytes that pass each GPU's PCIe slot: to and from NICs, and without NVLink also to and from other GPUs.
    fn gpu_slots(&self, fan_out: FanOut) -> Vec<f64> {
        if self.machine.inside != Inside::Pcie {
            return self.lands.clone();
        }
        // With trees, GPUs that send to NICs forward less inside.
        let gpus = self.machine.gpus;
        let all: f64 = self.enters + (0..gpus).map(|gpu| self.sends(gpu, fan_out)).sum::<f64>();
        let slot = |gpu: usize| {
            let out = match (self.traffic, fan_out) {
                (Traffic::AllGather { .. }, FanOut::Balanced) => {
                    (self.lands[gpu] + self.once(gpu)).max(all / gpus as f64)
                }
                _ => self.lands[gpu] + self.sends(gpu, fan_out),
            };
            out.max(self.lands[gpu] + self.gets(gpu))
        };
        (0..gpus).map(slot).collect()
    }

    /// In an all-gather, bytes that this GPU has before the other GPUs of its node, and must send to them at least once.
    fn once(&self, gpu: usize) -> f64 {
        match self.traffic {
            Traffic::AllGather { bytes } if self.machine.gpus > 1 => self.lands[gpu] + bytes as f64,
            _ => 0.0,
        }
    }

    fn uplinks(&self, fan_out: FanOut) -> Vec<f64> {
        let switches = self.machine.switches;
        let of = |switch: usize| match self.machine.inside {
            Inside::Pcie if switches > 1 => {
                self.detours[switch] + largest(&self.crosses(switch, fan_out))
            }
            _ => self.detours[switch],
        };
        (0..switches).map(of).collect()
    }

    /// Bytes between GPUs that pass a PCIe switch's uplink: upwards, and downwards.
    fn crosses(&self, switch: usize, fan_out: FanOut) -> [f64; 2] {
        let machine = self.machine;
        let (gpus, switches) = (machine.gpus as f64, machine.switches as f64);
        let members = (0..machine.gpus).filter(|gpu| machine.switch_of_gpu(*gpu) == switch);
        let members: Vec<usize> = members.collect();
        let here = members.len() as f64;
        let lands: f64 = members.iter().map(|gpu| self.lands[*gpu]).sum();
        match (self.traffic, fan_out) {
            (Traffic::AllGather { bytes }, FanOut::Star) => {
                let own = here * bytes as f64;
                let elsewhere = self.enters - lands + (gpus - here) * bytes as f64;
                [(gpus - here) * (lands + own), here * elsewhere]
            }
            (Traffic::AllGather { bytes }, FanOut::Balanced) => {
                let own = here * bytes as f64;
                let elsewhere = self.enters - lands + (gpus - here) * bytes as f64;
                let all = (switches - 1.0) * (self.enters + gpus * bytes as f64);
                [(lands + own).max(all / switches), elsewhere]
            }
            (Traffic::AllToAll { bytes }, _) => {
                // From data received here, the share for GPUs elsewhere; from the data of these GPUs for other nodes, the
                // share that leaves elsewhere.
                let away = lands * (1.0 - here / gpus);
                let out = (self.enters - lands) * here / gpus;
                let local = here * (gpus - here) * bytes as f64;
                [away + out + local; 2]
            }
        }
    }

    /// Bytes that the host copies between its ranks.
    fn copied(&self) -> f64 {
        (0..self.machine.gpus).map(|gpu| self.gets(gpu)).sum()
    }
}
