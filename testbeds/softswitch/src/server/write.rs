//! The call Write (P4Runtime 1.4, section 12).

use super::batch::{self, Checked};
use super::digests;
use super::op::Op;
use super::*;
use p4rt::status::{self, UpdateResult};
use v1::write_request::Atomicity;

/// Number of updates applied between two batches of frames if the Write call need not be atomic.
const UPDATES_PER_TURN: u64 = 256;

impl Service {
    pub(super) async fn write_batch(&self, request: v1::WriteRequest) -> Result<(), Status> {
        #[allow(deprecated)]
        check_no_role_number(request.role_id)?;
        let check = || {
            self.arbitration()
                .check_write(request.device_id, &request.role, request.election_id)
        };
        check()?;
        let atomicity = Atomicity::try_from(request.atomicity).map_err(|_| {
            Status::invalid_argument(format!("unknown atomicity {}", request.atomicity))
        })?;
        let pipelines = self.pipelines.write().await;
        // Another client may have taken over while this call waited for the previous one.
        check()?;
        let access = self.arbitration().access(&request.role);
        let loaded = pipelines.target().ok_or_else(no_pipeline)?;
        let check_update = |update: &v1::Update| {
            access.check(update.entity.as_ref())?;
            Op::new(update, &loaded.binding)
        };
        let mut checked: Vec<Checked> = request.updates.iter().map(check_update).collect();
        let mut configs = loaded.digests().configs().clone();
        let has_digests = checked.iter().any(|op| matches!(op, Ok(Op::Digest(..))));
        if has_digests {
            for op in &mut checked {
                if let Ok(Op::Digest(kind, id, config)) = op
                    && let Err(error) = digests::configure(&mut configs, *kind, *id, *config)
                {
                    *op = Err(error);
                }
            }
        }
        let results = match atomicity {
            Atomicity::ContinueOnError => self.apply_each(checked).await?,
            // A command runs between two frames, so a batch that can be rolled back is also atomic.
            Atomicity::RollbackOnError | Atomicity::DataplaneAtomic => {
                // A batch with an update that is known to fail is not started.
                match checked.iter().position(Result::is_err) {
                    Some(position) => {
                        let count = checked.len();
                        let Err(error) = checked.swap_remove(position) else {
                            return Err(Status::internal("a failed update has code OK"));
                        };
                        batch::aborted(count, position, error)
                    }
                    None => {
                        self.control(move |now, switch| batch::apply_all(now, switch, checked))
                            .await?
                    }
                }
            }
        };
        let whole = atomicity == Atomicity::ContinueOnError || results.iter().all(Result::is_ok);
        if has_digests && whole {
            loaded.digests().set_configs(configs);
        }
        status::of_batch(&results, "updates").map_or(Ok(()), Err)
    }

    /// Applies the updates by one command, which the packet loop runs in many steps, with frames in between. So a batch costs
    /// two thread switches, whatever its length.
    async fn apply_each(&self, checked: Vec<Checked>) -> Result<Vec<UpdateResult>, Status> {
        let mut results = Vec::with_capacity(checked.len());
        let mut checked = checked.into_iter();
        let step = move |core: &mut driver::Core| {
            let Some((now, switch)) = core.control() else {
                return Some(None);
            };
            let mut weight = 0;
            while weight < UPDATES_PER_TURN
                && let Some(update) = checked.next()
            {
                weight += update.as_ref().map_or(1, Op::weight);
                results.push(update.and_then(|op| op.apply(now, switch)));
            }
            (checked.len() == 0).then(|| Some(std::mem::take(&mut results)))
        };
        let results = self.driver.run_steps(step).await.map_err(stopped)?;
        results.ok_or_else(no_pipeline)
    }
}
