//! Input and output that the command lines of `weir` and the software switch share: files in, messages out.

pub mod disk;
pub mod stderr;
