//! `set: {ip.ecn: 3}`: sets fields of headers. The checksums over these fields are updated unless the file asks for `left`.

use parser_gen::engine::Action;
use parser_gen::rewrite::Rewrite;
use parser_gen::{Headers, Library};

use super::{Behaviour, Fate};

/// The effect that sets fields of the packet's headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// The fields to set with their values, and the treatment of checksums.
    pub rewrite: Rewrite,
    /// Description of the change as in the file: `ip.ecn 3`.
    pub told: String,
}

impl Behaviour for Set {
    fn action(&self) -> Action {
        Action::Rewrite(self.rewrite.clone())
    }

    fn compose(&self, _w: u32, _fate: &mut Fate) {}

    fn changes(&self) -> bool {
        true
    }

    fn change(&self, library: &Library, headers: &Headers, _w: u32, frame: &mut [u8]) {
        self.rewrite.apply(library, headers, frame, 0);
    }
}
