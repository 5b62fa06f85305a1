//! Percentiles of measured values, by the nearest-rank method.

/// The smallest value for which at least `percent` per cent of all values are equal or less. `sorted` must not be empty.
pub fn percentile<T: Copy>(sorted: &[T], percent: usize) -> T {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rank_is_one_of_them() {
        let all: Vec<u32> = (1..=200).collect();
        assert_eq!(
            [50, 90, 99, 100].map(|p| percentile(&all, p)),
            [100, 180, 198, 200]
        );
        assert_eq!([1, 50, 99].map(|p| percentile(&[7], p)), [7, 7, 7]);
        assert_eq!(percentile(&[1, 2, 3], 50), 2);
    }
}
