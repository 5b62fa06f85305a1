//! Hierarchical ring all-reduce: rings within groups sum, so that each of m members has an m-th; rings between groups sum
//! that; rings within groups pass all on.

use super::ring::turns;
use crate::fluid::Schedule;

/// Why there is no schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GroupError {
    /// The members of one place in all groups make a ring, so each group has as many.
    #[error("groups of {0} and of {1} workers make no hierarchical ring")]
    Unequal(usize, usize),
}

/// Among groups of ranks, such as the workers of each rack.
///
/// # Errors
///
/// [`GroupError::Unequal`].
pub fn schedule(groups: &[Vec<usize>]) -> Result<Schedule, GroupError> {
    let size = groups.first().map_or(0, Vec::len);
    if let Some(other) = groups.iter().find(|group| group.len() != size) {
        return Err(GroupError::Unequal(size, other.len()));
    }
    let mut schedule = Schedule::default();
    let mut needs: Vec<Vec<Vec<usize>>> = Vec::new();
    for group in groups {
        let none = vec![Vec::new(); size];
        needs.push(turns(&mut schedule, group, 1.0, 1, none));
    }
    for place in 0..size {
        let ring: Vec<usize> = groups.iter().map(|group| group[place]).collect();
        let ready = needs.iter().map(|needs| needs[place].clone()).collect();
        let done = turns(&mut schedule, &ring, 1.0 / size as f64, 2, ready);
        for (needs, done) in needs.iter_mut().zip(done) {
            needs[place] = done;
        }
    }
    for (group, ready) in groups.iter().zip(needs) {
        turns(&mut schedule, group, 1.0, 1, ready);
    }
    Ok(schedule)
}
