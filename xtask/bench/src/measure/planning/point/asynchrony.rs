//! Simulates GOAT, ATP, ESA and Geryon with workers out of step: the bytes that the server receives in a round, and the time.
//!
//! The set-up follows from the measurements of GOAT's paper (IWQoS 2023). With 16 workers Geryon's server
//! receives 704 MB, so a gradient has 44 MB; that takes 1.95 s, so links have 2.89 Gbit/s. The images per
//! second of GOAT and Geryon give 1.23 s of computing and 1,477 images in a round of all workers. With these
//! values, ATP's 1.64 s and ESA's 1.34 s give 515 and 575 images per second; the paper prints 512 and 585. Our
//! network has four leaves of four workers and two spines; all switches together hold one gradient.
//!
//! A worker finishes computing after a normally distributed time, and then sends its gradient in fragments
//! at its link's rate. The server receives one fragment after another. The model leaves out other links,
//! delays, and a protocol's handling of loss and order, since it compares only how much the switches sum.

use anyhow::{Context, Result};
use planner::Network;
use planner::gradient::fragments::{Collision, Passed, Send, by_slots, planned};
use planner::gradient::{Job, Plan, Server, goat};
use planner::network::Switch;
use planner::network::generate::{LeafSpine, Parts, Uplinks};
use planner::routing::{Costs, Routing};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};
use serde_json::{Value, json};

const WORKERS: usize = 16;
const GRADIENT_BYTES: u64 = 44_000_000;
const LINK_BPS: u64 = 2_890_000_000;
const COMPUTE_S: f64 = 1.23;
const IMAGES: f64 = 1_477.0;
/// Number of fragments into which a gradient is divided.
const FRAGMENTS: usize = 48;
/// Number of fragments that each of the six switches holds at a time.
const SLOTS: usize = FRAGMENTS / 4;
/// Standard deviations of computing times, in thousandths of the mean.
const OUT_OF_STEP: [u32; 6] = [0, 10, 20, 50, 100, 200];
/// Numbers of workers, the fastest, that GOAT waits for in a round.
const FASTEST: [usize; 3] = [16, 14, 12];

/// Means of all figures over `rounds` rounds; a round's number is its seed.
pub fn run(rounds: u32) -> Result<Value> {
    let (network, job) = network()?;
    let fragment = GRADIENT_BYTES / FRAGMENTS as u64;
    let costs = goat::links(&network);
    let gradient = goat::Gradient {
        sub_models: &[fragment; FRAGMENTS],
        costs: &costs,
    };
    let plan = goat::plan(&network, &job, &gradient, 1)?;
    let mut found = Vec::new();
    for thousandths in OUT_OF_STEP {
        let mut means = Means::default();
        for round in 0..u64::from(rounds) {
            let sends = FragmentSchedule::draw(f64::from(thousandths) / 1e3, round);
            for (name, planned) in schemes(&network, &job, &plan, &sends)? {
                means.add(name, &network, planned);
            }
        }
        found.push(json!({
            "out_of_step": f64::from(thousandths) / 1e3,
            "schemes": means.json(rounds),
        }));
    }
    Ok(Value::Array(found))
}

struct RoundResult {
    passed: Passed,
    end_s: f64,
    /// Number of workers whose gradients the round waited for.
    workers: usize,
}

fn schemes(
    network: &Network,
    job: &Job,
    plan: &Plan,
    sends: &FragmentSchedule,
) -> Result<Vec<(String, RoundResult)>> {
    let routing = Routing::new(network, Costs::hops(network));
    let mut results = Vec::new();
    for (name, slots, collision) in [
        ("Geryon", 0, Collision::Passes),
        ("ATP", SLOTS, Collision::Passes),
        ("ESA", SLOTS, Collision::Evicts),
    ] {
        let passed = by_slots(
            network,
            job,
            &routing,
            (&|_| slots, collision),
            &sends.order,
        )?;
        let end_s = sends.end_s(&passed);
        results.push((
            name.to_owned(),
            RoundResult {
                passed,
                end_s,
                workers: WORKERS,
            },
        ));
    }
    for fastest in FASTEST {
        let first = sends.for_fastest(fastest);
        let mut plan = plan.clone();
        for part in &mut plan.parts {
            part.members.retain(|member| first.waits_for[member.worker]);
        }
        let passed = planned(&plan, &first.order);
        let end_s = first.end_s(&passed);
        let name = format!("GOAT, the first {fastest}");
        results.push((
            name,
            RoundResult {
                passed,
                end_s,
                workers: fastest,
            },
        ));
    }
    Ok(results)
}

/// Fragments of a round in the order in which workers send them.
struct FragmentSchedule {
    order: Vec<Send>,
    /// For each fragment, the end of its transmission, in seconds from the start of the round.
    at_s: Vec<f64>,
    /// For each worker, the end of its computing, in seconds from the start of the round.
    ready_s: Vec<f64>,
    /// For each worker, whether the round waits for its gradient.
    waits_for: Vec<bool>,
}

impl FragmentSchedule {
    fn draw(out_of_step: f64, round: u64) -> FragmentSchedule {
        let mut random = ChaCha12Rng::seed_from_u64(round);
        // The sum of twelve uniform numbers is nearly normal.
        let mut normal = || {
            let unit = || random.next_u32() as f64 / f64::from(u32::MAX);
            std::iter::repeat_with(unit).take(12).sum::<f64>() - 6.0
        };
        let ready = (0..WORKERS).map(|_| (COMPUTE_S * (1.0 + out_of_step * normal())).max(0.0));
        FragmentSchedule::new(ready.collect(), vec![true; WORKERS])
    }

    fn new(ready_s: Vec<f64>, waits_for: Vec<bool>) -> FragmentSchedule {
        let workers = (0..WORKERS).filter(|worker| waits_for[*worker]);
        let all = workers.flat_map(|worker| {
            let ready_s = ready_s[worker];
            (0..FRAGMENTS).map(move |piece| {
                let out_s = ready_s + (piece + 1) as f64 * fragment_s();
                (out_s, Send { worker, piece })
            })
        });
        let mut all: Vec<(f64, Send)> = all.collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.worker.cmp(&b.1.worker)));
        let (at_s, order) = all.into_iter().unzip();
        FragmentSchedule {
            order,
            at_s,
            ready_s,
            waits_for,
        }
    }

    fn for_fastest(&self, fastest: usize) -> FragmentSchedule {
        let mut workers: Vec<usize> = (0..WORKERS).collect();
        workers.sort_by(|a, b| self.ready_s[*a].total_cmp(&self.ready_s[*b]).then(a.cmp(b)));
        let mut waits_for = vec![false; WORKERS];
        for worker in &workers[..fastest] {
            waits_for[*worker] = true;
        }
        FragmentSchedule::new(self.ready_s.clone(), waits_for)
    }

    /// Time in seconds at which the server has received all fragments, one after another.
    fn end_s(&self, passed: &Passed) -> f64 {
        let last_s = self.at_s.last().copied().unwrap_or(0.0);
        let comes = passed.brought_by.iter();
        let comes = comes.map(|by| self.at_s.get(*by).copied().unwrap_or(last_s));
        comes.fold(0.0, |free_s: f64, at_s| free_s.max(at_s) + fragment_s())
    }
}

/// Time in seconds of a fragment on a link.
fn fragment_s() -> f64 {
    GRADIENT_BYTES as f64 * 8.0 / FRAGMENTS as f64 / LINK_BPS as f64
}

/// Mean figures of each aggregation scheme, in the order in which schemes are added.
#[derive(Default)]
struct Means(Vec<(String, [f64; 4])>);

impl Means {
    fn add(&mut self, name: String, network: &Network, result: RoundResult) {
        let fragment = GRADIENT_BYTES as f64 / FRAGMENTS as f64;
        let sums = match self.0.iter().position(|(other, _)| *other == name) {
            Some(place) => &mut self.0[place].1,
            None => {
                self.0.push((name, [0.0; 4]));
                let last = self.0.len() - 1;
                &mut self.0[last].1
            }
        };
        let images = IMAGES * result.workers as f64 / WORKERS as f64;
        let of_round = [
            result.passed.at_server as f64 * fragment,
            result.passed.between_switches(network) as f64 * fragment,
            result.end_s - COMPUTE_S,
            images / result.end_s,
        ];
        for (sum, value) in sums.iter_mut().zip(of_round) {
            *sum += value;
        }
    }

    fn json(&self, rounds: u32) -> Value {
        let schemes = self.0.iter().map(|(name, sums)| {
            let [received, links, communication_s, images] =
                sums.map(|sum| sum / f64::from(rounds));
            json!({
                "name": name,
                "received_bytes": received,
                "bytes_between_switches": links,
                "communication_s": communication_s,
                "images_a_second": images,
            })
        });
        Value::Array(schemes.collect())
    }
}

/// Network of four leaves with four workers each and a job of all workers; the server is on the last leaf.
fn network() -> Result<(Network, Job)> {
    let holds = Switch {
        programmable: true,
        memory_bytes: Some(GRADIENT_BYTES / FRAGMENTS as u64 * SLOTS as u64),
        ..Switch::default()
    };
    let network = LeafSpine {
        leaves: 4,
        spines: 2,
        hosts_per_leaf: 5,
        host_rate_bps: LINK_BPS,
        uplinks: Uplinks::Rate(LINK_BPS),
        parts: Parts {
            switch: holds,
            ..Parts::default()
        },
    };
    let network = network.build()?;
    let hosts: Vec<_> = network.hosts().collect();
    let workers = hosts.chunks(5).flat_map(|of_leaf| &of_leaf[..4]).copied();
    let job = Job {
        name: "training".to_owned(),
        workers: workers.collect(),
        servers: vec![Server::on(*hosts.last().context("there are hosts")?)],
    };
    Ok((network, job))
}
