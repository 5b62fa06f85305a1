//! Decides which part of a large set of test cases one test run covers: all of them, or a tenth.

use std::ops::Range;

/// Environment variable by which `cargo xtask test --all` asks tests to run all cases.
const ALL: &str = "WEIR_TEST_ALL";

/// Whether this run covers all cases of each test (`cargo xtask test --all`), rather than the default tenth.
pub fn runs_all() -> bool {
    std::env::var_os(ALL).is_some()
}

/// The seeds that a test draws its cases from: all of `range` under `cargo xtask test --all`, otherwise its first tenth, rounded
/// up.
pub fn seeds(range: Range<u64>) -> Range<u64> {
    if runs_all() {
        return range;
    }
    let count = range.end.saturating_sub(range.start);
    range.start..range.start + count.div_ceil(10)
}

/// Number of random cases of a property test: `count` under `cargo xtask test --all`, otherwise a tenth, rounded up.
pub fn cases(count: u32) -> u32 {
    if runs_all() {
        return count;
    }
    count.div_ceil(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_seeds_is_drawn_by_default() {
        let expected = if runs_all() { 100..125 } else { 100..103 };
        assert_eq!(seeds(100..125), expected);
        assert!(seeds(7..7).is_empty());
    }
}
