//! Serves the status of a worker or server at the address in `--metrics`.

use std::sync::Arc;
use std::time::Duration;

use aggregation::{Job, UnderWay};
use anyhow::Context;

use super::args::LinkArgs;
use crate::metrics::{Board, Exporter, Status, Waits};

/// Interval at which an agent with a status server polls for status requests.
const PACE: Duration = Duration::from_millis(50);
/// Maximum wait for the status of an agent, which may be busy with a gradient.
const PATIENCE: Duration = Duration::from_millis(500);

/// Status server of an agent. The agent's loop calls [`Watch::show`] now and then.
pub struct Watch {
    blank: Status,
    job: Job,
    shown: Option<(Arc<Board<Status>>, Exporter)>,
}

impl Watch {
    /// Starts to serve the status at the address in `link.metrics`; does nothing without an address.
    pub fn start(link: &LinkArgs, job: Job, mut blank: Status) -> anyhow::Result<Watch> {
        blank.interface.clone_from(&link.iface);
        blank.io = Some(
            if link.iface.is_some() {
                "pnet"
            } else {
                "cable"
            }
            .to_owned(),
        );
        blank.address = Some(link.endpoint().to_string());
        let mut shown = None;
        if let Some(address) = &link.metrics {
            let board: Arc<Board<Status>> = Arc::default();
            board.write(blank.clone());
            let asked = Arc::clone(&board);
            let last = blank.clone();
            let show = move || match asked.request(PATIENCE, || {}) {
                Some((status, at)) => Status {
                    age_ms: at.elapsed().as_secs_f64() * 1e3,
                    ..status
                },
                None => last.clone(),
            };
            let exporter = Exporter::start(address, show)
                .with_context(|| format!("cannot show metrics at {address}"))?;
            shown = Some((board, exporter));
        }
        Ok(Watch { blank, job, shown })
    }

    /// Limits a wait to the interval at which the agent must poll for status requests.
    pub fn at_most(&self, wait: Duration) -> Duration {
        match self.shown {
            Some(_) => wait.min(PACE),
            None => wait,
        }
    }

    /// If the status is requested, writes the agent's counters and its unfinished chunk.
    pub fn show(
        &self,
        now_ns: u64,
        under_way: impl FnOnce() -> Option<UnderWay>,
        count: impl FnOnce(&mut Status),
    ) {
        let Some((board, _)) = self.shown.as_ref().filter(|(board, _)| board.is_asked()) else {
            return;
        };
        let mut status = self.blank.clone();
        count(&mut status);
        status.waits = under_way().map(|found| {
            let since_ms = now_ns.saturating_sub(found.since_ns) as f64 / 1e6;
            Waits::new(&self.job, found, since_ms)
        });
        board.write(status);
    }
}
