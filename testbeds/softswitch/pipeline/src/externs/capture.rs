//! Requests of a Tofino's deparser for further packets: mirrored, resubmitted, generated.

/// Number of kinds of requests: mirrored, resubmitted, generated packets.
pub const KINDS: usize = 3;
/// Kind of the request that `Mirror.emit` makes.
pub const MIRROR: u8 = 0;
/// Kind of the request that `Resubmit.emit` makes.
pub const RESUBMIT: u8 = 1;
/// Kind of the request that `Pktgen.emit` makes.
pub const PKTGEN: u8 = 2;

/// A deparser's request for a further packet: mirror session (0 if not mirrored), header bytes. `None`: no request.
pub type Capture = Option<(u64, Vec<u8>)>;
