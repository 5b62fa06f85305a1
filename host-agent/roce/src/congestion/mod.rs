//! Congestion control: marked packets make CNPs, CNPs make the sender slower.

mod cnp;
mod dcqcn;

pub(crate) use cnp::CnpTimer;
pub use dcqcn::DcqcnConfig;
pub(crate) use dcqcn::RateLimiter;
