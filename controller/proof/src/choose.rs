//! Chooses, among readings (which epoch and trigger state applied to each frame) that fit the
//! captures equally well, those that agree with the counts that the switch itself reported.

/// Counters under one reading (choice of each frame's epoch), and the number of frames that it leaves waiting without a cause.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Number of hits of each fault injection, followed by the number of activations of each trigger.
    pub hits: Vec<u64>,
    /// Number of frames that no fault had to hold under this reading of epochs, but that took as long as held frames.
    pub waits: u32,
}

/// Maximum number of rounds of choosing: the choice of the reading for one stretch of frames may change the best for another.
const ROUNDS: usize = 8;

/// For each tie, the index of the reading that agrees best with the switch's counts `fired`, and
/// among those leaves the fewest frames waiting without a cause; and the indices of the counters
/// whose value is ambiguous, because another reading agrees as well.
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

/// Difference between a reading's counts and the switch's counts, given the readings chosen for the
/// other ties; and the number of frames that the reading leaves waiting without a cause.
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
