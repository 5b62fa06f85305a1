//! Where workers run, and where what they need stands.

mod robust;
mod workers;
