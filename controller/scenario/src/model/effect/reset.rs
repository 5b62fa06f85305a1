//! `reset`: turns the TCP packet itself into a reset of its connection, with the sequence number that the receiver expects.

use parser_gen::engine::Action;
use parser_gen::{Headers, Library, reset};

use super::{Behaviour, Fate};

/// The effect that turns the packet into a TCP reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reset;

impl Behaviour for Reset {
    fn action(&self) -> Action {
        Action::Reset
    }

    fn compose(&self, _w: u32, _fate: &mut Fate) {}

    fn changes(&self) -> bool {
        true
    }

    fn change(&self, library: &Library, headers: &Headers, _w: u32, frame: &mut [u8]) {
        reset::apply(library, headers, frame);
    }
}
