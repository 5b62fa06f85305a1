//! Shares the capacity of network queues among all ranks whose puts pass them in a schedule.
//!
//! A NIC's own queue carries the puts of the NIC's ranks to all remote peers. The queue in front of another NIC carries the
//! puts of all ranks to that NIC's ranks. Only the schedule shows which ranks use a queue: if each rank only divided its own
//! limit among its peers, several ranks could together overload one peer's queue.

use std::collections::{BTreeMap, BTreeSet};

use collectives::{Schedule, phases};

use super::meeting::Announcement;
use crate::provider::Gid;

/// NIC of each rank, and the pairs of ranks that communicate through NICs.
#[derive(Debug, Default)]
pub struct Ways {
    /// GID of each rank's NIC, in order of rank; `None` if the rank has no queue pairs.
    nics: Vec<Option<Gid>>,
    /// Pairs of ranks that have queue pairs for each other: sender, receiver.
    apart: BTreeSet<(usize, usize)>,
}

impl Ways {
    /// Finds each rank's NIC, and the pairs of ranks with queue pairs, in the texts of all ranks, in order of rank.
    pub fn new(told: &[Announcement]) -> Self {
        let nics = told
            .iter()
            .map(|told| told.keys.first().map(|(_, keys)| keys.gid));
        let ranks = told.iter().enumerate();
        let apart =
            ranks.flat_map(|(rank, told)| told.keys.iter().map(move |(peer, _)| (rank, *peer)));
        Self {
            nics: nics.collect(),
            apart: apart.collect(),
        }
    }

    /// Counts the pairs of ranks that use each NIC's queue at the same time: in the same phase of the schedule.
    pub fn of_schedule(&self, schedule: &Schedule) -> Traffic<'_> {
        let mut traffic = Traffic {
            ways: self,
            phases: schedule.programs.iter().map(phases).collect(),
            out: Users::default(),
            into: Users::default(),
        };
        for (from, phases) in traffic.phases.iter().enumerate() {
            for (to, phase) in phases {
                if self.apart.contains(&(from, *to)) {
                    traffic.out.add(self.nics[from], *phase);
                    traffic.into.add(self.nics[*to], *phase);
                }
            }
        }
        traffic
    }
}

/// Numbers of pairs of ranks that use each NIC's queues, outgoing and incoming, in each phase of a schedule.
pub struct Traffic<'w> {
    ways: &'w Ways,
    /// For each rank, in order of rank: number of the phase in which it puts to each peer.
    phases: Vec<BTreeMap<usize, usize>>,
    out: Users,
    into: Users,
}

impl Traffic<'_> {
    /// Maximum number of unacknowledged packets from a rank to each peer (at least 1), so that no queue gets more than `window`
    /// packets.
    ///
    /// Puts of a rank in different phases do not share a queue's capacity. All ranks are assumed to be in the same phase; a
    /// rank that is ahead of the others uses queues for which it was not counted.
    pub fn windows(&self, rank: usize, window: u32) -> Vec<u32> {
        let nics = &self.ways.nics;
        let share = |to: usize| {
            // A peer without puts shares nothing.
            let crowd = self.phases[rank].get(&to).map_or(1, |phase| {
                let before = self.out.at(nics[rank], *phase);
                before.max(self.into.at(nics[to], *phase))
            });
            (window / crowd.max(1)).max(1)
        };
        (0..nics.len()).map(share).collect()
    }
}

/// Number of pairs of ranks that use a queue in a phase, by (GID of the queue's NIC, phase).
#[derive(Default)]
struct Users(BTreeMap<(Option<Gid>, usize), u32>);

impl Users {
    fn add(&mut self, nic: Option<Gid>, phase: usize) {
        *self.0.entry((nic, phase)).or_default() += 1;
    }

    fn at(&self, nic: Option<Gid>, phase: usize) -> u32 {
        self.0.get(&(nic, phase)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perftest::Keys;
    use collectives::{Algorithm, Collective, Hierarchy, Options, build, offered};
    use roce::packet::Mtu;
    use roce::{Psn, Qpn};
    use std::net::Ipv4Addr;

    const RANKS: usize = 8;

    /// Eight ranks in nodes of `node` ranks, with `nics` NICs each.
    fn ways(node: usize, nics: usize) -> Ways {
        let told = (0..RANKS).map(|rank| {
            let nic = rank / node * nics + rank % node * nics / node;
            let keys = Keys {
                reads: 1,
                qpn: Qpn::new(5),
                psn: Psn::new(5),
                rkey: 1,
                address: 0,
                gid: Ipv4Addr::from(nic as u32).into(),
            };
            let peers = (0..RANKS).filter(|peer| peer / node != rank / node);
            Announcement {
                mtu: Mtu::B4096,
                keys: peers.map(|peer| (peer, keys)).collect(),
            }
        });
        Ways::new(&told.collect::<Vec<_>>())
    }

    fn schedule(collective: &Collective, algorithm: Algorithm) -> Schedule {
        let hierarchy = Hierarchy::blocks(2, 4).ok();
        let options = Options {
            hierarchy,
            ..Options::default()
        };
        build(collective, algorithm, &options).unwrap()
    }

    #[test]
    fn one_peer_has_all_of_it_and_several_share() {
        let alone = ways(1, 1);
        let gather = Collective::all_gather(RANKS, 100);
        let ring = schedule(&gather, Algorithm::Ring);
        assert_eq!(alone.of_schedule(&ring).windows(2, 60)[3], 60);
        let direct = schedule(&gather, Algorithm::Direct);
        assert_eq!(alone.of_schedule(&direct).windows(2, 60)[3], 60 / 7);
        assert_eq!(alone.of_schedule(&direct).windows(2, 3)[3], 1);
        // One peer after another.
        let exchange = Collective::all_to_all(RANKS, 100);
        let pairwise = schedule(&exchange, Algorithm::Pairwise);
        assert_eq!(alone.of_schedule(&pairwise).windows(2, 60), [60; RANKS]);
        // All ranks put to the same peer.
        let root = 0;
        let mut counts = vec![vec![0; RANKS]; RANKS];
        for counts in &mut counts[1..] {
            counts[root] = 100;
        }
        let to_one = schedule(&Collective::AllToAll { counts }, Algorithm::Direct);
        assert_eq!(alone.of_schedule(&to_one).windows(5, 70)[root], 10);
    }

    #[test]
    fn shared_nics_count_as_queues_and_memory_does_not() {
        let gather = Collective::all_gather(RANKS, 100);
        let levels = offered(&gather, true).pop().unwrap();
        assert_eq!(levels.word(), "hierarchical-direct-direct");
        let schedule = schedule(&gather, levels);
        // Each rank puts to one rank of the other node.
        for (nics, window) in [(4, 60), (2, 30), (1, 15)] {
            assert_eq!(
                ways(4, nics).of_schedule(&schedule).windows(1, 60)[5],
                window
            );
        }
    }

    #[test]
    fn no_queue_gets_more_than_the_window() {
        let (ranks, len, root) = (RANKS, 64, 3);
        for (node, nics) in [(1, 1), (4, 4), (4, 2), (2, 1)] {
            let ways = ways(node, nics);
            for collective in [
                Collective::all_gather(ranks, len),
                Collective::all_to_all(ranks, len),
                Collective::reduce_scatter(ranks, len),
                Collective::AllReduce { ranks, len },
                Collective::Broadcast { ranks, root, len },
                Collective::Reduce { ranks, root, len },
            ] {
                for algorithm in offered(&collective, true) {
                    let schedule = schedule(&collective, algorithm);
                    let mut queues: BTreeMap<_, u32> = BTreeMap::new();
                    let traffic = ways.of_schedule(&schedule);
                    for (from, program) in schedule.programs.iter().enumerate() {
                        let windows = traffic.windows(from, 120);
                        let elsewhere = |to: usize| ways.apart.contains(&(from, to));
                        for (to, phase) in phases(program) {
                            if elsewhere(to) {
                                let (out, into) = (ways.nics[from], ways.nics[to]);
                                *queues.entry((true, out, phase)).or_default() += windows[to];
                                *queues.entry((false, into, phase)).or_default() += windows[to];
                            }
                        }
                    }
                    let most = queues.into_values().max();
                    assert!(
                        most <= Some(120),
                        "{} {algorithm}: {most:?}",
                        collective.name()
                    );
                }
            }
        }
    }
}
