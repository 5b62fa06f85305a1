//! What an agent shows of itself, if it was told an address (`--metrics`).

use std::sync::Arc;
use std::time::Duration;

use aggregation::{Job, UnderWay};
use anyhow::Context;

use super::args::LinkArgs;
use crate::metrics::{Board, Exporter, Status, Waits};

/// So often an agent that shows itself looks whether it is asked.
const PACE: Duration = Duration::from_millis(50);
/// So long an agent is waited for that computes.
const PATIENCE: Duration = Duration::from_millis(500);

/// An agent's loop calls [`Watch::show`] now and then.
pub struct Watch {
    blank: Status,
    job: Job,
    shown: Option<(Arc<Board<Status>>, Exporter)>,
}

impl Watch {
    /// Shows, at the address that the arguments name, what is written from now on; nothing if they name none.
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
            let show = move || match asked.ask(PATIENCE, || {}) {
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

    /// No longer than this the agent may wait for anything.
    pub fn at_most(&self, wait: Duration) -> Duration {
        match self.shown {
            Some(_) => wait.min(PACE),
            None => wait,
        }
    }

    /// If somebody asks, writes down what the agent counts and what it waits for.
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
