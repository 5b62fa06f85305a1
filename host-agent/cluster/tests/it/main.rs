//! The tests of the protocol, as one program: each further one would be linked separately.

mod common;
mod congestion;
mod late;
mod machines;
mod protocol;
mod prototype_defects;
mod ranks;
mod recovery;
mod shares;
mod simulation;
mod strangers;
