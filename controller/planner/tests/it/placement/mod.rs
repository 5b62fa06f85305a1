//! Placement of workers, and of what they need.

mod robust;
mod workers;
