//! A batch of updates that are applied together or not at all.

use super::op::Op;
use p4rt::rpc::Code;
use p4rt::status::{UpdateError, UpdateResult};
use pipeline::Switch;

/// A well-formed update, or the reason why it is not well-formed.
pub(super) type Checked = Result<Op, UpdateError>;

/// Applies all updates or none. If none, updates that did not fail themselves get `Aborted`.
pub(super) fn apply_all(
    now_ns: u64,
    switch: &mut Switch,
    updates: Vec<Checked>,
) -> Vec<UpdateResult> {
    let count = updates.len();
    switch.begin();
    for (position, update) in updates.into_iter().enumerate() {
        if let Err(error) = update.and_then(|op| op.apply(now_ns, switch)) {
            switch.rollback();
            return aborted(count, position, error);
        }
    }
    switch.commit();
    vec![Ok(()); count]
}

/// The results of a batch that failed because of one update.
pub(super) fn aborted(count: usize, position: usize, error: UpdateError) -> Vec<UpdateResult> {
    let aborted = UpdateError::new(Code::Aborted, format!("update {position} failed"));
    let mut results = vec![Err(aborted); count];
    results[position] = Err(error);
    results
}
