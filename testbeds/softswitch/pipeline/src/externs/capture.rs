//! Requests of a Tofino's deparser for further packets: mirrored, resubmitted, generated.

/// Number of kinds of requests: mirrored, resubmitted, generated packets.
pub const KINDS: usize = 3;
/// Kind of the request that `Mirror.emit` makes.
pub const MIRROR: u8 = 0;
/// Kind of the request that `Resubmit.emit` makes.
pub const RESUBMIT: u8 = 1;
/// Kind of the request that `Pktgen.emit` makes.
pub const PKTGEN: u8 = 2;

/// A deparser's request for a packet: mirror session (0 for other kinds), bytes of the header. `None`: no request.
pub type Capture = Option<(u64, Vec<u8>)>;
