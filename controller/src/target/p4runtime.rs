//! A session with a switch by P4Runtime. Calls block; an asynchronous runtime reads the switch's notifications meanwhile.

use super::{ANSWER_TIMEOUT, Item, Query, Target, TargetError, UpdateType};
use p4lang::p4info::P4Info;
use p4lang::runtime::TableEntry;
use p4rt::client::{Client, ClientError, PipelineAction};
use p4rt::rpc::Code;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// P4Runtime election id of weir: the controller with the highest becomes primary. As weir is the only one, any but 0 does.
const ELECTION_ID: u128 = 1;

/// Interval between attempts to become primary while another controller is primary.
const TRY_AGAIN: Duration = Duration::from_millis(50);

/// A P4Runtime session with a switch, as its primary controller.
pub struct P4Runtime {
    name: String,
    runtime: Arc<Runtime>,
    client: Client,
    /// Whether the switch can prepare a program beside the running one: BMv2 accepts entries only for the running program.
    swaps: bool,
    /// P4Info of the program that was prepared beside the running one; `None` if none was.
    saved: Option<P4Info>,
    /// Task that reads the switch's notifications until the stream ends.
    listening: JoinHandle<()>,
}

/// Ends the notification stream, with which the session gives up the role of primary.
impl Drop for P4Runtime {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl P4Runtime {
    /// Connects to the switch at `address` (`host:port`), and becomes its primary controller.
    pub fn connect(
        runtime: Arc<Runtime>,
        name: &str,
        address: &str,
        device_id: u64,
    ) -> Result<Self, TargetError> {
        let connected = runtime.block_on(async {
            let mut client = Client::connect(address, device_id, ANSWER_TIMEOUT).await?;
            let events = client.become_primary(ELECTION_ID).await?;
            Ok((client, events))
        });
        let (client, mut events) = connected.map_err(|source| failure(name, source))?;
        let listening =
            runtime.spawn(async move { while let Ok(Some(_)) = events.next().await {} });
        Ok(Self {
            name: name.to_owned(),
            runtime,
            client,
            swaps: false,
            saved: None,
            listening,
        })
    }

    /// Connects to a switch that has a P4 program, and reads the names of its tables. While another controller is primary, it
    /// retries for `patience`.
    pub fn attach(
        runtime: Arc<Runtime>,
        name: &str,
        address: &str,
        device_id: u64,
        patience: Duration,
    ) -> Result<Self, TargetError> {
        let begun = Instant::now();
        let mut target = loop {
            match Self::connect(Arc::clone(&runtime), name, address, device_id) {
                Err(TargetError::P4Runtime { source, .. })
                    if is_taken(&source) && begun.elapsed() < patience =>
                {
                    std::thread::sleep(TRY_AGAIN);
                }
                connected => break connected?,
            }
        };
        match runtime.block_on(target.client.fetch_pipeline()) {
            Ok(_) => Ok(target),
            // The switch has no program, and can load one.
            Err(ClientError::NoPipeline { .. }) => Ok(target),
            Err(ClientError::Rpc {
                code: Code::FailedPrecondition,
                ..
            }) => Ok(target),
            Err(source) => Err(failure(name, source)),
        }
    }

    /// Declares that the switch can prepare a program beside the running one, as the embedded switch can.
    pub fn swapping(mut self) -> Self {
        self.swaps = true;
        self
    }

    /// Whether the switch's P4 program has a table of this name.
    pub fn has_table(&self, table: &str) -> bool {
        let index = self.client.index();
        index.is_ok_and(|index| index.tables.named(table).is_some())
    }

    /// Whether the switch has a P4 program, whose names the session knows.
    pub fn has_program(&self) -> bool {
        self.client.index().is_ok()
    }

    /// The entries of a table, each with the metadata that a controller stored with the entry.
    pub fn read_noted(&mut self, table: &str) -> Result<Vec<(TableEntry, Vec<u8>)>, TargetError> {
        self.runtime
            .block_on(self.client.read_noted(table))
            .map_err(|source| failure(&self.name, source))
    }

    fn set_pipeline(
        &mut self,
        action: PipelineAction,
        p4info: &P4Info,
        device_config: &[u8],
    ) -> Result<(), TargetError> {
        let p4info = p4rt::p4info::to_proto(p4info);
        let call = self
            .client
            .set_pipeline(action, p4info, device_config.to_vec(), 0);
        self.runtime
            .block_on(call)
            .map_err(|source| failure(&self.name, source))
    }

    #[cfg(feature = "testbed")]
    fn without_counters(&self, reason: String) -> TargetError {
        TargetError::PortCounters {
            switch: self.name.clone(),
            reason,
        }
    }
}

impl Target for P4Runtime {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_connected(&self) -> bool {
        !self.listening.is_finished()
    }

    fn load(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError> {
        self.set_pipeline(PipelineAction::VerifyAndCommit, p4info, device_config)
    }

    fn save(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError> {
        if !self.swaps {
            return self.load(p4info, device_config);
        }
        self.set_pipeline(PipelineAction::VerifyAndSave, p4info, device_config)?;
        self.saved = Some(p4info.clone());
        Ok(())
    }

    fn commit(&mut self) -> Result<(), TargetError> {
        match self.saved.take() {
            Some(p4info) => self.set_pipeline(PipelineAction::Commit, &p4info, &[]),
            None => Ok(()),
        }
    }

    fn reconcile(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError> {
        self.set_pipeline(PipelineAction::ReconcileAndCommit, p4info, device_config)
    }

    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError> {
        if updates.is_empty() {
            return Ok(());
        }
        self.runtime
            .block_on(self.client.apply(updates))
            .map_err(|source| failure(&self.name, source))
    }

    fn read(&mut self, queries: &[Query]) -> Result<Vec<Item>, TargetError> {
        self.runtime
            .block_on(self.client.read(queries))
            .map_err(|source| failure(&self.name, source))
    }

    /// Reads the clock of the embedded switch, in nanoseconds; another kind of switch returns an error.
    #[cfg(feature = "testbed")]
    fn clock(&mut self) -> Result<super::Clock, TargetError> {
        let told = super::extension::clock(&self.runtime, self.client.address());
        let ticks = told.map_err(|reason| no_clock(&self.name, reason))?;
        Ok(super::Clock { ticks, tick_ns: 1 })
    }

    /// Opens two separate connections to the embedded switch: one that writes, and one that reads the clock.
    #[cfg(feature = "testbed")]
    fn lease_session(
        &self,
        runtime: &Arc<Runtime>,
    ) -> Result<Box<dyn super::LeaseSession>, TargetError> {
        let client = runtime
            .block_on(self.client.connect_beside())
            .map_err(|source| failure(&self.name, source))?;
        let clock = super::extension::ClockConnection::open(runtime, client.address());
        Ok(Box::new(P4RuntimeLease {
            name: self.name.clone(),
            runtime: Arc::clone(runtime),
            clock: clock.map_err(|reason| no_clock(&self.name, reason))?,
            client,
        }))
    }

    #[cfg(feature = "testbed")]
    fn port_counts(&mut self) -> Result<Vec<super::PortCount>, TargetError> {
        super::extension::port_counts(&self.runtime, self.client.address())
            .map_err(|reason| self.without_counters(reason))
    }

    #[cfg(feature = "testbed")]
    fn queue_losses(&mut self) -> Result<u64, TargetError> {
        super::extension::queue_losses(&self.runtime, self.client.address())
            .map_err(|reason| self.without_counters(reason))
    }

    #[cfg(feature = "testbed")]
    fn priority(&mut self) -> Option<String> {
        super::extension::priority(&self.runtime, self.client.address()).ok()
    }
}

/// A second session with the embedded switch, which extends the lease of the switch's faults.
#[cfg(feature = "testbed")]
struct P4RuntimeLease {
    name: String,
    runtime: Arc<Runtime>,
    client: Client,
    clock: super::extension::ClockConnection,
}

#[cfg(feature = "testbed")]
impl super::LeaseSession for P4RuntimeLease {
    fn clock(&mut self) -> Result<super::Clock, TargetError> {
        let told = self.clock.now(&self.runtime);
        let ticks = told.map_err(|reason| no_clock(&self.name, reason))?;
        Ok(super::Clock { ticks, tick_ns: 1 })
    }

    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError> {
        self.runtime
            .block_on(self.client.apply(updates))
            .map_err(|source| failure(&self.name, source))
    }
}

#[cfg(feature = "testbed")]
fn no_clock(switch: &str, reason: String) -> TargetError {
    TargetError::Clock {
        switch: switch.to_owned(),
        reason,
    }
}

/// Whether a connection failed because another controller is primary, with the same or a higher election id.
fn is_taken(error: &ClientError) -> bool {
    match error {
        ClientError::NotPrimary { .. } => true,
        ClientError::Rpc { code, .. } => *code == Code::InvalidArgument,
        _ => false,
    }
}

fn failure(switch: &str, source: ClientError) -> TargetError {
    TargetError::P4Runtime {
        switch: switch.to_owned(),
        source: Box::new(source),
    }
}
