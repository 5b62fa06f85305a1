//! Settings in which the simulator is compared with testbeds: chosen before any was run, and never for its result.

use std::fmt::Write;

/// Setting to measure and to simulate: a network, and the party that sums in it.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    pub shape: Shape,
    /// Number of workers or ranks.
    pub members: usize,
    /// Rate of hosts' links; in [`Shape::Grid`], of all links but the server's, whose rate is three times as high.
    pub rate_mbps: u32,
    /// One-way latency of each link, in microseconds.
    pub latency_us: u32,
    pub window: u32,
    pub work: Work,
    /// Share of updates (0 to 1) that switches drop, except switches that sum.
    pub loss: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// All hosts at one switch.
    Star,
    /// Leaf switches below one spine, with `hosts_per_leaf` workers on each, and another leaf for
    /// the server. Links to the spine have twice a host's rate.
    LeafSpine { hosts_per_leaf: usize },
    /// The network of GRID's example: eight workers at three switches that are linked to each other.
    Grid,
}

/// The work to simulate, and the party that sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// A training of this many rounds; the server sums.
    Direct(u32),
    /// A training of this many rounds; this switch sums.
    Summed(u32, &'static str),
    /// A training of this many rounds; three switches each sum a part of the gradient, by a plan.
    Planned(u32),
    /// An all-reduce without a server: this number of values, summed this many times.
    AllReduce(usize, u64),
}

const fn star(
    name: &'static str,
    members: usize,
    rate_mbps: u32,
    latency_us: u32,
    window: u32,
    work: Work,
) -> Setting {
    Setting {
        name,
        shape: Shape::Star,
        members,
        rate_mbps,
        latency_us,
        window,
        work,
        loss: 0.0,
    }
}

const fn over(setting: Setting, shape: Shape) -> Setting {
    Setting { shape, ..setting }
}

const fn losing(setting: Setting, loss: f64) -> Setting {
    Setting { loss, ..setting }
}

const fn leaves(hosts_per_leaf: usize) -> Shape {
    Shape::LeafSpine { hosts_per_leaf }
}

use Work::{AllReduce, Direct, Planned, Summed};

/// All settings. The model of a training has 50,110 parameters.
pub const SETTINGS: [Setting; 20] = [
    star("summed_2", 2, 5, 0, 64, Summed(20, "sw")),
    star("summed_4", 4, 20, 1_000, 64, Summed(40, "sw")),
    star("summed_8", 8, 10, 5_000, 128, Summed(20, "sw")),
    star("direct_8", 8, 20, 0, 16, Direct(8)),
    star("direct_2", 2, 50, 2_000, 32, Direct(40)),
    star("direct_4", 4, 100, 0, 64, Direct(40)),
    losing(star("lossy_4", 4, 10, 1_000, 64, Direct(10)), 0.01),
    losing(star("lossy_6", 6, 40, 0, 32, Direct(20)), 0.001),
    over(
        star("spine_4", 4, 10, 1_000, 64, Summed(15, "spine0")),
        leaves(2),
    ),
    over(star("spine_direct_6", 6, 10, 500, 64, Direct(6)), leaves(3)),
    losing(
        over(
            star("spine_lossy_8", 8, 20, 0, 64, Summed(20, "spine0")),
            leaves(4),
        ),
        0.005,
    ),
    over(
        star("leaf_4", 4, 25, 2_000, 32, Summed(20, "leaf0")),
        leaves(4),
    ),
    over(star("grid_5", 8, 5, 0, 64, Planned(10)), Shape::Grid),
    over(star("grid_20", 8, 20, 1_000, 64, Planned(20)), Shape::Grid),
    over(star("grid_direct", 8, 10, 0, 64, Direct(8)), Shape::Grid),
    over(star("grid_30", 8, 30, 5_000, 16, Planned(20)), Shape::Grid),
    star("reduce_2", 2, 50, 1_000, 256, AllReduce(1_000_000, 3)),
    star("reduce_8", 8, 20, 0, 256, AllReduce(500_000, 5)),
    over(
        star("reduce_tree_4", 4, 10, 2_000, 64, AllReduce(200_000, 8)),
        leaves(2),
    ),
    star("reduce_4", 4, 100, 200, 64, AllReduce(100_000, 40)),
];

impl Setting {
    /// Host name of a training's server.
    pub const SERVER: &str = "ps";

    pub fn workers(&self) -> Vec<String> {
        (1..=self.members)
            .map(|worker| format!("w{worker}"))
            .collect()
    }

    /// The setting's scenario for `weir run` and `weir simulate`. `rank` is the command that runs an all-reduce's ranks.
    pub fn scenario(&self, rank: &str) -> String {
        let mut text = format!("weir: 1\nname: {}\nseed: 16\n", self.name.replace('_', "-"));
        self.write_topology(&mut text);
        let workers = self.workers().join(", ");
        let (server, window) = (Setting::SERVER, self.window);
        let training = |text: &mut String, rounds: u32, more: &str| {
            let _ = write!(
                text,
                "workload:\n  training: {{server: {server}, workers: [{workers}], iterations: {rounds}, window: {window}{more}}}\n"
            );
        };
        match self.work {
            Direct(rounds) => training(&mut text, rounds, ""),
            Summed(rounds, on) => training(&mut text, rounds, &format!(", aggregate_on: {on}")),
            Planned(rounds) => {
                text += "plan: {by: grid}\n";
                training(&mut text, rounds, "");
            }
            AllReduce(..) => self.write_ranks(&mut text, rank),
        }
        if self.loss > 0.0 {
            self.write_losses(&mut text);
        }
        text += "limits: {time: 300s}\n";
        text
    }

    fn write_topology(&self, text: &mut String) {
        let (rate, latency) = (self.rate_mbps, self.latency_us);
        let workers = self.workers();
        let switches: Vec<String> = match self.shape {
            Shape::Star => vec!["sw".to_owned()],
            Shape::LeafSpine { hosts_per_leaf } => {
                let leaves = 0..=self.leaves(hosts_per_leaf);
                let leaves = leaves.map(|leaf| format!("leaf{leaf}"));
                std::iter::once("spine0".to_owned()).chain(leaves).collect()
            }
            Shape::Grid => {
                let switch =
                    |n: u32| format!("{{name: s{n}, throughput: {}Mbit/s}}", 3 * self.rate_mbps);
                (1..=3).map(switch).collect()
            }
        };
        let _ = write!(
            text,
            "topology:\n  switches: [{}]\n  hosts: [{}, {}]\n  links:\n",
            switches.join(", "),
            workers.join(", "),
            Setting::SERVER
        );
        let mut link = |a: &str, b: &str, rate: u32| {
            let _ = writeln!(
                text,
                "    - {{ends: [{a}, {b}], rate: {rate}Mbit/s, latency: {latency}us}}"
            );
        };
        for (number, worker) in workers.iter().enumerate() {
            link(worker, &self.switch_of(number), rate);
        }
        match self.shape {
            Shape::Star => link(Setting::SERVER, "sw", rate),
            Shape::LeafSpine { hosts_per_leaf } => {
                let last = format!("leaf{}", self.leaves(hosts_per_leaf));
                link(Setting::SERVER, &last, rate);
                for leaf in &switches[1..] {
                    link(leaf, "spine0", 2 * rate);
                }
            }
            Shape::Grid => {
                for [a, b] in [["s1", "s2"], ["s1", "s3"], ["s2", "s3"]] {
                    link(a, b, rate);
                }
                link(Setting::SERVER, "s3", 3 * rate);
            }
        }
    }

    /// Number of leaf switches with workers.
    fn leaves(&self, hosts_per_leaf: usize) -> usize {
        self.members.div_ceil(hosts_per_leaf)
    }

    /// Name of the switch of a worker.
    fn switch_of(&self, number: usize) -> String {
        match self.shape {
            Shape::Star => "sw".to_owned(),
            Shape::LeafSpine { hosts_per_leaf } => {
                format!("leaf{}", number / hosts_per_leaf)
            }
            Shape::Grid => match number {
                0..4 => "s1".to_owned(),
                4 | 5 => "s2".to_owned(),
                _ => "s3".to_owned(),
            },
        }
    }

    /// Writes a fault on updates for each switch with workers, at that switch: no fault can be proved at a switch that sums.
    fn write_losses(&self, text: &mut String) {
        let (workers, server, loss) = (self.workers(), Setting::SERVER, self.loss);
        let mut switches: Vec<String> = (0..self.members).map(|n| self.switch_of(n)).collect();
        switches.dedup();
        let of = |switch: &str| {
            let numbered = workers.iter().enumerate();
            let there = numbered.filter(|(number, _)| self.switch_of(*number) == switch);
            let names: Vec<&str> = there.map(|(_, name)| name.as_str()).collect();
            names.join(", ")
        };
        *text += "lease: off\nflows:\n";
        for switch in &switches {
            let from = of(switch);
            let _ = writeln!(
                text,
                "  of-{switch}: {{from: [{from}], to: {server}, filter: agg.kind == 1}}"
            );
        }
        *text += "faults:\n";
        for switch in &switches {
            let _ = writeln!(
                text,
                "  - {{id: at-{switch}, flows: of-{switch}, where: {switch}, effect: drop, select: {{probability: {loss}}}}}"
            );
        }
    }

    fn write_ranks(&self, text: &mut String, rank: &str) {
        let workers = self.workers().join(", ");
        let on = match self.shape {
            Shape::LeafSpine { hosts_per_leaf } => {
                let leaves = 0..self.leaves(hosts_per_leaf);
                let leaves = leaves.map(|leaf| format!(", leaf{leaf}"));
                format!("spine0{}", leaves.collect::<String>())
            }
            _ => "sw".to_owned(),
        };
        let _ = write!(
            text,
            "jobs:\n  sums: {{ranks: [{workers}], on: [{on}], window: {}, values: 256}}\nworkload:\n  commands:\n",
            self.window
        );
        for worker in self.workers() {
            let _ = write!(
                text,
                "    - name: {worker}\n      host: {worker}\n      root: true\n      run: {rank}\n      \
                 metrics: {{begun: {{json: /begun_s}}, ended: {{json: /ended_s}}}}\n"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_settings_can_be_planned_and_have_names_of_their_own() {
        for (number, setting) in SETTINGS.iter().enumerate() {
            let text = setting.scenario("[rank]");
            let loaded = scenario::load("bench.yaml", &text);
            let scenario = loaded.unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
            let plan = scenario::plan(&scenario, &scenario::TargetModel::EMBEDDED);
            assert!(plan.is_ok(), "{text}\n{:?}", plan.err());
            let mut others = SETTINGS[..number].iter();
            assert!(others.all(|other| other.name != setting.name));
        }
    }
}
