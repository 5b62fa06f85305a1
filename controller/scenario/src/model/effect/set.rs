//! `set: {ip.ecn: 3}`: sets fields of headers. The checksums over them are updated unless the file asks for `left`.

use parser_gen::engine::Action;
use parser_gen::rewrite::Rewrite;
use parser_gen::{Headers, Library};

use super::{Behaviour, Fate};

/// Sets fields of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// The fields and their values.
    pub rewrite: Rewrite,
    /// Description as in the file: `ip.ecn 3`.
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
