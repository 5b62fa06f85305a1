//! The interface between the controller and any kind of switch.
//!
//! P4Runtime is its first implementation: the embedded switch and BMv2's `simple_switch_grpc` use the same client. Thrift, for
//! BMv2's `psa_switch`, is the second.

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

/// Errors of a switch.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The switch refused a P4Runtime request, or did not answer.
    #[error("switch {switch}: {source}")]
    P4Runtime {
        /// Name of the switch in the topology.
        switch: String,
        /// The client's error.
        source: Box<p4rt::client::ClientError>,
    },
    /// The switch refused a Thrift request, or did not answer.
    #[error("switch {switch}: {source}")]
    Thrift {
        /// Name of the switch in the topology.
        switch: String,
        /// The client's error.
        source: Box<::bmv2::device::DeviceError>,
    },
    /// The switch refused one of several updates.
    #[error("switch {switch}: {source} ({what})")]
    Update {
        /// Name of the switch in the topology.
        switch: String,
        /// The refused update.
        what: String,
        /// The client's error.
        source: Box<::bmv2::device::DeviceError>,
    },
    /// The device config does not suit this kind of switch.
    #[error("switch {switch}: {reason}")]
    Config {
        /// Name of the switch in the topology.
        switch: String,
        /// The defect in the device config.
        reason: String,
    },
    /// The switch's clock, which P4Runtime does not offer, cannot be read.
    #[error("switch {switch} does not report its clock: {reason}")]
    Clock {
        /// Name of the switch in the topology.
        switch: String,
        /// The switch's answer.
        reason: String,
    },
    /// The port counters cannot be read: a service of the embedded switch outside P4Runtime offers them.
    #[error("switch {switch} does not report its port counters: {reason}")]
    PortCounters {
        /// Name of the switch in the topology.
        switch: String,
        /// The switch's answer.
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
    /// Frames that arrived and were not processed, or were not sent.
    pub errors: u64,
    /// The part of `errors` that arrived while too many frames waited for the switch. Only a capture shows these frames.
    pub rx_lost_frames: u64,
    /// The part of `errors` that the port did not accept for sending.
    pub tx_lost_frames: u64,
    /// Number of frames that the port has marked (ECN) because too many frames waited for the link.
    pub tx_marked_frames: u64,
}

/// A reading of a switch's clock, which the switch's programs receive with each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Ticks since an origin that the switch chooses.
    pub ticks: u64,
    /// Duration of a tick in nanoseconds.
    pub tick_ns: u64,
}

impl Clock {
    /// The clock's ticks `ns` nanoseconds later: the deadline of a lease.
    pub fn after(self, ns: u64) -> u64 {
        self.ticks.saturating_add(ns / self.tick_ns)
    }
}

/// A switch as the controller sees it: programs, entries, cells, by name.
pub trait Target: Send {
    /// Name of the switch in the topology.
    fn name(&self) -> &str;
    /// Loads a program in its initial state and starts it.
    fn load(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError>;
    /// Prepares a program beside the running one: later writes apply to it, until [`Target::commit`]. A kind of switch without
    /// this ability loads the program at once.
    fn save(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError> {
        self.load(p4info, device_config)
    }
    /// Starts the prepared program between two frames.
    fn commit(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
    /// Loads a program between two frames. It takes over the entries and counts of the running one, where it has tables and
    /// cells of the same names.
    fn reconcile(&mut self, _: &P4Info, _: &[u8]) -> Result<(), TargetError> {
        Err(TargetError::Config {
            switch: self.name().to_owned(),
            reason: "this kind of switch cannot replace its program while it forwards frames"
                .to_owned(),
        })
    }
    /// Writes a batch; returns the error of the first refused update.
    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError>;
    /// Reads the items that match the queries.
    fn read(&mut self, queries: &[Query]) -> Result<Vec<Item>, TargetError>;
    /// Whether the switch can receive requests, as far as is known without sending one.
    fn is_connected(&self) -> bool {
        true
    }
    /// Reads the clock of the switch, for leases.
    fn clock(&mut self) -> Result<Clock, TargetError> {
        Err(without_clock(self.name()))
    }
    /// Opens another session with the switch, which no call of this one delays. `runtime` drives its connections. It writes for
    /// the same controller: only as long as this session lives, and to the program that the switch has now.
    fn lease_session(&self, _: &Arc<Runtime>) -> Result<Box<dyn LeaseSession>, TargetError> {
        Err(without_clock(self.name()))
    }
    /// Counters of all ports, by number.
    #[cfg(feature = "testbed")]
    fn port_counts(&mut self) -> Result<Vec<PortCount>, TargetError>;
    /// Scheduling priority of the switch's packets: `real-time`, `high` or `ordinary`; `None` if the switch does not report it.
    #[cfg(feature = "testbed")]
    fn priority(&mut self) -> Option<String> {
        None
    }
    /// Number of frames that met a full queue in the switch since the program was loaded; 0 if the switch does not report it.
    #[cfg(feature = "testbed")]
    fn queue_losses(&mut self) -> Result<u64, TargetError> {
        Ok(0)
    }
}

/// A session that refreshes the lease of a switch's faults, and does nothing else.
pub trait LeaseSession: Send {
    /// Reads the switch's clock.
    fn clock(&mut self) -> Result<Clock, TargetError>;
    /// Writes a batch; returns the error of the first refused update.
    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError>;
}

fn without_clock(switch: &str) -> TargetError {
    TargetError::Clock {
        switch: switch.to_owned(),
        reason: "this kind of switch has no request for it".to_owned(),
    }
}

/// Timeout for an answer of a switch.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
