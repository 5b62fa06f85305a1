//! Compares the frames that entered a switch with those that left it, from two recordings. Pure.

use std::collections::BTreeMap;

/// A frame of a recording, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapturedFrame<K> {
    /// Key that identifies the frame in both recordings.
    pub key: K,
    /// Time at which the frame was recorded, in nanoseconds.
    pub at_ns: u64,
}

/// A frame that stayed in the switch for longer than the bound allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LateFrame<K> {
    /// Key that identifies the frame in both recordings.
    pub key: K,
    /// Time at which the frame entered the switch, in nanoseconds.
    pub at_ns: u64,
    /// Time that the frame spent in the switch, in nanoseconds.
    pub delay_ns: u64,
}

/// Difference between the frames that entered a switch and those that left it. Each list is in order of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference<K> {
    /// Number of frames that entered and left the switch, including late ones.
    pub matched: u64,
    /// Frames that entered the switch and did not leave it.
    pub missing: Vec<CapturedFrame<K>>,
    /// Frames that left the switch without having entered, or left more often than they entered.
    pub extra: Vec<CapturedFrame<K>>,
    /// Frames that spent more time in the switch than the bound allows.
    pub late: Vec<LateFrame<K>>,
    /// Longest time that a frame which was not late spent in the switch, in nanoseconds.
    pub longest_in_time_ns: u64,
}

/// Matches the frames recorded before a switch with those recorded behind it.
///
/// Frames with the same key are paired in order of time, the first that left with the first that entered. Frames without a
/// partner on either side are missing or extra.
pub fn match_frames<K: Ord + Clone>(
    before: &[CapturedFrame<K>],
    after: &[CapturedFrame<K>],
    bound_ns: u64,
) -> Difference<K> {
    let mut sides: BTreeMap<&K, (Vec<u64>, Vec<u64>)> = BTreeMap::new();
    for seen in before {
        sides.entry(&seen.key).or_default().0.push(seen.at_ns);
    }
    for seen in after {
        sides.entry(&seen.key).or_default().1.push(seen.at_ns);
    }
    let mut difference = Difference {
        matched: 0,
        missing: vec![],
        extra: vec![],
        late: vec![],
        longest_in_time_ns: 0,
    };
    for (key, (mut entered, mut left)) in sides {
        entered.sort_unstable();
        left.sort_unstable();
        let pairs = entered.len().min(left.len());
        difference.matched += pairs as u64;
        for (&at_ns, &out_ns) in entered.iter().zip(&left) {
            let delay_ns = out_ns.saturating_sub(at_ns);
            if delay_ns > bound_ns {
                difference.late.push(LateFrame {
                    key: key.clone(),
                    at_ns,
                    delay_ns,
                });
            } else {
                difference.longest_in_time_ns = difference.longest_in_time_ns.max(delay_ns);
            }
        }
        let seen = |&at_ns: &u64| CapturedFrame {
            key: key.clone(),
            at_ns,
        };
        difference.missing.extend(entered[pairs..].iter().map(seen));
        difference.extra.extend(left[pairs..].iter().map(seen));
    }
    difference.missing.sort_by_key(|seen| seen.at_ns);
    difference.extra.sort_by_key(|seen| seen.at_ns);
    difference.late.sort_by_key(|late| late.at_ns);
    difference
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(list: &[(char, u64)]) -> Vec<CapturedFrame<char>> {
        list.iter()
            .map(|&(key, at_ns)| CapturedFrame { key, at_ns })
            .collect()
    }

    fn keys(list: &[CapturedFrame<char>]) -> String {
        list.iter().map(|seen| seen.key).collect()
    }

    #[test]
    fn nothing_happened() {
        let difference = match_frames(
            &seen(&[('a', 10), ('b', 20)]),
            &seen(&[('b', 25), ('a', 18)]),
            10,
        );
        assert_eq!(difference.matched, 2);
        assert_eq!(difference.longest_in_time_ns, 8);
        assert!(
            difference.missing.is_empty()
                && difference.extra.is_empty()
                && difference.late.is_empty()
        );
    }

    #[test]
    fn drop_duplicate_and_delay_are_distinguished() {
        let before = seen(&[('d', 1), ('x', 2), ('l', 3), ('n', 4)]);
        let after = seen(&[('x', 3), ('n', 5), ('x', 9), ('l', 103)]);
        let difference = match_frames(&before, &after, 50);
        assert_eq!(keys(&difference.missing), "d");
        assert_eq!(difference.extra, seen(&[('x', 9)]));
        assert_eq!(
            difference.late,
            [LateFrame {
                key: 'l',
                at_ns: 3,
                delay_ns: 100
            }]
        );
        assert_eq!(difference.matched, 3);
    }

    #[test]
    fn repeated_keys_pair_in_order() {
        // Two transmissions that cannot be distinguished, one dropped: one is missing, whichever it was.
        let difference = match_frames(&seen(&[('a', 0), ('a', 100)]), &seen(&[('a', 101)]), 1_000);
        assert_eq!((difference.matched, difference.missing.len()), (1, 1));
        // Out of order in the lists, in order in time.
        let difference = match_frames(
            &seen(&[('a', 100), ('a', 0)]),
            &seen(&[('a', 101), ('a', 1)]),
            5,
        );
        assert_eq!((difference.matched, difference.late.len()), (2, 0));
    }

    #[test]
    fn frames_that_did_not_enter_are_extra() {
        let difference = match_frames(&[], &seen(&[('z', 2), ('y', 1)]), 0);
        assert_eq!(keys(&difference.extra), "yz");
    }

    #[test]
    fn a_bound_is_not_late() {
        let difference = match_frames(&seen(&[('a', 0)]), &seen(&[('a', 50)]), 50);
        assert!(difference.late.is_empty());
    }
}
