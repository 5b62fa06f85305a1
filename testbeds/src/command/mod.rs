//! Runs the user's programs in hosts.
//!
//! A [`Program`] runs as the calling [`User`], in the network of its host, with its own folder of the [`Scratch`].
//! A bounded part of its [`CommandOutput`] is kept. Processes that it started end with it if they stay in its process group; others
//! end with the sandbox.

mod installed;
mod names;
mod output;
mod program;
mod scratch;
mod tree;
mod user;

pub use installed::{Missing, missing_of_line, missing_of_words};
pub use names::publish_names;
pub use output::{CommandOutput, Stream, StreamTail};
pub use program::{Handle, Program, Remains, describe_exit, exit_code};
pub use scratch::Scratch;
pub use tree::Census;
pub use user::{User, open_host};
