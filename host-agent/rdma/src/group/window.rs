//! What a queue on the way holds, shared by all that use it in a schedule.
//!
//! A rank's own queue is used by its puts to all peers, that before a peer by all who put to it. Only the schedule knows the
//! others of those: an endpoint that shared a budget among its own peers would let several ranks give theirs to one.

use collectives::Schedule;

/// By rank: packets without an answer that a rank may have under way to it, of a window for each queue; at least 1.
pub fn windows(schedule: &Schedule, rank: usize, window: u32) -> Vec<u32> {
    let users = schedule.partners();
    let own = users[rank].puts_to;
    let of = |users: &collectives::Partners| {
        let crowd = own.max(users.put_by).max(1);
        (window / crowd as u32).max(1)
    };
    users.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use collectives::{Algorithm, Collective, Hierarchy, Options, build, offered};

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
        let gather = Collective::all_gather(8, 100);
        let ring = schedule(&gather, Algorithm::Ring);
        assert_eq!(windows(&ring, 2, 60)[3], 60);
        let direct = schedule(&gather, Algorithm::Direct);
        assert_eq!(windows(&direct, 2, 60)[3], 60 / 7);
        assert_eq!(windows(&direct, 2, 3)[3], 1);
        // All have one peer to put to, who has several that put to it.
        let root = 0;
        let mut counts = vec![vec![0; 8]; 8];
        for from in 1..8 {
            counts[from][root] = 100;
        }
        let to_one = schedule(&Collective::AllToAll { counts }, Algorithm::Direct);
        assert_eq!(windows(&to_one, 5, 70)[root], 10);
    }

    #[test]
    fn no_queue_gets_more_than_the_window() {
        let (ranks, len, root) = (8, 64, 3);
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
                let (mut out, mut into) = (vec![0; ranks], vec![0; ranks]);
                let mut pairs: Vec<(usize, usize)> =
                    schedule.puts().map(|(from, to, _)| (from, to)).collect();
                pairs.sort_unstable();
                pairs.dedup();
                for (from, to) in pairs {
                    let window = windows(&schedule, from, 60)[to];
                    out[from] += window;
                    into[to] += window;
                }
                let most = out.into_iter().chain(into).max();
                assert!(most <= Some(60), "{} {algorithm}: {most:?}", collective.name());
            }
        }
    }
}
