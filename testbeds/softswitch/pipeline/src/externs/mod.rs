//! State that extern objects keep between packets: registers, counters, meters, random numbers; and checksums of one packet.

pub mod capture;
pub mod checksum;
pub mod counter;
pub mod filter;
pub mod hash;
pub mod math;
pub mod meter;
pub mod random;
pub mod register;
