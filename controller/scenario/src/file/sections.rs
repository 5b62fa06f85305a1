//! Finds the position of a key in the scenario file again, for diagnostics long after the file was read.

use crate::diagnostic::Span;
use crate::file::yaml::{self, Kind};
use crate::model::Scenario;

impl Scenario {
    /// Position of a key in the file. `keys` is the path of keys from the top of the file to this key. If the file has only the
    /// first keys of the path, the last of these is returned; `None` if it has none of them.
    #[must_use]
    pub fn span_of(&self, keys: &[&str]) -> Option<Span> {
        let root = yaml::parse(&mut self.sink())?;
        let (mut node, mut found) = (&root, None);
        for key in keys {
            let Kind::Map(entries) = &node.kind else {
                break;
            };
            let Some(entry) = entries.iter().find(|entry| entry.key == *key) else {
                break;
            };
            (node, found) = (&entry.value, Some(entry.key_span));
        }
        found
    }
}
