//! Programs of the user's in hosts.
//!
//! A [`Program`] runs as the [`User`] who called us, in the network of its host, with a folder of the [`Scratch`] for itself;
//! its [`Output`] is kept, bounded. What it started ends with it, as far as that stays in its process group; what does not
//! ends with the sandbox.

mod installed;
mod names;
mod output;
mod program;
mod scratch;
mod tree;
mod user;

pub use installed::{Missing, missing_of_line, missing_of_words};
pub use names::publish_names;
pub use output::{Kept, Output, Stream};
pub use program::{Handle, Program, Remains, describe_exit, exit_code};
pub use scratch::Scratch;
pub use tree::Census;
pub use user::{User, open_host};
