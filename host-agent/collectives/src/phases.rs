//! Divides the puts of a rank's program into phases: the peers of one phase may be served at the same time.

use std::collections::BTreeMap;

use crate::schedule::{Action, Program};

/// For each peer to which the rank puts, the number of its phase, from 0. All puts of a phase finish before a put of the next
/// phase begins. Puts to several peers of one phase may be in flight at the same time.
pub fn phases(program: &Program) -> BTreeMap<usize, usize> {
    let mut of_peer: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (place, step) in program.steps.iter().enumerate() {
        if let Action::Put { to, .. } = step.action {
            of_peer.entry(to).or_default().push(place);
        }
    }
    let mut in_order: Vec<(usize, Vec<usize>)> = of_peer.into_iter().collect();
    in_order.sort_by_key(|(_, puts)| puts[0]);
    let mut phases: Vec<Phase> = Vec::new();
    for (peer, puts) in in_order {
        let is_after = |phase: &Phase| {
            let mut puts = puts.iter();
            puts.all(|put| has_all(&program.steps[*put].after, &phase.puts))
        };
        let mut own = Phase {
            peers: vec![peer],
            puts: puts.clone(),
        };
        // A put after the last phase is also after all earlier ones.
        while let Some(before) = phases.pop_if(|phase| !is_after(phase)) {
            own.peers.extend(before.peers);
            own.puts.extend(before.puts);
        }
        own.puts.sort_unstable();
        phases.push(own);
    }
    let numbered = phases.into_iter().enumerate();
    numbered
        .flat_map(|(number, phase)| phase.peers.into_iter().map(move |peer| (peer, number)))
        .collect()
}

struct Phase {
    peers: Vec<usize>,
    /// Indices of the puts of this phase in the program, ascending.
    puts: Vec<usize>,
}

/// Whether the list `those` contains every number of the list `these`; both lists are ascending.
fn has_all(those: &[usize], these: &[usize]) -> bool {
    let mut rest = those.iter();
    these.len() <= those.len() && these.iter().all(|this| rest.any(|that| that == this))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Algorithm, Collective, Options, build};

    const RANKS: usize = 5;

    fn phases_of(
        collective: &Collective,
        algorithm: Algorithm,
        tile: Option<usize>,
    ) -> Vec<(usize, usize)> {
        let options = Options {
            tile,
            ..Options::default()
        };
        let schedule = build(collective, algorithm, &options).unwrap();
        phases(&schedule.programs[3]).into_iter().collect()
    }

    #[test]
    fn one_peer_after_the_other_or_all_at_once() {
        let exchange = Collective::all_to_all(RANKS, 100);
        for tile in [None, Some(64)] {
            let pairwise = phases_of(&exchange, Algorithm::Pairwise, tile);
            assert_eq!(pairwise, [(0, 1), (1, 2), (2, 3), (4, 0)]);
            let direct = phases_of(&exchange, Algorithm::Direct, tile);
            assert_eq!(direct, [(0, 0), (1, 0), (2, 0), (4, 0)]);
        }
        // A rank without data for a peer does not wait for the peer before: two are served in parallel.
        let mut counts = vec![vec![100; RANKS]; RANKS];
        counts[3][1] = 0;
        let gap = phases_of(&Collective::AllToAll { counts }, Algorithm::Pairwise, None);
        assert_eq!(gap, [(0, 0), (2, 0), (4, 0)]);
        let gather = Collective::all_gather(RANKS, 100);
        assert_eq!(phases_of(&gather, Algorithm::Ring, Some(64)), [(4, 0)]);
        assert!(has_all(&[1, 2, 5], &[1, 5]) && !has_all(&[1, 5], &[1, 2, 5]));
        assert!(!has_all(&[1, 2, 5], &[3]) && has_all(&[], &[]));
        let nothing = Collective::all_gather(1, 100);
        let schedule = build(&nothing, Algorithm::Direct, &Options::default()).unwrap();
        assert!(phases(&schedule.programs[0]).is_empty());
    }
}
