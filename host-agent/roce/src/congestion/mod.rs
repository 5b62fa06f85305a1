//! Congestion control: receivers of marked packets send CNPs, and CNPs slow the sender down.

mod cnp;
mod dcqcn;

pub(crate) use cnp::CnpTimer;
pub use dcqcn::DcqcnConfig;
pub(crate) use dcqcn::RateLimiter;
