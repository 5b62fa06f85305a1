//! What a Tofino deparser asks for besides the packet: a mirrored copy, a resubmission, a generated packet.

/// Kinds of captures.
pub const KINDS: usize = 3;
/// `Mirror.emit`
pub const MIRROR: u8 = 0;
/// `Resubmit.emit`
pub const RESUBMIT: u8 = 1;
/// `Pktgen.emit`
pub const PKTGEN: u8 = 2;

/// Session (of a mirror), and the header that goes with it.
pub type Capture = Option<(u64, Vec<u8>)>;
