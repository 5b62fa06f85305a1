//! A reference lookup for tests, which compares every table entry with the key; and the comparison of two tables.

use super::key::FieldKey;
use super::{Index, Table, key};
use p4lang::runtime::FieldMatch;

impl Table {
    /// Finds the same entry as `lookup`: among matching entries, the entry with the highest priority, or with the longest
    /// prefix if the table has no priorities (P4_16 14.2.1.4, P4Runtime 9.1); among equals the first by key.
    pub fn lookup_one_by_one(&self, words: &[u64]) -> Option<Index> {
        let mut values = Vec::with_capacity(self.spec.fields.len());
        let mut rest = words;
        for field in &self.spec.fields {
            let own = rest.split_off(..(field.slots() as usize).min(rest.len()));
            values.push(own.unwrap_or_default());
        }
        let rank_and_key = |row: Index| {
            let key = self.fields(row);
            let rank = if self.spec.wants_priority() {
                i64::from(self.priority(row))
            } else {
                key.iter().map(prefix).sum()
            };
            (rank, key)
        };
        let all = self.rows.iter().map(|row| (rank_and_key(row), row));
        let matching =
            all.filter(|((_, key), _)| key.iter().zip(&values).all(|(k, v)| k.matches(v)));
        let first = matching
            .min_by(|((a, a_key), _), ((b, b_key), _)| b.cmp(a).then_with(|| a_key.cmp(b_key)));
        first.map(|(_, row)| row)
    }

    /// Whether packets have had equal effects on both tables: on counters, meters, timers, direct registers.
    pub fn same_effects(&self, other: &Table) -> bool {
        self.default_counter == other.default_counter
            && self.default_meter == other.default_meter
            && self.attachments == other.attachments
            && self.cells == other.cells
            && self.rows.iter().eq(other.rows.iter())
    }

    /// Matches and priority of the found entry; `None` if no entry was found.
    pub fn found_match(&self, found: Option<Index>) -> Option<(Vec<FieldMatch>, i32)> {
        let key = self.fields(found?);
        let fields = self.spec.fields.iter().zip(&key);
        let fields = fields.filter_map(|(spec, key)| {
            Some(FieldMatch {
                field: spec.name.clone(),
                value: key::to_match(spec, key)?,
            })
        });
        Some((fields.collect(), self.priority(found?)))
    }
}

/// Number of bits that the field compares. Without priorities, only LPM fields have different numbers in a table's entries.
fn prefix(key: &FieldKey) -> i64 {
    match key {
        FieldKey::Masked { mask, .. } => mask.count_ones().into(),
        FieldKey::Range { .. } => 0,
    }
}
