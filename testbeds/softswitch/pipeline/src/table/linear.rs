//! A lookup that is obviously right: every entry is compared with the key.

use super::key::FieldKey;
use super::{Bound, Table, key};
use p4lang::runtime::FieldMatch;

impl Table {
    /// As `lookup`: of the entries that match, the one with the highest priority, or with the longest prefix where the table
    /// wants no priority (P4_16 14.2.1.4, P4Runtime 9.1); among equals the first by key.
    pub fn lookup_one_by_one(&mut self, words: &[u64]) -> (bool, Bound) {
        let mut values = Vec::with_capacity(self.spec.fields.len());
        let mut at = 0;
        for field in &self.spec.fields {
            let word = |i: usize| u128::from(words.get(i).copied().unwrap_or(0));
            let high = if field.width > 64 { word(at + 1) } else { 0 };
            values.push(word(at) | high << 64);
            at += field.slots() as usize;
        }
        let mut best: Option<(i64, u32)> = None;
        for (key, entry) in &self.by_key {
            let matches = key.1.iter().zip(&values).all(|(k, v)| k.matches(*v));
            let rank = if self.spec.wants_priority() {
                i64::from(key.0.0)
            } else {
                key.1.iter().map(prefix).sum()
            };
            if matches && best.is_none_or(|(before, _)| rank > before) {
                best = Some((rank, *entry));
            }
        }
        self.found = best.map(|(_, entry)| entry);
        let (hit, bound) = self.found_action();
        (hit, bound.clone())
    }

    /// Whether packets have left the same in two copies: the entry found, counters, meters.
    pub fn same_effects(&self, other: &Table) -> bool {
        let mut entries = self.entries.iter().zip(&other.entries);
        self.found == other.found
            && self.default_counter == other.default_counter
            && self.default_meter == other.default_meter
            && entries.all(|pair| match pair {
                (Some(a), Some(b)) => a.attached == b.attached,
                (a, b) => a.is_none() == b.is_none(),
            })
    }

    /// Key and priority of the entry found last.
    pub fn found_match(&self) -> Option<(Vec<FieldMatch>, i32)> {
        let entry = self.entries.get(self.found? as usize)?.as_ref()?;
        let fields = self.spec.fields.iter().zip(&entry.key.1);
        let fields = fields.filter_map(|(spec, key)| {
            Some(FieldMatch {
                field: spec.name.clone(),
                value: key::to_match(spec, key)?,
            })
        });
        Some((fields.collect(), entry.key.0.0))
    }
}

/// Bits that are compared: all entries of a table without priorities have as many, but for one prefix.
fn prefix(key: &FieldKey) -> i64 {
    match key {
        FieldKey::Masked { mask, .. } => mask.count_ones().into(),
        FieldKey::Range { .. } => 0,
    }
}
