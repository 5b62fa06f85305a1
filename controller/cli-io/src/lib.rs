//! What the command lines share: files in, messages out.

pub mod disk;
pub mod stderr;
