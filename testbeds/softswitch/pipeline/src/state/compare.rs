//! Compares the states of two executors, as far as packets change them.

use super::State;

impl State {
    /// The name of the first object whose state differs; `None`: the states are equal.
    pub fn difference(&self, other: &State) -> Option<String> {
        let tables = self.tables.iter().zip(other.tables.iter());
        let counters = self.cells.counters.iter().zip(&other.cells.counters);
        let meters = self.cells.meters.iter().zip(&other.cells.meters);
        let tables = tables.map(|(a, b)| (a.spec.name.as_str(), a.same_effects(b)));
        let counters = counters.map(|(a, b)| (a.name.as_str(), a == b));
        let meters = meters.map(|(a, b)| (a.name.as_str(), a == b));
        let rest = [
            ("entries found", self.found == other.found),
            ("registers", self.cells.banks == other.cells.banks),
            ("checksum units", self.checksums == other.checksums),
            ("random numbers", self.randoms == other.randoms),
            ("digests", self.digests.waiting == other.digests.waiting),
            ("filters", self.cells.filters == other.cells.filters),
            ("deparsers' wishes", self.captures == other.captures),
            (
                "registers executed",
                self.pass.executed == other.pass.executed,
            ),
            ("lost digests", self.digests.lost == other.digests.lost),
        ];
        let profiles = self.profiles.iter().zip(other.profiles.iter());
        let profiles = profiles.map(|(a, b)| (a.spec.name.as_str(), a.same_effects(b)));
        let mut all = tables
            .chain(counters)
            .chain(meters)
            .chain(profiles)
            .chain(rest);
        all.find(|(_, same)| !same).map(|(name, _)| name.to_owned())
    }
}
