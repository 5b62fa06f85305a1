//! Large sample problems for measurements: tenants with ten flows each on a fat tree, usually 100 tenants on 80 switches.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::problem::{
    Charge, Choice, DEFAULT_SHARE_PPM, InjectionSwitch, Problem, SwitchId, SwitchResource,
};

/// Size of a sample problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Number of ports of each switch of the fat tree: even, at least 4.
    pub ports: usize,
    /// Number of tenants with ten flows each.
    pub tenants: usize,
}

/// The usual size: 100 tenants with 1,000 flows on 80 switches.
const USUAL: Scale = Scale {
    ports: 8,
    tenants: 100,
};

const FLOWS_OF_TENANT: usize = 10;
/// One in this many tenants, drawn by seed, has a second fault.
const SECOND: usize = 10;
/// Number of a tenant's flows that meet both of its two faults.
const FLOWS_OF_SECOND: usize = 3;

/// Resources of a switch and their capacities: thousandths of a Tofino 2, number of table entries, and recirculation in Mbit/s.
const RESOURCES: [(&str, u64); 5] = [
    ("thousandths of TCAM", 1_000),
    ("thousandths of SRAM", 1_000),
    ("thousandths of stateful ALUs", 1_000),
    ("table entries", 4_096),
    ("Mbit/s of recirculation", 100_000),
];
/// Amounts that one fault takes of a Tofino 2, by resource index (docs/tofino.md, the average over eight).
const FAULT: [(usize, u64); 3] = [(0, 13), (1, 11), (2, 20)];
const ENTRIES: usize = 3;
const RECIRCULATION: usize = 4;

/// A sample problem of the usual size. Each tenant has a server, three or four of them below a switch, and ten flows to it from
/// other hosts, half in the server's pod. One fault acts on all of its flows; every tenth tenant has a second fault on three
/// flows, behind the first. One fault in ten waits for a trigger, so that all its flows are met at one switch; one in ten keeps
/// no state, and may be spread over the switches of a layer; one in three delays. Some flows of neighboring tenants overlap.
/// All resources have a share of 0.10.
#[must_use]
pub fn sample(seed: u64) -> Problem {
    sample_of(USUAL, seed)
}

/// A sample problem of another size.
#[must_use]
pub fn sample_of(scale: Scale, seed: u64) -> Problem {
    let mut sample = Sample {
        problem: Problem {
            resources: resources(),
            switches: scale.switches(),
            ..Problem::default()
        },
        scale,
        random: ChaCha12Rng::seed_from_u64(seed),
    };
    let mut last = Vec::new();
    for tenant in 0..scale.tenants {
        let own = sample.tenant(tenant);
        for _ in 0..2 {
            let any = |sample: &mut Sample, of: &[usize]| match of.len() {
                0 => None,
                len => Some(of[sample.below(len)]),
            };
            if let (Some(a), Some(b)) = (any(&mut sample, &last), any(&mut sample, &own)) {
                sample.problem.clashes.push((a, b));
            }
        }
        last = own;
    }
    sample.problem
}

struct Sample {
    problem: Problem,
    scale: Scale,
    random: ChaCha12Rng,
}

impl Sample {
    fn below(&mut self, end: usize) -> usize {
        self.random.next_u32() as usize % end
    }

    /// Adds a tenant's choices. Returns those with which other tenants' choices may clash: of faults not tied to one switch.
    fn tenant(&mut self, tenant: usize) -> Vec<usize> {
        let (scale, half) = (self.scale, self.scale.half());
        let hosts = scale.ports * half * half;
        // Tenants' hosts are spread.
        let server = tenant * half % hosts + self.below(half);
        let paths: Vec<Vec<usize>> = (0..FLOWS_OF_TENANT)
            .map(|_| {
                let pod = half * half;
                let client = match self.below(2) {
                    0 => server / pod * pod + self.below(pod),
                    _ => self.below(hosts),
                };
                // A flow below one switch has no choice, so it is moved.
                let client = match client / half == server / half {
                    true => (client + half) % hosts,
                    false => client,
                };
                let paths = scale.paths(client / half, server / half);
                let first = self.problem.paths.len();
                self.problem.paths.extend(paths);
                (first..self.problem.paths.len()).collect()
            })
            .collect();
        let flows: Vec<usize> = (0..FLOWS_OF_TENANT)
            .map(|_| {
                let entries = 1 + self.below(3) as u64;
                self.charge(vec![(ENTRIES, entries)])
            })
            .collect();
        let mut free = Vec::new();
        let mut first = Vec::new();
        let faults = 1 + usize::from(self.below(SECOND) == 0);
        for fault in 0..faults {
            let unit = self.charge(FAULT.to_vec());
            let kind = self.below(10);
            let delays = self.below(3) == 0;
            let count = match fault {
                0 => FLOWS_OF_TENANT,
                _ => FLOWS_OF_SECOND,
            };
            let mut own = Vec::new();
            for flow in 0..count {
                let mut charges = vec![unit, flows[flow]];
                if delays {
                    // 1 Mbit/s, held for some tenths of a millisecond by loops of a microsecond.
                    let mbps = 100 * (1 + self.below(3) as u64);
                    charges.push(self.charge(vec![(RECIRCULATION, mbps)]));
                }
                own.push(self.problem.choices.len());
                self.problem.choices.push(Choice {
                    name: format!("tenant {tenant}, fault {fault}, flow {flow}"),
                    paths: paths[flow].clone(),
                    spreads: kind == 1 && !delays,
                    only: None,
                    pin: None,
                    leaving: false,
                    weight: 1,
                    charges,
                });
            }
            let before = first.iter().zip(&own).map(|(a, b)| (*a, *b));
            self.problem.orders.extend(before);
            match kind {
                0 => self.problem.ties.push(own.clone()),
                _ => free.extend(&own),
            }
            first = own;
        }
        free
    }

    fn charge(&mut self, cost: Vec<(usize, u64)>) -> usize {
        self.problem.charges.push(Charge { cost });
        self.problem.charges.len() - 1
    }
}

fn resources() -> Vec<SwitchResource> {
    let of = |(name, _): &(&str, u64)| SwitchResource {
        name: (*name).to_owned(),
        binds: true,
        share_ppm: Some(DEFAULT_SHARE_PPM),
    };
    RESOURCES.iter().map(of).collect()
}

impl Scale {
    fn half(self) -> usize {
        self.ports / 2
    }

    /// The fat tree's switches: first edge, then aggregation switches, by pod; then the core.
    fn switches(self) -> Vec<InjectionSwitch> {
        let of = |name: String| InjectionSwitch {
            name,
            capacity: RESOURCES.iter().map(|(_, capacity)| *capacity).collect(),
            used: vec![0; RESOURCES.len()],
            opening: vec![0; RESOURCES.len()],
        };
        let layer = |name: &'static str, count: usize| {
            (0..count).map(move |number| of(format!("{name}{number}")))
        };
        let (half, ports) = (self.half(), self.ports);
        layer("edge", ports * half)
            .chain(layer("aggregation", ports * half))
            .chain(layer("core", half * half))
            .collect()
    }

    /// All shortest paths between two edge switches of the fat tree.
    fn paths(self, from: SwitchId, to: SwitchId) -> Vec<Vec<SwitchId>> {
        let (half, ports) = (self.half(), self.ports);
        let aggregation = |edge: usize, nth: usize| ports * half + edge / half * half + nth;
        if from == to {
            return vec![vec![from]];
        }
        if from / half == to / half {
            let by = |nth| vec![from, aggregation(from, nth), to];
            return (0..half).map(by).collect();
        }
        let core = |nth: usize, of: usize| 2 * ports * half + nth * half + of;
        let by = |nth: usize| {
            (0..half).map(move |of| {
                let (up, down) = (aggregation(from, nth), aggregation(to, nth));
                vec![from, up, core(nth, of), down, to]
            })
        };
        (0..half).flat_map(by).collect()
    }
}
