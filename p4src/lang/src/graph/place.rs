//! Coordinates: each layer's items move towards what they are joined to, as far as their order and distances allow.

use super::layers::{Layered, What};

/// Between neighbours in a layer, in pixels.
pub(super) const GAP: f64 = 22.0;
/// Between layers.
const RISE: f64 = 26.0;
const SWEEPS: usize = 24;

/// Sets the places of all items; width and height of the whole. The left and upper edges are at 0.
pub(super) fn place(all: &mut Layered) -> (f64, f64) {
    let mut joined: Vec<(Vec<usize>, Vec<usize>)> = vec![Default::default(); all.items.len()];
    for link in &all.links {
        for pair in link.path.windows(2) {
            joined[pair[0]].1.push(pair[1]);
            joined[pair[1]].0.push(pair[0]);
        }
    }
    for layer in &all.layers {
        let wanted = vec![0.0; layer.len()];
        let places = apart(&wanted, &distances(all, layer));
        for (n, x) in layer.iter().zip(places) {
            all.items[*n].x = x;
        }
    }
    for sweep in 0..SWEEPS {
        // Downwards towards what is above, upwards towards what is below, at last towards both.
        let (above, below) = match sweep {
            _ if sweep + 2 >= SWEEPS => (true, true),
            _ => (sweep % 2 == 0, sweep % 2 == 1),
        };
        let mut order: Vec<usize> = (0..all.layers.len()).collect();
        if below && !above {
            order.reverse();
        }
        for n in order {
            let layer = &all.layers[n];
            let wanted: Vec<f64> = layer
                .iter()
                .map(|item| {
                    let (up, down) = &joined[*item];
                    let up = up.iter().filter(|_| above);
                    let others = up.chain(down.iter().filter(|_| below));
                    mean(others.map(|n| all.items[*n].x)).unwrap_or(all.items[*item].x)
                })
                .collect();
            let places = apart(&wanted, &distances(all, layer));
            for (n, x) in layer.clone().into_iter().zip(places) {
                all.items[n].x = x;
            }
        }
    }
    let left = all.items.iter().map(|i| i.x - i.width / 2.0);
    let left = left.fold(f64::INFINITY, f64::min);
    let left = if left.is_finite() { left } else { 0.0 };
    let (mut width, mut y) = (0.0f64, 0.0f64);
    for layer in &all.layers {
        let height = layer
            .iter()
            .map(|n| all.items[*n].height)
            .fold(0.0, f64::max);
        for n in layer {
            let item = &mut all.items[*n];
            item.x -= left;
            item.y = y + height / 2.0;
            // A line passes its neighbours before it turns.
            if item.what == What::Bend {
                item.height = height;
            }
            width = width.max(item.x + item.width / 2.0);
        }
        y += height + RISE;
    }
    (width, (y - RISE).max(0.0))
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(s, c), x| (s + x, c + 1.0));
    (count > 0.0).then(|| sum / count)
}

/// Least distances between the middles of neighbours.
fn distances(all: &Layered, layer: &[usize]) -> Vec<f64> {
    let between = |pair: &[usize]| {
        let (a, b) = (&all.items[pair[0]], &all.items[pair[1]]);
        let bends = matches!((a.what, b.what), (What::Bend, What::Bend));
        (a.width + b.width) / 2.0 + if bends { GAP / 2.0 } else { GAP }
    };
    layer.windows(2).map(between).collect()
}

/// The places closest to the wanted ones (least squares) that keep these distances: isotonic regression, by pooling
/// adjacent violators.
fn apart(wanted: &[f64], distances: &[f64]) -> Vec<f64> {
    let mut shift = Vec::with_capacity(wanted.len());
    let mut sum = 0.0;
    for n in 0..wanted.len() {
        shift.push(sum);
        sum += distances.get(n).copied().unwrap_or(0.0);
    }
    // Pools of neighbours that share a value: sum and count.
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for (x, shift) in wanted.iter().zip(&shift) {
        let mut pool = (x - shift, 1);
        while let Some(last) = pools.last()
            && last.0 / last.1 as f64 > pool.0 / pool.1 as f64
        {
            pool = (pool.0 + last.0, pool.1 + last.1);
            pools.pop();
        }
        pools.push(pool);
    }
    let values = pools
        .iter()
        .flat_map(|(sum, count)| std::iter::repeat_n(sum / *count as f64, *count));
    values.zip(shift).map(|(x, shift)| x + shift).collect()
}

#[cfg(test)]
mod tests {
    use super::apart;

    #[test]
    fn neighbours_keep_their_distance_and_stay_near() {
        assert_eq!(apart(&[0.0, 10.0], &[5.0]), [0.0, 10.0]);
        assert_eq!(apart(&[0.0, 0.0], &[10.0]), [-5.0, 5.0]);
        assert_eq!(apart(&[3.0, 0.0, 0.0], &[1.0, 1.0]), [0.0, 1.0, 2.0]);
    }
}
