//! Model of a node as edges: GPUs, NICs, PCIe switches, NVLink.
//!
//! ```text
//!        ┌──────── NVLink ────────┐
//!   GPU 0    GPU 1         GPU 2    GPU 3
//!     └── PCIe ─┴─ switch    └── PCIe ─┴─ switch     each joined to the others by its uplink
//!                   └─ NIC 0               └─ NIC 1
//! ```
//!
//! GPUs and NICs are distributed evenly over the PCIe switches, in order. A GPU uses a NIC at its own switch if there is one.
//! Otherwise it reaches a NIC by the uplinks: GPU i of g uses NIC i·c/g of c, rounded down. Each link is one edge per
//! direction. Traffic between processor sockets is not modeled: an x16 uplink saturates first.

use crate::algorithms::Hierarchy;
use crate::cost::{EdgeId, Model, ModelError};

/// How the GPUs of a node are connected to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// An NVLink switch with one port per GPU.
    NvLink {
        /// Rate of a GPU's port in each direction, in bits per second.
        port_bps: u64,
    },
    /// GPUs are connected by PCIe only.
    Pcie,
    /// The ranks are processes of one host, connected by its memory with a shared copy rate.
    Memory {
        /// Copy rate that all ranks share, in bits per second.
        copy_bps: u64,
    },
}

/// Hardware of one node: its GPUs, NICs and PCIe switches, and the rates of their links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Number of GPUs of a node, at least 1.
    pub gpus: usize,
    /// Number of NICs of a node, at least 1.
    pub nics: usize,
    /// Number of PCIe switches of a node, at least 1.
    pub switches: usize,
    /// Rate of a NIC's network port in each direction, in bits per second.
    pub nic_bps: u64,
    /// Rate of each GPU's PCIe slot in each direction, in bits per second.
    pub gpu_slot_bps: u64,
    /// Rate of each NIC's PCIe slot in each direction, in bits per second.
    pub nic_slot_bps: u64,
    /// Rate of each PCIe switch's uplink to the other switches, in each direction, in bits per second.
    pub uplink_bps: u64,
    /// How the GPUs of the node are connected to each other.
    pub inside: Inside,
    /// Rate of the network fabric per node in bits per second; `None` if the fabric never blocks.
    pub fabric_bps: Option<u64>,
    /// Delay α of a message between GPUs of one node, in nanoseconds.
    pub inside_ns: u64,
    /// Delay α of a message between GPUs of different nodes, in nanoseconds.
    pub across_ns: u64,
}

const GIGA: u64 = 1_000_000_000;
/// Rate of a PCIe 5.0 x16 slot: 16 lanes of 32 GT/s, 128b/130b (PCI Express base specification 5.0), 504.1 Gb/s per direction.
pub const PCIE5_X16_BPS: u64 = 32 * GIGA * 16 * 128 / 130;
/// Rate of a PCIe 4.0 x16 slot: 16 lanes of 16 GT/s (PCI Express base specification 4.0), 252.1 Gb/s per direction.
pub const PCIE4_X16_BPS: u64 = 16 * GIGA * 16 * 128 / 130;
/// Rate of an H100's fourth-generation NVLink in one direction; 900 GB/s in both together (NVIDIA H100 data sheet).
pub const NVLINK4_BPS: u64 = 450 * 8 * GIGA;

impl Machine {
    /// A node with eight GPUs on NVSwitch, four PCIe 5.0 switches, NICs of 400 Gb/s: NVIDIA's HGX H100 8-GPU with ConnectX-7
    /// (data sheets of both). α is assumed: 1 µs inside the node, 5 µs across nodes.
    pub fn nvlink(nics: usize) -> Self {
        Self {
            gpus: 8,
            nics,
            switches: 4,
            nic_bps: 400 * GIGA,
            gpu_slot_bps: PCIE5_X16_BPS,
            nic_slot_bps: PCIE5_X16_BPS,
            uplink_bps: PCIE5_X16_BPS,
            inside: Inside::NvLink {
                port_bps: NVLINK4_BPS,
            },
            fabric_bps: None,
            inside_ns: 1_000,
            across_ns: 5_000,
        }
    }

    /// A node with eight GPUs without NVLink in PCIe 4.0 slots, as L40S (NVIDIA L40S data sheet: PCIe Gen4 x16), four switches,
    /// NICs of 200 Gb/s (ConnectX-6 data sheet). α as in [`Machine::nvlink`].
    pub fn pcie(nics: usize) -> Self {
        Self {
            nic_bps: 200 * GIGA,
            gpu_slot_bps: PCIE4_X16_BPS,
            nic_slot_bps: PCIE4_X16_BPS,
            uplink_bps: PCIE4_X16_BPS,
            inside: Inside::Pcie,
            ..Self::nvlink(nics)
        }
    }

    /// Index of the PCIe switch that a GPU is at, from 0.
    pub fn switch_of_gpu(&self, gpu: usize) -> usize {
        gpu * self.switches / self.gpus
    }

    /// Index of the PCIe switch that a NIC is at, from 0.
    pub fn switch_of_nic(&self, nic: usize) -> usize {
        nic * self.switches / self.nics
    }

    /// Index of the NIC that a GPU's queue pairs are bound to, from 0.
    pub fn nic_of(&self, gpu: usize) -> usize {
        let switch = self.switch_of_gpu(gpu);
        let near: Vec<usize> = (0..self.nics)
            .filter(|nic| self.switch_of_nic(*nic) == switch)
            .collect();
        let there: Vec<usize> = (0..self.gpus)
            .filter(|other| self.switch_of_gpu(*other) == switch)
            .collect();
        let place = there.iter().position(|other| *other == gpu).unwrap_or(0);
        match near.len() {
            0 => gpu * self.nics / self.gpus,
            count => near[place * count / there.len()],
        }
    }

    /// Indices of the GPUs that have a NIC at their own PCIe switch.
    pub fn near_gpus(&self) -> Vec<usize> {
        let is_near =
            |gpu: &usize| self.switch_of_nic(self.nic_of(*gpu)) == self.switch_of_gpu(*gpu);
        (0..self.gpus).filter(is_near).collect()
    }

    /// Checks that every count is at least 1, and every rate above 0.
    ///
    /// # Errors
    /// Names the first count or rate that is 0.
    pub fn check(&self) -> Result<(), ModelError> {
        let counts = [
            ("GPU", self.gpus),
            ("NIC", self.nics),
            ("PCIe switch", self.switches),
        ];
        if let Some((what, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(ModelError::Without(what));
        }
        let inside = match self.inside {
            Inside::NvLink { port_bps } => ("NVLink", port_bps),
            Inside::Pcie => ("PCIe of GPU", self.gpu_slot_bps),
            Inside::Memory { copy_bps } => ("memory", copy_bps),
        };
        let rates = [
            inside,
            ("NIC", self.nic_bps),
            ("PCIe of GPU", self.gpu_slot_bps),
            ("PCIe of NIC", self.nic_slot_bps),
            ("uplink of PCIe switch", self.uplink_bps),
            ("fabric", self.fabric_bps.unwrap_or(u64::MAX)),
        ];
        match rates.iter().find(|(_, rate)| *rate == 0) {
            Some((name, _)) => Err(ModelError::NoRate((*name).to_owned())),
            None => Ok(()),
        }
    }

    /// A model of `nodes` such nodes, a rank per GPU. GPUs with a NIC at their own switch communicate with other nodes (rails).
    ///
    /// # Errors
    /// As [`Machine::check`].
    pub fn cluster(&self, nodes: usize) -> Result<Model, ModelError> {
        self.check()?;
        let mut model = Model::new(nodes * self.gpus);
        let mut ports = Vec::with_capacity(nodes);
        for node in 0..nodes {
            ports.push(Ports::new(&mut model, self, node)?);
        }
        self.join(&mut model, nodes, &|[here, nic], [there, other]| {
            let mut route = ports[here].way(nic, OUT);
            route.extend(ports[there].way(other, INTO).into_iter().rev());
            route
        })?;
        Ok(model)
    }

    /// Adds the hardware of `nodes` nodes of this kind to a model with one rank per GPU. `across` returns the edges of the
    /// network from one NIC to a NIC of another node; each NIC is given as [node, NIC]. These edges also have the delay α.
    ///
    /// # Errors
    /// As [`Machine::check`]; or the model has another number of ranks.
    pub fn join(
        &self,
        model: &mut Model,
        nodes: usize,
        across: &dyn Fn([usize; 2], [usize; 2]) -> Vec<EdgeId>,
    ) -> Result<(), ModelError> {
        self.check()?;
        let mut built = Vec::with_capacity(nodes);
        for node in 0..nodes {
            built.push(Node::new(model, self, node)?);
        }
        for (here, node) in built.iter().enumerate() {
            for (there, other) in built.iter().enumerate() {
                for from in 0..self.gpus {
                    for to in 0..self.gpus {
                        let route = match here == there {
                            true if from == to => continue,
                            true => node.inside(self, from, to),
                            false => {
                                let nics = [[here, self.nic_of(from)], [there, self.nic_of(to)]];
                                let mut route = node.out(self, from);
                                route.extend(across(nics[0], nics[1]));
                                route.extend(other.into(self, to));
                                route
                            }
                        };
                        let [from, to] =
                            [(here, from), (there, to)].map(|(node, gpu)| node * self.gpus + gpu);
                        model.set_route(from, to, route)?;
                    }
                }
            }
            if let Some(memory) = node.memory {
                for gpu in 0..self.gpus {
                    model.set_memory(here * self.gpus + gpu, memory)?;
                }
            }
        }
        model.hierarchy = self.hierarchy(nodes);
        Ok(())
    }

    fn hierarchy(&self, nodes: usize) -> Option<Hierarchy> {
        let mut gpus = self.near_gpus();
        let rails = gpus.len();
        let far = (0..self.gpus).filter(|gpu| !gpus.contains(gpu));
        let far: Vec<usize> = far.collect();
        gpus.extend(far);
        let node = |node: usize| gpus.iter().map(|gpu| node * self.gpus + gpu).collect();
        Hierarchy::with_rails((0..nodes).map(node).collect(), rails).ok()
    }
}

/// The two edges of a link: `OUT` of the node, and `INTO` it.
type Duplex = [EdgeId; 2];
const OUT: usize = 0;
const INTO: usize = 1;

/// Adds `count` links to a node of the model; each link is two edges, one per direction.
fn edges(
    model: &mut Model,
    node: usize,
    count: usize,
    name: &str,
    (rate_bps, delay_ns): (u64, u64),
) -> Result<Vec<Duplex>, ModelError> {
    let mut all = Vec::with_capacity(count);
    for i in 0..count {
        let name = format!("node {node} {name} {i}");
        let out = model.add_edge(&format!("{name} out"), rate_bps, delay_ns)?;
        all.push([out, model.add_edge(&format!("{name} in"), rate_bps, 0)?]);
    }
    Ok(all)
}

/// Edges of a node's NIC ports, and of its port at the network fabric if the fabric may block there.
struct Ports {
    nics: Vec<Duplex>,
    fabric: Option<Duplex>,
}

impl Ports {
    fn new(model: &mut Model, machine: &Machine, node: usize) -> Result<Self, ModelError> {
        let of_nics = (machine.nic_bps, machine.across_ns);
        Ok(Self {
            nics: edges(model, node, machine.nics, "NIC", of_nics)?,
            fabric: match machine.fabric_bps {
                Some(rate_bps) => edges(model, node, 1, "fabric", (rate_bps, 0))?.pop(),
                None => None,
            },
        })
    }

    /// Edges that a message passes between a NIC and the fabric in one direction: the NIC's edge, then the fabric's, if any.
    fn way(&self, nic: usize, direction: usize) -> Vec<EdgeId> {
        let mut way = vec![self.nics[nic][direction]];
        way.extend(self.fabric.map(|fabric| fabric[direction]));
        way
    }
}

struct Node {
    /// Edges of each GPU's NVLink port; empty without NVLink.
    ports: Vec<Duplex>,
    slots: Vec<Duplex>,
    uplinks: Vec<Duplex>,
    nic_slots: Vec<Duplex>,
    memory: Option<EdgeId>,
    /// Edge that stands for the delay α of messages inside the node, without NVLink; its rate is unlimited.
    wire: EdgeId,
}

impl Node {
    fn new(model: &mut Model, machine: &Machine, node: usize) -> Result<Self, ModelError> {
        let (ports, port_bps) = match machine.inside {
            Inside::NvLink { port_bps } => (machine.gpus, port_bps),
            Inside::Pcie | Inside::Memory { .. } => (0, u64::MAX),
        };
        let with_pcie = usize::from(!matches!(machine.inside, Inside::Memory { .. }));
        let mut some = |count: usize, name: &str, rate_bps: u64, delay_ns: u64| {
            edges(model, node, count, name, (rate_bps, delay_ns))
        };
        let [slots, uplinks, nic_slots] =
            [machine.gpus, machine.switches, machine.nics].map(|count| count * with_pcie);
        let built = Self {
            ports: some(ports, "NVLink of GPU", port_bps, machine.inside_ns)?,
            slots: some(slots, "PCIe of GPU", machine.gpu_slot_bps, 0)?,
            uplinks: some(uplinks, "uplink of PCIe switch", machine.uplink_bps, 0)?,
            nic_slots: some(nic_slots, "PCIe of NIC", machine.nic_slot_bps, 0)?,
            memory: None,
            wire: model.add_edge(&format!("node {node} wire"), u64::MAX, machine.inside_ns)?,
        };
        let memory = match machine.inside {
            Inside::Memory { copy_bps } => {
                Some(model.add_edge(&format!("node {node} memory"), copy_bps, 0)?)
            }
            _ => None,
        };
        Ok(Self { memory, ..built })
    }

    /// Edges that a message passes from one GPU of the node to another.
    fn inside(&self, machine: &Machine, from: usize, to: usize) -> Vec<EdgeId> {
        match (machine.inside, self.memory) {
            (Inside::NvLink { .. }, _) => vec![self.ports[from][OUT], self.ports[to][INTO]],
            (_, Some(memory)) => vec![self.wire, memory],
            _ => {
                let mut route = vec![self.wire, self.slots[from][OUT]];
                let switches = [from, to].map(|gpu| machine.switch_of_gpu(gpu));
                route.extend(self.between(switches));
                route.push(self.slots[to][INTO]);
                route
            }
        }
    }

    /// Edges that a message passes from a GPU to its NIC.
    fn out(&self, machine: &Machine, gpu: usize) -> Vec<EdgeId> {
        let nic = machine.nic_of(gpu);
        let mut route = Vec::new();
        if self.memory.is_none() {
            route.push(self.slots[gpu][OUT]);
            let switches = [machine.switch_of_gpu(gpu), machine.switch_of_nic(nic)];
            route.extend(self.between(switches));
            route.push(self.nic_slots[nic][OUT]);
        }
        route
    }

    /// Edges that a message passes from a GPU's NIC to the GPU.
    fn into(&self, machine: &Machine, gpu: usize) -> Vec<EdgeId> {
        let nic = machine.nic_of(gpu);
        let mut route = Vec::new();
        if self.memory.is_none() {
            route.push(self.nic_slots[nic][INTO]);
            let switches = [machine.switch_of_nic(nic), machine.switch_of_gpu(gpu)];
            route.extend(self.between(switches));
            route.push(self.slots[gpu][INTO]);
        }
        route
    }

    /// Edges that a message passes from one PCIe switch to another.
    fn between(&self, [from, to]: [usize; 2]) -> Vec<EdgeId> {
        if from == to {
            return Vec::new();
        }
        vec![self.uplinks[from][OUT], self.uplinks[to][INTO]]
    }
}
