//! Exact program of InArt's second phase: the numbers of workers by group, node and path, and the paths of sums, are integers.
//!
//! Given the shares, a rate f exceeds no capacity if each resource's load per bit of every worker is at most its spare rate
//! over f. So with z = 1/f all rows are linear, and z is minimized. Workers of a group are alike and are counted. Only nodes
//! and paths that the search considers are variables; [`super::relax`] bounds all others.

use super::search::Search;
use super::ways::Ways;
use crate::solve::{Cmp, Limits, Model, Sense, Var, milp};

/// Maximum number of variables of a program that is solved.
pub const MOST_VARIABLES: usize = 6_000;

pub(super) struct Proved<'w> {
    /// Best placement of streams that was found.
    pub search: Search<'w>,
    /// Upper bound of the rate in bit/s, over all choices among these nodes and paths.
    pub bound: f64,
    pub nodes: usize,
}

/// Improves a known placement by a search of at most `nodes` nodes; `None` if the program is too large or unsolved.
pub(super) fn prove<'w>(
    ways: &'w Ways<'w>,
    known: &Search<'w>,
    shares: &[f64],
    nodes: usize,
) -> Option<Proved<'w>> {
    let rate = known.rate(shares);
    if rate <= 0.0 || !rate.is_finite() {
        return None;
    }
    let program = Program::new(ways, shares, rate)?;
    let limits = Limits {
        nodes,
        ..Limits::default()
    };
    let answer = milp(&program.model, &limits, Some(&program.values(ways, known))).ok()?;
    let found = program.read(ways, shares, &answer.values);
    let is_better = found.rate(shares) > rate;
    Some(Proved {
        search: if is_better { found } else { known.clone() },
        bound: rate / answer.bound,
        nodes: answer.nodes,
    })
}

struct Program {
    model: Model,
    /// Variable for the ratio of the known placement's rate to the wanted placement's rate.
    slowness: Var,
    /// By server, group of workers, target (node that sums) and path: variable for the number of workers on that path.
    counts: Vec<Vec<Vec<Vec<Var>>>>,
    /// By server, switch and path: the variable for whether the switch's sum takes that path to the server.
    ups: Vec<Vec<Vec<Var>>>,
}

impl Program {
    fn new(ways: &Ways<'_>, shares: &[f64], rate: f64) -> Option<Program> {
        let mut size = vec![0_usize; ways.starts.len()];
        for group in &ways.group {
            size[*group] += 1;
        }
        let mut model = Model::new(Sense::Minimize);
        // The known choice has 1, so the optimum is at most 1.
        let slowness = model.variable(0.0, 1.0, 1.0);
        let mut loads: Vec<Vec<(Var, f64)>> = vec![Vec::new(); ways.spare.len()];
        let mut counts = Vec::new();
        let mut ups = Vec::new();
        for (server, share) in shares.iter().enumerate() {
            let of_sites: Vec<Vec<Var>> = (ways.ups[server].iter())
                .map(|ways| ways.iter().map(|_| model.binary(0.0)).collect())
                .collect();
            for (up, ways) in of_sites.iter().zip(&ways.ups[server]) {
                model.constrain(up.iter().map(|up| (*up, 1.0)), Cmp::Le, 1.0);
                for (up, way) in up.iter().zip(ways) {
                    for place in &way.takes {
                        loads[*place as usize].push((*up, *share));
                    }
                }
            }
            let mut of_groups = Vec::new();
            for (group, targets) in ways.targets[server].iter().enumerate() {
                let most = size[group] as f64;
                let mut of_targets = Vec::new();
                for target in targets {
                    let of_ways: Vec<Var> = (target.ways.iter())
                        .map(|_| model.integer(0.0, most, 0.0))
                        .collect();
                    for (count, way) in of_ways.iter().zip(&target.ways) {
                        for place in &way.takes {
                            loads[*place as usize].push((*count, *share));
                        }
                    }
                    if let Some(site) = target.site {
                        let open = of_sites[site].iter().map(|up| (*up, -most));
                        let terms = of_ways.iter().map(|count| (*count, 1.0)).chain(open);
                        model.constrain(terms, Cmp::Le, 0.0);
                    }
                    of_targets.push(of_ways);
                }
                let all = of_targets.iter().flatten().map(|count| (*count, 1.0));
                model.constrain(all, Cmp::Eq, most);
                of_groups.push(of_targets);
            }
            counts.push(of_groups);
            ups.push(of_sites);
        }
        if model.variables() > MOST_VARIABLES {
            return None;
        }
        // A host's only link carries its whole gradient, whatever its target.
        let mut least = 0.0_f64;
        for (_, place) in ways.first.iter().flatten() {
            let place = *place as usize;
            least = least.max(rate * shares.iter().sum::<f64>() / ways.spare[place]);
        }
        model.bound(slowness, least.min(1.0), 1.0);
        for (mut terms, spare) in loads.into_iter().zip(&ways.spare) {
            if !terms.is_empty() {
                terms.push((slowness, -spare / rate));
                model.constrain(terms, Cmp::Le, 0.0);
            }
        }
        Some(Program {
            model,
            slowness,
            counts,
            ups,
        })
    }

    fn values(&self, ways: &Ways<'_>, search: &Search<'_>) -> Vec<f64> {
        let mut values = vec![0.0; self.model.variables()];
        values[self.slowness.index()] = 1.0;
        for (server, counts) in self.counts.iter().enumerate() {
            for (worker, group) in ways.group.iter().enumerate() {
                let (target, way) = search.at(server, worker);
                values[counts[*group][target][way].index()] += 1.0;
            }
            for (site, ups) in self.ups[server].iter().enumerate() {
                if let Some(way) = search.up(server, site) {
                    values[ups[way].index()] = 1.0;
                }
            }
        }
        values
    }

    fn read<'w>(&self, ways: &'w Ways<'w>, shares: &[f64], values: &[f64]) -> Search<'w> {
        let value = |var: &Var| values[var.index()].round() as usize;
        let at = self.counts.iter().map(|of_groups| {
            let mut left: Vec<Vec<(usize, usize)>> = (of_groups.iter())
                .map(|targets| {
                    let all = targets.iter().enumerate();
                    let all = all.flat_map(|(target, ways)| {
                        let ways = ways.iter().enumerate();
                        ways.flat_map(move |(way, count)| {
                            std::iter::repeat_n((target, way), value(count))
                        })
                    });
                    all.collect()
                })
                .collect();
            let workers = ways.group.iter();
            // A group has as many choices as workers.
            workers
                .map(|group| left[*group].pop().unwrap_or((0, 0)))
                .collect()
        });
        let at: Vec<Vec<(usize, usize)>> = at.collect();
        let up = |ways: &Vec<Var>| ways.iter().position(|up| value(up) == 1);
        let of_server = |sites: &Vec<Vec<Var>>| sites.iter().map(up).collect();
        let ups: Vec<Vec<Option<usize>>> = self.ups.iter().map(of_server).collect();
        Search::placed(ways, &at, &ups, shares)
    }
}
