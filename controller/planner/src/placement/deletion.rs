//! Deletion filter, in groups: finds the constraints that contradict each other in an infeasible problem (Chinneck,
//! *Feasibility and infeasibility in optimization*, 2008, chapter 6).

/// Removes constraints of one kind from `held`, the last first, in ever smaller groups, as long as
/// the remaining problem is infeasible. `is_open` returns whether a problem is feasible, or `None`
/// if that is unknown. Returns whether the answer was known for each single constraint.
pub(super) fn thin<H: Clone>(
    held: &mut H,
    of: impl Fn(&mut H) -> &mut Vec<usize>,
    is_open: impl Fn(&H) -> Option<bool>,
) -> bool {
    let mut is_known = true;
    let mut group = of(held).len().next_power_of_two();
    while group > 0 {
        let all = of(held).clone();
        for some in all.rchunks(group) {
            let mut without = held.clone();
            of(&mut without).retain(|one| !some.contains(one));
            match is_open(&without) {
                Some(false) => *held = without,
                Some(true) => {}
                None => is_known &= group > 1,
            }
        }
        group /= 2;
    }
    is_known
}
