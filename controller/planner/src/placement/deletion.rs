//! The deletion filter, by halves: which constraints of a problem without an answer are at odds (Chinneck, *Feasibility and
//! infeasibility in optimization*, 2008, chapter 6).

/// Takes away constraints of one kind from what is `held`, the last first, in ever smaller groups, as long as there is no answer
/// without them. `is_open` says whether there is one, or nothing if that is not known. Whether it was known of each constraint
/// alone.
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
