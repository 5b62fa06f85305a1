//! What the switch asks of a loaded program: packets in virtual time, and control by name.

use p4lang::p4info::P4Info;
use p4lang::runtime::{ActionCall, CloneSession, MulticastGroup, TableEntry};
use p4rt::status::{UpdateError, UpdateResult};
use p4rt::translate::CounterValue;

/// A frame that leaves the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// Egress port, also the CPU port.
    pub port: u32,
    /// The frame, without FCS.
    pub frame: Vec<u8>,
}

/// A program in execution. Pure: it knows no clock and no port; `now_ns` counts from an origin of the caller's.
///
/// Names are fully qualified and exist: callers have checked them, and keys, widths and indices, against the program's
/// P4Info.
pub trait Dataplane: Send {
    /// Processes a frame.
    fn handle_packet(&mut self, now_ns: u64, port: u32, frame: &[u8]);
    /// Does what was due by `now_ns`.
    fn handle_timeout(&mut self, now_ns: u64);
    /// When something will be due.
    fn poll_timeout(&self) -> Option<u64>;
    /// The next frame to send.
    fn poll_transmit(&mut self) -> Option<Transmit>;
    /// Takes the buffer of a sent frame back.
    fn recycle(&mut self, frame: Vec<u8>) {
        drop(frame);
    }
    /// Frames that ended in the program, by reason, in order of the reason.
    fn drops(&self) -> Vec<(String, u64)>;

    /// From here on writes are recorded, until [`Self::commit`] or [`Self::rollback`].
    fn begin(&mut self);
    /// Keeps what was written since [`Self::begin`].
    fn commit(&mut self);
    /// Takes back what was written since [`Self::begin`].
    fn rollback(&mut self);

    /// Adds an entry. `AlreadyExists`, `ResourceExhausted`, `PermissionDenied` (const entries).
    fn insert_entry(&mut self, entry: &TableEntry) -> UpdateResult;
    /// Replaces the action of the entry with this key and priority. `NotFound`, `PermissionDenied`.
    fn modify_entry(&mut self, entry: &TableEntry) -> UpdateResult;
    /// Removes the entry with this key and priority. `NotFound`, `PermissionDenied`.
    fn delete_entry(&mut self, entry: &TableEntry) -> UpdateResult;
    /// The entries of a table, its const ones included.
    fn entries(&self, table: &str) -> Vec<TableEntry>;
    /// The entry with this key and priority.
    fn entry(&self, entry: &TableEntry) -> Option<TableEntry>;
    /// Sets the default action, or resets it to the program's. `PermissionDenied` (const).
    fn set_default_action(&mut self, table: &str, action: Option<&ActionCall>) -> UpdateResult;
    /// The default action.
    fn default_action(&self, table: &str) -> Option<ActionCall>;

    /// Adds or replaces a multicast group.
    fn set_multicast_group(&mut self, group: &MulticastGroup) -> UpdateResult;
    /// Removes a multicast group. `NotFound`.
    fn remove_multicast_group(&mut self, id: u32) -> UpdateResult;
    /// The group with this id.
    fn multicast_group(&self, id: u32) -> Option<MulticastGroup>;
    /// In order of the id.
    fn multicast_groups(&self) -> Vec<MulticastGroup>;
    /// Adds or replaces a clone session.
    fn set_clone_session(&mut self, session: &CloneSession) -> UpdateResult;
    /// Removes a clone session. `NotFound`.
    fn remove_clone_session(&mut self, id: u32) -> UpdateResult;
    /// The session with this id.
    fn clone_session(&self, id: u32) -> Option<CloneSession>;
    /// In order of the id.
    fn clone_sessions(&self) -> Vec<CloneSession>;

    /// The fields of a register's cell, as bit patterns.
    fn read_register(&self, name: &str, index: u64) -> Result<Vec<u128>, UpdateError>;
    /// Sets the fields of a register's cell.
    fn write_register(&mut self, name: &str, index: u64, fields: &[u128]) -> UpdateResult;
    /// A counter's cell.
    fn read_counter(&self, name: &str, index: u64) -> Result<CounterValue, UpdateError>;
    /// Sets a counter's cell.
    fn write_counter(&mut self, name: &str, index: u64, value: CounterValue) -> UpdateResult;
}

/// A program, ready to run.
pub struct Program {
    /// What a control plane may address in it.
    pub p4info: P4Info,
    /// The program in its initial state.
    pub dataplane: Box<dyn Dataplane>,
}

/// Why a device config is no program: the compiler's diagnostics, rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(pub String);

/// Makes programs of device configs.
pub trait Loader: Send + Sync + 'static {
    /// The program that `device_config` holds.
    fn load(&self, device_config: &[u8]) -> Result<Program, LoadError>;
}
