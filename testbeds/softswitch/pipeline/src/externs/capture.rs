//! Requests of a Tofino deparser besides the packet: a mirrored copy, a resubmission, a generated packet.

/// Number of kinds of captures.
pub const KINDS: usize = 3;
/// `Mirror.emit`
pub const MIRROR: u8 = 0;
/// `Resubmit.emit`
pub const RESUBMIT: u8 = 1;
/// `Pktgen.emit`
pub const PKTGEN: u8 = 2;

/// The session (of a mirror), and the header of the copy.
pub type Capture = Option<(u64, Vec<u8>)>;
