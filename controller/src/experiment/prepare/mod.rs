//! First phase of a run: prepares a network whose switches run the plan's programs, and the environment of the user's programs.

pub mod capture_cost;
mod conditions;
mod environment;
mod installed;
pub mod recorded;
mod switch_process;
mod testbed;

pub use conditions::{Conditions, WireEnds};
pub use environment::{Environment, EnvironmentError, ProgramFolders};
pub use installed::check_installed;
pub use recorded::Record;
pub use switch_process::{LaunchError, START_TIMEOUT, SwitchProcess};
pub use testbed::Testbed;
