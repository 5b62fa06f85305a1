//! Counts of one worker: kept apart from the counters, which several workers share, until they are added to them.

use super::State;
use super::counter::{CounterValue, Kind};
use crate::table::Index;

/// What has been counted at some cells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Tally {
    /// As far as one was counted at.
    cells: Vec<CounterValue>,
    /// Those that are not 0.
    touched: Vec<u32>,
}

impl Tally {
    fn count(&mut self, index: u32, kind: Kind, bytes: u64) {
        let at = index as usize;
        if self.cells.len() <= at {
            self.cells.resize(at + 1, CounterValue::default());
        }
        let cell = &mut self.cells[at];
        let untouched = *cell == CounterValue::default();
        cell.add(kind, bytes);
        if untouched && *cell != CounterValue::default() {
            self.touched.push(index);
        }
    }

    /// Gives what was counted, and begins anew.
    fn empty(&mut self, mut to: impl FnMut(u32, CounterValue)) {
        for index in self.touched.drain(..) {
            to(index, std::mem::take(&mut self.cells[index as usize]));
        }
    }
}

/// What one worker has counted since it last [told](State::add_counts).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tallies {
    /// At the entries of each table, by row.
    entries: Vec<Tally>,
    /// At each table's default action.
    defaults: Vec<CounterValue>,
    /// At each indexed counter.
    counters: Vec<Tally>,
}

impl Tallies {
    /// For a program with so many tables and counters.
    pub fn new(tables: usize, counters: usize) -> Tallies {
        Tallies {
            entries: vec![Tally::default(); tables],
            defaults: vec![CounterValue::default(); tables],
            counters: vec![Tally::default(); counters],
        }
    }
}

impl State {
    /// Counts a packet at the entry that a lookup found in a table, or else at its default action.
    #[inline]
    pub fn count_found(&mut self, table: u32, found: Option<Index>, bytes: u64) {
        let table = table as usize;
        let Some(tallies) = &mut self.tallies else {
            return self.tables[table].count(found, bytes);
        };
        let Some((_, kind)) = self.tables[table].spec.direct_counter else {
            return;
        };
        match found {
            Some(row) => tallies.entries[table].count(row, kind, bytes),
            None => tallies.defaults[table].add(kind, bytes),
        }
    }

    /// Counts a packet at a cell of an indexed counter; nothing beyond its size.
    #[inline]
    pub fn count_at(&mut self, counter: u32, index: u64, bytes: u64) {
        let counter = counter as usize;
        let Some(tallies) = &mut self.tallies else {
            return self.counters[counter].count(index, bytes);
        };
        let (kind, cells) = (self.counters[counter].kind, &self.counters[counter].cells);
        if index < cells.len() as u64 {
            tallies.counters[counter].count(index as u32, kind, bytes);
        }
    }

    /// Adds what a worker has counted to tables and counters; it begins anew.
    pub fn add_counts(&mut self, tallies: &mut Tallies) {
        for (table, tally) in self.tables.iter_mut().zip(&mut tallies.entries) {
            tally.empty(|row, value| table.add_count(Some(row), value));
        }
        for (table, value) in self.tables.iter_mut().zip(&mut tallies.defaults) {
            table.add_count(None, std::mem::take(value));
        }
        for (counter, tally) in self.counters.iter_mut().zip(&mut tallies.counters) {
            tally.empty(|index, value| counter.cells[index as usize] += value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Kind = Kind {
        packets: true,
        bytes: true,
    };

    #[test]
    fn each_cell_is_told_once_and_begins_anew() {
        let mut tally = Tally::default();
        tally.count(7, BOTH, 60);
        tally.count(7, BOTH, 40);
        tally.count(2, BOTH, 1);
        let mut told = Vec::new();
        tally.empty(|index, value| told.push((index, value.packets, value.bytes)));
        assert_eq!(told, [(7, 2, 100), (2, 1, 1)]);
        tally.empty(|_, _| panic!("nothing was counted"));
        tally.count(7, BOTH, 5);
        told.clear();
        tally.empty(|index, value| told.push((index, value.packets, value.bytes)));
        assert_eq!(told, [(7, 1, 5)]);
    }
}
