//! Where a scenario says something, for what is found out long after it was read.

use crate::diagnostic::Span;
use crate::model::Scenario;
use crate::yaml::{self, Kind};

impl Scenario {
    /// Where a key stands, by the keys that lead to it; the last of these that the file has, `None` if not even the first.
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
