//! The interface between the controller and any kind of switch.
//!
//! [`P4Runtime`] implements it for the embedded switch and BMv2's `simple_switch_grpc`, [`PsaSwitch`] by Thrift for BMv2's
//! `psa_switch`.

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

/// Errors of a session with a switch.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// The switch refused a P4Runtime request, or did not answer.
    #[error("switch {switch}: {source}")]
    P4Runtime {
        /// Name of the switch in the topology.
        switch: String,
        /// Error of the P4Runtime client.
        source: Box<p4rt::client::ClientError>,
    },
    /// The switch refused a Thrift request, or did not answer.
    #[error("switch {switch}: {source}")]
    Thrift {
        /// Name of the switch in the topology.
        switch: String,
        /// Error of the Thrift client.
        source: Box<::bmv2::device::DeviceError>,
    },
    /// The switch refused one update of a batch.
    #[error("switch {switch}: {source} ({what})")]
    Update {
        /// Name of the switch in the topology.
        switch: String,
        /// The refused update, as text.
        what: String,
        /// Error of the Thrift client.
        source: Box<::bmv2::device::DeviceError>,
    },
    /// The device config (the compiled program) does not suit this kind of switch.
    #[error("switch {switch}: {reason}")]
    Config {
        /// Name of the switch in the topology.
        switch: String,
        /// Why the device config is not suitable.
        reason: String,
    },
    /// The switch's clock, for which P4Runtime has no request, cannot be read.
    #[error("switch {switch} does not report its clock: {reason}")]
    Clock {
        /// Name of the switch in the topology.
        switch: String,
        /// The switch's answer, or why this kind of switch has none.
        reason: String,
    },
    /// The port counters, for which P4Runtime has no request, cannot be read.
    #[error("switch {switch} does not report its port counters: {reason}")]
    PortCounters {
        /// Name of the switch in the topology.
        switch: String,
        /// The switch's answer, or why this kind of switch has none.
        reason: String,
    },
}

/// Counts of frames and bytes (without FCS) at a port of a switch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortCount {
    /// Number of the port.
    pub port: u32,
    /// Number of frames that the switch received.
    pub rx_frames: u64,
    /// Number of bytes that the switch received.
    pub rx_bytes: u64,
    /// Number of frames that the switch sent.
    pub tx_frames: u64,
    /// Number of bytes that the switch sent.
    pub tx_bytes: u64,
    /// Number of frames that arrived but were not processed, or that could not be sent.
    pub errors: u64,
    /// Number of frames in `errors` that arrived while the switch's queue was full; only captures contain these frames.
    pub rx_lost_frames: u64,
    /// Number of frames in `errors` that the port did not accept for sending.
    pub tx_lost_frames: u64,
    /// Number of frames that the switch marked (ECN) because too many frames waited for the port's link.
    pub tx_marked_frames: u64,
}

/// A reading of a switch's clock, whose time the P4 program sees with each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Number of ticks since an origin that the switch chooses.
    pub ticks: u64,
    /// Duration of a tick in nanoseconds.
    pub tick_ns: u64,
}

impl Clock {
    /// The time in ticks on this clock `ns` nanoseconds after the reading, for example as the deadline of a lease.
    pub fn after(self, ns: u64) -> u64 {
        self.ticks.saturating_add(ns / self.tick_ns)
    }
}

/// A session with a switch of any kind: loads programs, and reads and writes tables, registers and counters by name.
pub trait Target: Send {
    /// Name of the switch in the topology.
    fn name(&self) -> &str;
    /// Loads a P4 program, with empty tables, and starts it. `device_config` is the program in the switch's form.
    fn load(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError>;
    /// Prepares a P4 program beside the running one: later writes go to it, and [`Target::commit`] starts it. A kind of switch
    /// that cannot do so starts the program at once.
    fn save(&mut self, p4info: &P4Info, device_config: &[u8]) -> Result<(), TargetError> {
        self.load(p4info, device_config)
    }
    /// Starts the program of [`Target::save`] between two frames.
    fn commit(&mut self) -> Result<(), TargetError> {
        Ok(())
    }
    /// Replaces the P4 program between two frames. The new program takes over the entries and counts of the old one, where it
    /// has tables and cells of the same names.
    fn reconcile(&mut self, _: &P4Info, _: &[u8]) -> Result<(), TargetError> {
        Err(TargetError::Config {
            switch: self.name().to_owned(),
            reason: "this kind of switch cannot replace its program while it forwards frames"
                .to_owned(),
        })
    }
    /// Writes updates in order; returns the error of the first update that the switch refuses.
    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError>;
    /// Reads all items that match a query.
    fn read(&mut self, queries: &[Query]) -> Result<Vec<Item>, TargetError>;
    /// Whether the session is open, as far as is known without a request to the switch.
    fn is_connected(&self) -> bool {
        true
    }
    /// Reads the switch's clock; the deadline of a lease is a time of this clock.
    fn clock(&mut self) -> Result<Clock, TargetError> {
        Err(without_clock(self.name()))
    }
    /// Opens a second session with the switch, which calls of this session do not delay; `runtime` drives it. The two count as
    /// one controller: the second one may write only while this one lives, and only to the present program.
    fn lease_session(&self, _: &Arc<Runtime>) -> Result<Box<dyn LeaseSession>, TargetError> {
        Err(without_clock(self.name()))
    }
    /// Counts of all ports of the switch, by port number.
    #[cfg(feature = "testbed")]
    fn port_counts(&mut self) -> Result<Vec<PortCount>, TargetError>;
    /// Scheduling priority of the switch's packet thread: `real-time`, `high` or `ordinary`; `None` if it is unknown.
    #[cfg(feature = "testbed")]
    fn priority(&mut self) -> Option<String> {
        None
    }
    /// Number of frames that met a full queue in the switch since its program was loaded; 0 if the switch does not report it.
    #[cfg(feature = "testbed")]
    fn queue_losses(&mut self) -> Result<u64, TargetError> {
        Ok(0)
    }
}

/// A second session with a switch. It only extends the lease of the switch's faults, after which the faults have no effect.
pub trait LeaseSession: Send {
    /// Reads the switch's clock; the deadline of a lease is a time of this clock.
    fn clock(&mut self) -> Result<Clock, TargetError>;
    /// Writes updates in order; returns the error of the first update that the switch refuses.
    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError>;
}

fn without_clock(switch: &str) -> TargetError {
    TargetError::Clock {
        switch: switch.to_owned(),
        reason: "this kind of switch has no request for it".to_owned(),
    }
}

/// Timeout for a switch to answer a request.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
