//! The seam between the controller and whatever switch there is.
//!
//! P4Runtime is its first implementation: the embedded switch and BMv2's `simple_switch_grpc` are reached through the same
//! client. Thrift, for BMv2's `psa_switch`, is the second.

pub mod bmv2;
#[cfg(feature = "testbed")]
pub(crate) mod extension;
mod kind;
mod p4runtime;
mod psa_switch;

pub use kind::Kind;
pub use p4rt::client::{Query, UpdateType};
pub use p4rt::translate::Item;
pub use p4runtime::P4Runtime;
pub use psa_switch::PsaSwitch;

use p4lang::p4info::P4Info;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// What can go wrong with a switch.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// It refused, or did not answer.
    #[error("switch {switch}: {source}")]
    P4Runtime {
        /// Its name in the topology.
        switch: String,
        /// What the client says.
        source: Box<p4rt::client::ClientError>,
    },
    /// It refused, or did not answer.
    #[error("switch {switch}: {source}")]
    Thrift {
        /// Its name in the topology.
        switch: String,
        /// What the client says.
        source: Box<::bmv2::device::DeviceError>,
    },
    /// It refused one of many updates.
    #[error("switch {switch}: {source} ({what})")]
    Update {
        /// Its name in the topology.
        switch: String,
        /// What was to be written.
        what: String,
        /// What the client says.
        source: Box<::bmv2::device::DeviceError>,
    },
    /// The device config is not what this kind of switch takes.
    #[error("switch {switch}: {reason}")]
    Config {
        /// Its name in the topology.
        switch: String,
        /// What is wrong.
        reason: String,
    },
    /// Its clock: no P4Runtime either.
    #[error("switch {switch} does not tell its clock: {reason}")]
    Clock {
        /// Its name in the topology.
        switch: String,
        /// What it answered.
        reason: String,
    },
    /// Port counters: no P4Runtime, but a service of the embedded switch.
    #[error("switch {switch} does not tell its port counters: {reason}")]
    PortCounters {
        /// Its name in the topology.
        switch: String,
        /// What it answered.
        reason: String,
    },
}

/// Frames and bytes (without FCS) at a port, seen from the switch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortCount {
    /// Number of the port.
    pub port: u32,
    /// Frames received.
    pub rx_frames: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Arrived and not processed, or not sent.
    pub errors: u64,
    /// Of these, frames that arrived while too many others waited for the switch. It knows nothing of them, a capture does.
    pub rx_lost_frames: u64,
    /// Of these, frames that the port did not take to send.
    pub tx_lost_frames: u64,
    /// Frames that the port has marked (ECN) because too many waited for the link.
    pub tx_marked_frames: u64,
}

/// What a switch's clock shows, as its programs get it with each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Ticks since an origin of the switch's.
    pub ticks: u64,
    /// How long one is.
    pub tick_ns: u64,
}

impl Clock {
    /// What it will show so much later: the deadline of a lease.
    #[must_use]
    pub fn after(self, ns: u64) -> u64 {
        self.ticks.saturating_add(ns / self.tick_ns)
    }
}

/// A switch as the controller sees it: programs, entries, cells, by name.
pub trait Target: Send {
    /// Its name in the topology.
    fn name(&self) -> &str;
    /// Loads a program in its initial state and starts it.
    fn load(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError>;
    /// Makes a program ready beside the one that runs: what is written from now on is written to it, until [`Target::commit`].
    /// A kind of switch that cannot do so loads it at once.
    fn save(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError> {
        self.load(p4info, device_config)
    }
    /// Starts the program that was made ready, between two frames.
    fn commit(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
    /// Loads a program between two frames that takes over what the running one was told and has counted, where it has tables
    /// and cells of the same names.
    fn reconcile(&mut self, _: &P4Info, _: &[u8]) -> Result<(), TargetError> {
        Err(TargetError::Config {
            switch: self.name().to_owned(),
            reason: "this kind of switch takes no program in the place of one that forwards"
                .to_owned(),
        })
    }
    /// Writes a batch; the first update that is refused is the error.
    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError>;
    /// Reads what the queries ask for.
    fn read(&mut self, queries: &[Query]) -> Result<Vec<Item>, TargetError>;
    /// Whether it can be told anything, as far as is known without a word to it.
    fn is_connected(&self) -> bool {
        true
    }
    /// Its clock, for leases.
    fn clock(&mut self) -> Result<Clock, TargetError> {
        Err(without_clock(self.name()))
    }
    /// Opens another session with the switch, which no call of this one keeps waiting. `runtime` drives its connections. It writes
    /// for the same controller: only as long as this session lives, and to the program that the switch has now.
    fn lease_session(&self, _: &Arc<Runtime>) -> Result<Box<dyn LeaseSession>, TargetError> {
        Err(without_clock(self.name()))
    }
    /// All ports, by number.
    #[cfg(feature = "testbed")]
    fn port_counts(&mut self) -> Result<Vec<PortCount>, TargetError>;
    /// How soon it runs packets when it is woken: `real-time`, `high` or `ordinary`; nothing if it does not say.
    #[cfg(feature = "testbed")]
    fn priority(&mut self) -> Option<String> {
        None
    }
    /// Frames that met a full queue within it, since the program was loaded; 0 if it does not say.
    #[cfg(feature = "testbed")]
    fn queue_losses(&mut self) -> Result<u64, TargetError> {
        Ok(0)
    }
}

/// A session that refreshes the lease of a switch's faults, and does nothing else.
pub trait LeaseSession: Send {
    /// The switch's clock.
    fn clock(&mut self) -> Result<Clock, TargetError>;
    /// Writes a batch; the first update that is refused is the error.
    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError>;
}

fn without_clock(switch: &str) -> TargetError {
    TargetError::Clock {
        switch: switch.to_owned(),
        reason: "this kind of switch has no call for it".to_owned(),
    }
}

/// How long a switch may take to answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
