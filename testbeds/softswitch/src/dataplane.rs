//! What the switch asks of a loaded program: packets in virtual time, and its state for the control plane.

use p4lang::p4info::P4Info;
use pipeline::{DigestMessage, EntryState, Switch};

/// A frame that leaves the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transmit {
    /// Egress port, also the CPU port.
    pub port: u32,
    /// The frame, without FCS.
    pub frame: Vec<u8>,
}

/// A program in execution. Pure: it knows no clock and no port; `now_ns` counts from an origin of the caller's.
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

    /// The next thing that the control plane is told of, apart from packets.
    fn poll_event(&mut self) -> Option<Event>;

    /// The same program for other workers, where it can run on several: their switches are siblings of this one's
    /// ([`Switch::sibling`]). They are given away once.
    fn take_siblings(&mut self) -> Vec<Box<dyn Dataplane>> {
        Vec::new()
    }

    /// The program's state, for the control plane.
    fn switch(&self) -> &Switch;
    /// The program's state, for the control plane.
    fn switch_mut(&mut self) -> &mut Switch;
}

/// What a program has for the control plane.
#[derive(Debug, Clone)]
pub enum Event {
    /// A frame on the CPU port, headers and all.
    Packet(Vec<u8>),
    /// A digest message.
    Digest(DigestMessage),
    /// No packet has found the entry for its idle timeout: its table's position, and itself.
    Idle(usize, Box<EntryState>),
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
