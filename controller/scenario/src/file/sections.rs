//! Positions of keys in the file, for diagnostics long after it was read.

use crate::diagnostic::Span;
use crate::file::yaml::{self, Kind};
use crate::model::Scenario;

impl Scenario {
    /// Position of a key, given the path of keys to it; the last key of the path that the file has, `None` if it has not
    /// even the first.
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
