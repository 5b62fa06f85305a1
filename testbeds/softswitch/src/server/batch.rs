//! Applies a batch of P4Runtime updates together or not at all.

use super::op::Op;
use p4rt::rpc::Code;
use p4rt::status::{UpdateError, UpdateResult};
use pipeline::Switch;

/// An update that can be applied, or the error that shows why it is malformed.
pub(super) type Checked = Result<Op, UpdateError>;

/// Applies all updates of a batch or none. If none, the updates that did not fail themselves get `Aborted`.
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

/// The results of a batch of `count` updates that failed because of the update at `position`: the others get `Aborted`.
pub(super) fn aborted(count: usize, position: usize, error: UpdateError) -> Vec<UpdateResult> {
    let aborted = UpdateError::new(Code::Aborted, format!("update {position} failed"));
    let mut results = vec![Err(aborted); count];
    results[position] = Err(error);
    results
}
