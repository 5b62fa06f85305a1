//! Of readings that fit what was seen equally well: the ones with which the switch's own counts agree.

/// A reading's counters, and how many frames it leaves waiting for no reason.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// How often each injection hit, and behind them, how often each trigger came on.
    pub hits: Vec<u64>,
    /// Frames that no fault held, if it is right, and that took as long as if one had.
    pub waits: u32,
}

/// How often the choice goes round: each may have to follow what another took.
const ROUNDS: usize = 8;

/// Of the readings that fit best each time that several did, the one with which the switch's own counts agree most, and after that, which has fewest frames
/// wait for no reason; and the injections for which another one does as well.
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

/// How ill a reading of a port fits the counts of the switch, beside what was chosen for the other ports; and how many frames
/// it leaves waiting.
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
