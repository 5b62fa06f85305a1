//! Input of files and output of messages, for all command lines.

pub mod disk;
pub mod stderr;
