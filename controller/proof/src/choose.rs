//! Chooses, among readings that fit the captures equally well, those that agree with the switch's own counts.

/// Counters of a reading, and the number of frames that it leaves waiting without a cause.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Number of hits of each injection, followed by the number of activations of each trigger.
    pub hits: Vec<u64>,
    /// Number of frames that no fault held under this reading, and that took as long as if one had.
    pub waits: u32,
}

/// Maximum number of rounds: each choice may have to follow another one.
const ROUNDS: usize = 8;

/// For each tie, the index of the reading that agrees best with the switch's counts, and among those leaves the fewest frames
/// waiting without a cause; and the counters for which another reading agrees as well.
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

/// Distance of a port's reading from the switch's counts, given the readings chosen for the other ports; and the number of frames
/// that it leaves waiting.
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
