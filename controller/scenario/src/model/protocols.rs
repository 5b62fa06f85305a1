//! The protocols that a scenario's filters and fields may name: those built into weir, and files of the user.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use parser_gen::{Library, LibraryError, PayloadSlice, ProtocolSource};

/// The library of protocols that filters may name: the built-in protocols and the user's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocols {
    library: Library,
    own: Vec<ProtocolSource>,
    slices: Vec<PayloadSlice>,
}

impl Protocols {
    /// The built-in protocols only.
    #[must_use]
    pub fn builtin() -> Arc<Protocols> {
        static BUILTIN: LazyLock<Arc<Protocols>> =
            LazyLock::new(|| Arc::new(Protocols::new(Library::builtin(), Vec::new(), Vec::new())));
        Arc::clone(&BUILTIN)
    }

    /// The built-in protocols, the user's protocol files, and the ranges of payload bytes (slices) that filters test.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Library::with_payload`].
    pub fn with(
        own: Vec<ProtocolSource>,
        slices: Vec<PayloadSlice>,
    ) -> Result<Arc<Protocols>, LibraryError> {
        if own.is_empty() && slices.is_empty() {
            return Ok(Protocols::builtin());
        }
        let library = Library::with_payload(&own, &slices)?;
        Ok(Arc::new(Protocols::new(library, own, slices)))
    }

    /// The protocols that at least one of two scenarios has.
    ///
    /// # Errors
    ///
    /// Returns an error if the protocol files of the two scenarios contradict each other.
    pub fn union(&self, other: &Protocols) -> Result<Arc<Protocols>, LibraryError> {
        let mut own = self.own.clone();
        for source in &other.own {
            // The same text may come under another path.
            if own.iter().all(|before| before.text != source.text) {
                own.push(source.clone());
            }
        }
        let slices = self.slices.iter().chain(&other.slices).copied().collect();
        Protocols::with(own, slices)
    }

    fn new(library: Library, own: Vec<ProtocolSource>, slices: Vec<PayloadSlice>) -> Protocols {
        Protocols {
            library,
            own,
            slices,
        }
    }

    /// The protocol files of the user, without the built-in protocols.
    #[must_use]
    pub fn own(&self) -> &[ProtocolSource] {
        &self.own
    }
}

impl Deref for Protocols {
    type Target = Library;

    fn deref(&self) -> &Library {
        &self.library
    }
}
