//! Search over the switches that sum each sub-model: repairs exceeded memories, then makes moves as long as they save traffic.

use super::instance::GoatProblem;

/// Maximum number of moves in one search.
const MOVES: usize = 10_000;

/// The switches that sum each sub-model. After [`repaired`], no switch's memory is exceeded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OpenSites {
    /// Whether a switch sums a sub-model: by sub-model, then switch.
    pub open: Vec<Vec<bool>>,
}

impl OpenSites {
    /// Placement in which no switch sums, so that the server sums everything.
    pub fn closed(instance: &GoatProblem) -> OpenSites {
        OpenSites {
            open: vec![vec![false; instance.sites.len()]; instance.bytes.len()],
        }
    }

    /// Cost of all traffic: bytes times the costs of the links that they cross.
    pub fn cost(&self, instance: &GoatProblem) -> f64 {
        let costs = self.open.iter().zip(&instance.bytes);
        let costs = costs.map(|(open, bytes)| {
            let reach = Reach::new(instance, open);
            *bytes as f64 * reach.cost(instance, open) as f64
        });
        costs.sum()
    }

    /// Whether no switch holds more bytes of sums than its memory.
    pub fn is_within(&self, instance: &GoatProblem) -> bool {
        self.room(instance).iter().all(|room| *room >= 0)
    }

    /// Free bytes in each switch's memory; negative if it is exceeded.
    fn room(&self, instance: &GoatProblem) -> Vec<i128> {
        let sites = instance.sites.iter().enumerate();
        let room = sites.map(|(site, of)| {
            let held = self.open.iter().zip(&instance.bytes);
            let held = held.filter(|(open, _)| open[site]);
            i128::from(of.memory) - held.map(|(_, bytes)| i128::from(*bytes)).sum::<i128>()
        });
        room.collect()
    }
}

/// Cost of a byte from each worker group to the nearest and the second nearest node that sums a sub-model.
struct Reach {
    nearest: Vec<(u64, Option<usize>)>,
    second: Vec<u64>,
}

impl Reach {
    fn new(instance: &GoatProblem, open: &[bool]) -> Reach {
        let mut reach = Reach {
            nearest: Vec::with_capacity(instance.groups.len()),
            second: Vec::with_capacity(instance.groups.len()),
        };
        let sites: Vec<usize> = (0..open.len()).filter(|site| open[*site]).collect();
        for group in &instance.groups {
            let mut nearest = (group.direct, None);
            let mut second = group.direct;
            for &site in &sites {
                let to = group.to[site];
                if to < nearest.0 {
                    second = nearest.0;
                    nearest = (to, Some(site));
                } else {
                    second = second.min(to);
                }
            }
            reach.nearest.push(nearest);
            reach.second.push(second);
        }
        reach
    }

    /// Cost of a byte of the sub-model, from all workers to the server.
    fn cost(&self, instance: &GoatProblem, open: &[bool]) -> u64 {
        let groups = instance.groups.iter().zip(&self.nearest);
        let workers: u64 = groups.map(|(group, (to, _))| group.count() * to).sum();
        let sites = instance.sites.iter().zip(open).filter(|(_, open)| **open);
        workers + sites.map(|(site, _)| site.up).sum::<u64>()
    }

    /// Change of the cost of a byte if the switch `close` stops summing and the switch `open` starts (`None`: no switch does).
    fn change(&self, instance: &GoatProblem, close: Option<usize>, open: Option<usize>) -> i64 {
        let up = |site: Option<usize>| site.map_or(0, |site| instance.sites[site].up as i64);
        let mut change = up(open) - up(close);
        for (place, group) in instance.groups.iter().enumerate() {
            let (now, at) = self.nearest[place];
            let without = match close.is_some() && at == close {
                true => self.second[place],
                false => now,
            };
            let with = open.map_or(without, |site| without.min(group.to[site]));
            change += group.count() as i64 * (with as i64 - now as i64);
        }
        change
    }
}

/// Takes sub-models away from switches whose memory is exceeded, those first that save the least traffic per byte of memory.
pub(super) fn repaired(instance: &GoatProblem, picked: Vec<Vec<usize>>) -> OpenSites {
    let mut placement = OpenSites::closed(instance);
    for (open, picked) in placement.open.iter_mut().zip(picked) {
        for site in picked {
            open[site] = true;
        }
    }
    for (site, room) in placement.room(instance).into_iter().enumerate() {
        let mut room = room;
        while room < 0 {
            // Memory is freed by the byte, so the savings per byte decide.
            let holds = instance
                .sub_models()
                .filter(|g| placement.open[*g][site] && instance.bytes[*g] > 0);
            let least = holds.min_by_key(|g| {
                let reach = Reach::new(instance, &placement.open[*g]);
                reach.change(instance, Some(site), None)
            });
            let Some(g) = least else { break };
            placement.open[g][site] = false;
            room += i128::from(instance.bytes[g]);
        }
    }
    placement
}

/// A change of the switches that sum one sub-model.
#[derive(Debug, Clone, Copy)]
struct Move {
    g: usize,
    close: Option<usize>,
    open: Option<usize>,
    /// Another sub-model that the opened switch no longer sums, so that its memory suffices.
    evict: Option<usize>,
    /// Switch that sums the evicted sub-model instead.
    reopen: Option<usize>,
}

/// Makes the best move of each sub-model in turn, until no move saves traffic or the limit is reached.
pub(super) fn improved(instance: &GoatProblem, mut placement: OpenSites) -> OpenSites {
    let mut room = placement.room(instance);
    let mut reach: Vec<Reach> = placement
        .open
        .iter()
        .map(|open| Reach::new(instance, open))
        .collect();
    let mut idle = 0;
    let mut moves = 0;
    let count = instance.bytes.len();
    let mut g = 0;
    while idle < count && moves < MOVES {
        match best(instance, &placement, &room, &reach, g) {
            Some(made) => {
                apply(instance, &mut placement, &mut room, made);
                for changed in [Some(made.g), made.evict].into_iter().flatten() {
                    reach[changed] = Reach::new(instance, &placement.open[changed]);
                }
                idle = 0;
                moves += 1;
            }
            None => {
                idle += 1;
                g = (g + 1) % count;
            }
        }
    }
    placement
}

fn apply(instance: &GoatProblem, placement: &mut OpenSites, room: &mut [i128], made: Move) {
    let mut set = |g: usize, site: Option<usize>, open: bool| {
        let Some(site) = site else { return };
        placement.open[g][site] = open;
        let bytes = i128::from(instance.bytes[g]);
        room[site] += if open { -bytes } else { bytes };
    };
    set(made.g, made.close, false);
    if let Some(evicted) = made.evict {
        set(evicted, made.open, false);
        set(evicted, made.reopen, true);
    }
    set(made.g, made.open, true);
}

/// The move of a sub-model that saves the most traffic; `None` if no move saves any.
fn best(
    instance: &GoatProblem,
    placement: &OpenSites,
    room: &[i128],
    reach: &[Reach],
    g: usize,
) -> Option<Move> {
    let sites = 0..instance.sites.len();
    let open = &placement.open[g];
    let bytes = |g: usize| instance.bytes[g] as i128;
    let has_room = |g: usize, site: usize| room[site] >= bytes(g);
    let mut best: Option<(i128, Move)> = None;
    let mut consider = |change: i128, made: Move| {
        if change < best.as_ref().map_or(0, |(change, _)| *change) {
            best = Some((change, made));
        }
    };
    let closes: Vec<Option<usize>> = [None]
        .into_iter()
        .chain(sites.clone().filter(|site| open[*site]).map(Some))
        .collect();
    let plain = |g, close, open| Move {
        g,
        close,
        open,
        evict: None,
        reopen: None,
    };
    for &close in &closes {
        let change = i128::from(reach[g].change(instance, close, None)) * bytes(g);
        // A site that saves nothing is closed too: one switch fewer to use.
        let change = if close.is_some() && change == 0 {
            -1
        } else {
            change
        };
        consider(change, plain(g, close, None));
    }
    for site in sites.clone().filter(|site| !open[*site]) {
        let alone = reach[g].change(instance, None, Some(site));
        for &close in &closes {
            let change = match close {
                None => alone,
                Some(_) => reach[g].change(instance, close, Some(site)),
            };
            let change = i128::from(change) * bytes(g);
            if has_room(g, site) {
                consider(change, plain(g, close, Some(site)));
                continue;
            }
            if change >= 0 || i128::from(instance.sites[site].memory) < bytes(g) {
                continue;
            }
            for other in instance.sub_models() {
                let makes_room =
                    placement.open[other][site] && room[site] + bytes(other) >= bytes(g);
                if !makes_room {
                    continue;
                }
                // The evicted sub-model may move to the closed site, or to any other with enough memory.
                let frees = |at: usize| match Some(at) == close {
                    true => room[at] + bytes(g),
                    false => room[at],
                };
                let reopens = sites.clone().filter(|at| {
                    *at != site && !placement.open[other][*at] && frees(*at) >= bytes(other)
                });
                for reopen in [None].into_iter().chain(reopens.map(Some)) {
                    let evicted = reach[other].change(instance, Some(site), reopen);
                    consider(
                        change + i128::from(evicted) * bytes(other),
                        Move {
                            g,
                            close,
                            open: Some(site),
                            evict: Some(other),
                            reopen,
                        },
                    );
                }
            }
        }
    }
    best.map(|(_, made)| made)
}
