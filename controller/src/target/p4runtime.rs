//! A switch behind P4Runtime. Calls block; a runtime of our own drives the stream in the background.

use super::{ANSWER_TIMEOUT, Item, PortCount, Query, Target, TargetError, UpdateType};
use p4lang::p4info::P4Info;
use p4rt::client::{Client, ClientError, Events, PipelineAction};
use softswitch::server::{connect_extension, weir as extension};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// There is one controller, so any id that is not 0 makes it primary.
const ELECTION_ID: u128 = 1;

/// A connection to a switch.
pub struct P4Runtime {
    name: String,
    runtime: Arc<Runtime>,
    client: Client,
    /// Dropping the stream would give up being primary.
    _events: Events,
}

impl P4Runtime {
    /// Connects to `address` (`host:port`) and becomes primary.
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
        let (client, events) = connected.map_err(|source| failure(name, source))?;
        Ok(Self {
            name: name.to_owned(),
            runtime,
            client,
            _events: events,
        })
    }
}

impl Target for P4Runtime {
    fn name(&self) -> &str {
        &self.name
    }

    fn load(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError> {
        let p4info = p4rt::p4info::to_proto(p4info);
        let action = PipelineAction::VerifyAndCommit;
        let call = self
            .client
            .set_pipeline(action, p4info, device_config.to_vec(), 0);
        self.runtime
            .block_on(call)
            .map_err(|source| failure(&self.name, source))
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

    fn port_counts(&mut self) -> Result<Vec<PortCount>, TargetError> {
        let reason = |reason: String| TargetError::PortCounters {
            switch: self.name.clone(),
            reason,
        };
        let response = self.runtime.block_on(async {
            let connected = connect_extension(self.client.address(), ANSWER_TIMEOUT).await;
            let mut switch = connected.map_err(|error| reason(error.to_string()))?;
            let call = switch.port_counters(extension::PortCountersRequest {});
            let answer = tokio::time::timeout(ANSWER_TIMEOUT, call).await;
            answer
                .map_err(|_| reason(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())))?
                .map_err(|status| reason(status.message().to_owned()))
        })?;
        let count = |port: extension::Port| PortCount {
            port: port.port,
            rx_frames: port.rx_frames,
            rx_bytes: port.rx_bytes,
            tx_frames: port.tx_frames,
            tx_bytes: port.tx_bytes,
            errors: port.rx_errors + port.tx_errors,
            rx_lost_frames: port.rx_lost_frames,
        };
        Ok(response.into_inner().ports.into_iter().map(count).collect())
    }
}

fn failure(switch: &str, source: ClientError) -> TargetError {
    TargetError::P4Runtime {
        switch: switch.to_owned(),
        source: Box::new(source),
    }
}
