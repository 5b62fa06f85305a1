//! Chooses between readings of the frames that fit the captures equally well, by the counts that the switch itself reported. A
//! reading states which epoch and which trigger states applied to each frame.

/// Counters under one reading (which epoch applied to each frame), and the number of waits that the reading leaves unexplained.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Number of hits of each injection (fault on a flow at a switch), followed by the number of activations of each trigger.
    pub hits: Vec<u64>,
    /// Number of frames that stayed as long as held frames, though no fault had to hold them under this reading.
    pub waits: u32,
}

/// Maximum number of rounds: choosing a reading for one stretch of frames may change which one is best for another stretch.
const ROUNDS: usize = 8;

/// Chooses a reading for each tie (a stretch of frames that several readings explain equally well): the one that agrees best
/// with the switch's counts `fired`, then the one with the fewest unexplained waits. Returns the index of each tie's reading,
/// and the indices of counters that stay ambiguous because another reading agrees as well.
pub fn choose(candidates: &[Vec<Candidate>], fired: &[u64]) -> (Vec<usize>, Vec<usize>) {
    let mut chosen: Vec<usize> = vec![0; candidates.len()];
    for _ in 0..ROUNDS {
        let before = chosen.clone();
        for port in 0..candidates.len() {
            let unfit = unfit(candidates, fired, &chosen, port);
            let readings = 0..candidates[port].len();
            chosen[port] = readings
                .min_by_key(|i| unfit(&candidates[port][*i]))
                .unwrap_or(0);
        }
        if chosen == before {
            break;
        }
    }
    let mut ambiguous = Vec::new();
    for (port, readings) in candidates.iter().enumerate() {
        let Some(best) = readings.get(chosen[port]) else {
            continue;
        };
        let unfit = unfit(candidates, fired, &chosen, port);
        for rival in readings.iter().filter(|rival| unfit(rival) == unfit(best)) {
            let differs = |i: &usize| rival.hits[*i] != best.hits[*i];
            ambiguous.extend((0..fired.len()).filter(differs));
        }
    }
    ambiguous.sort_unstable();
    ambiguous.dedup();
    (chosen, ambiguous)
}

/// Difference between the counts under a reading and the switch's counts, given the readings chosen for the other ties; and the
/// number of waits that the reading leaves unexplained.
fn unfit<'a>(
    candidates: &'a [Vec<Candidate>],
    fired: &'a [u64],
    chosen: &[usize],
    port: usize,
) -> impl Fn(&Candidate) -> (u64, u32) + use<'a> {
    let others = |injection: usize| -> u64 {
        let rest = (0..candidates.len()).filter(|other| *other != port);
        let hits = rest.filter_map(|other| candidates[other].get(chosen[other]));
        hits.map(|reading| reading.hits[injection]).sum()
    };
    let elsewhere: Vec<u64> = (0..fired.len()).map(others).collect();
    move |reading| {
        let here = reading.hits.iter().zip(&elsewhere).zip(fired);
        let distance = here.map(|((here, elsewhere), fired)| (here + elsewhere).abs_diff(*fired));
        (distance.sum(), reading.waits)
    }
}
