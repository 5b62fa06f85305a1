//! Computes max-min fair rates of flows, by progressive filling (Bertsekas and Gallager, *Data Networks*, 6.5.2).

/// Relative difference below which two rates are equal: summation in another order rounds differently.
const ROUNDING: f64 = 1e-12;

/// Max-min fair rate of each flow over the edges that it passes (twice if listed twice); infinite if no edge limits it.
pub fn max_min(capacities: &[f64], flows: &[&[usize]]) -> Vec<f64> {
    let mut left = capacities.to_vec();
    let mut rising_on = vec![0_usize; capacities.len()];
    let mut used: Vec<usize> = Vec::new();
    for edge in flows.iter().copied().flatten() {
        if rising_on[*edge] == 0 {
            used.push(*edge);
        }
        rising_on[*edge] += 1;
    }
    let mut rates = vec![f64::INFINITY; flows.len()];
    let mut rising: Vec<usize> = (0..flows.len()).collect();
    loop {
        // The level that all unsettled flows on an edge can reach.
        let level = |edge: usize| match rising_on[edge] {
            0 => f64::INFINITY,
            flows => left[edge].max(0.0) / flows as f64,
        };
        let levels = used.iter().map(|edge| level(*edge));
        let lowest = levels.fold(f64::INFINITY, f64::min);
        if lowest.is_infinite() {
            return rates;
        }
        let reached = lowest * (1.0 + ROUNDING);
        let is_full = |edge: &usize| level(*edge) <= reached;
        let (full, still): (Vec<usize>, Vec<usize>) = rising
            .into_iter()
            .partition(|flow| flows[*flow].iter().any(is_full));
        for flow in full {
            rates[flow] = lowest;
            for edge in flows[flow] {
                left[*edge] -= lowest;
                rising_on[*edge] -= 1;
            }
        }
        rising = still;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_line_of_two_edges() {
        // One flow over both edges, one over the first, two over the second: capacities 10 and 9 shared by 2 and 3 flows.
        let flows: [&[usize]; 4] = [&[0, 1], &[0], &[1], &[1]];
        assert_eq!(max_min(&[10.0, 9.0], &flows), [3.0, 7.0, 3.0, 3.0]);
    }

    #[test]
    fn an_edge_used_twice_gives_half() {
        assert_eq!(max_min(&[8.0], &[&[0, 0]]), [4.0]);
    }

    #[test]
    fn unlimited_flows_have_infinite_rates() {
        assert_eq!(max_min(&[], &[&[]]), [f64::INFINITY]);
    }
}
