//! Two-rate three-color markers (RFC 2698). A cell that is not configured keeps the packet's color.

use super::counter::CounterValue;

/// Rates and bursts of a meter, in packets or bytes according to the meter's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeterConfig {
    /// Committed information rate, in packets or bytes per second.
    pub cir: u64,
    /// Committed burst size, in packets or bytes.
    pub cburst: u64,
    /// Peak information rate, in packets or bytes per second.
    pub pir: u64,
    /// Peak burst size, in packets or bytes.
    pub pburst: u64,
}

/// Internal number of the color green: within the committed rate. The numbers order the colors.
pub const GREEN: u64 = 0;
/// Internal number of the color yellow: beyond the committed rate.
pub const YELLOW: u64 = 1;
/// Internal number of the color red: beyond the peak rate.
pub const RED: u64 = 2;

/// Packets and bytes that a meter's cell has marked green, yellow and red.
pub type ColourCounts = [CounterValue; 3];

/// A cell of a meter: its configuration, its token buckets and its counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeterCell {
    config: Option<MeterConfig>,
    counts: ColourCounts,
    /// Tokens in the committed bucket × 10⁹, so that a nanosecond adds a whole number.
    committed: u128,
    peak: u128,
    updated_ns: u64,
}

/// An indexed meter of the program, with its cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meter {
    /// Fully qualified name of the meter.
    pub name: String,
    /// Whether the meter measures bytes rather than packets.
    pub bytes: bool,
    /// The architecture's numbers of the colors green, yellow, red.
    pub colours: [u64; 3],
    cells: Vec<MeterCell>,
}

const SCALE: u128 = 1_000_000_000;

impl Meter {
    /// Creates a meter with `size` unconfigured cells.
    pub fn new(name: String, bytes: bool, colours: [u64; 3], size: usize) -> Meter {
        Meter {
            name,
            bytes,
            colours,
            cells: vec![MeterCell::default(); size],
        }
    }

    /// The cell at an index; `None` beyond the last cell.
    pub fn cell(&self, index: u64) -> Option<&MeterCell> {
        self.cells.get(usize::try_from(index).ok()?)
    }

    /// The cell at an index, mutable; `None` beyond the last cell.
    pub fn cell_mut(&mut self, index: u64) -> Option<&mut MeterCell> {
        self.cells.get_mut(usize::try_from(index).ok()?)
    }

    /// All cells of the meter, mutable.
    pub fn cells_mut(&mut self) -> &mut [MeterCell] {
        &mut self.cells
    }

    /// Copies the cells of another meter, which has the same size.
    pub fn take_cells(&mut self, other: &Meter) {
        self.cells.clone_from(&other.cells);
    }

    /// Number of cells of the meter.
    pub fn size(&self) -> u64 {
        self.cells.len() as u64
    }

    /// Marks a packet whose previous color is `colour`; returns its new color. Both are the architecture's numbers.
    pub fn execute(&mut self, index: u64, colour: u64, now_ns: u64, bytes: u64) -> u64 {
        let before = rank(&self.colours, colour);
        let units = if self.bytes { bytes } else { 1 };
        let after = usize::try_from(index)
            .ok()
            .and_then(|i| self.cells.get_mut(i))
            .map_or(GREEN, |cell| cell.mark(before, now_ns, units, bytes));
        self.colours[after as usize]
    }
}

/// The internal number of the architecture's color `colour`. TNA has two numbers for yellow, and its enum names one of them.
pub fn rank(colours: &[u64; 3], colour: u64) -> u64 {
    let known = colours.iter().position(|c| *c == colour);
    known.map_or(YELLOW, |i| i as u64)
}

impl MeterCell {
    /// Creates a cell whose buckets are full at `now_ns`.
    pub fn new(config: Option<MeterConfig>, now_ns: u64) -> MeterCell {
        MeterCell {
            config,
            counts: ColourCounts::default(),
            committed: config.map_or(0, |c| u128::from(c.cburst) * SCALE),
            peak: config.map_or(0, |c| u128::from(c.pburst) * SCALE),
            updated_ns: now_ns,
        }
    }

    /// The cell's configuration; `None`: not configured.
    pub fn config(&self) -> Option<MeterConfig> {
        self.config
    }

    /// Sets or removes the cell's configuration; the buckets start full, the counts stay.
    pub fn configure(&mut self, config: Option<MeterConfig>, now_ns: u64) {
        *self = MeterCell {
            counts: self.counts,
            ..MeterCell::new(config, now_ns)
        };
    }

    /// Packets and bytes that the cell has marked green, yellow and red.
    pub fn counts(&self) -> ColourCounts {
        self.counts
    }

    /// Resets the counts of green, yellow and red packets.
    pub fn clear_counts(&mut self) {
        self.counts = ColourCounts::default();
    }

    /// Marks a packet of `units` packets or bytes, and counts it; `before` and the result are internal color numbers.
    pub fn mark(&mut self, before: u64, now_ns: u64, units: u64, bytes: u64) -> u64 {
        let colour = self.colour(before, now_ns, units);
        let count = &mut self.counts[colour as usize];
        count.packets = count.packets.wrapping_add(1);
        count.bytes = count.bytes.wrapping_add(bytes);
        colour
    }

    fn colour(&mut self, before: u64, now_ns: u64, units: u64) -> u64 {
        // An unconfigured cell limits nothing (P4Runtime): a packet keeps its color, or is green.
        let Some(config) = self.config else {
            return before;
        };
        let elapsed = u128::from(now_ns.saturating_sub(self.updated_ns));
        self.updated_ns = now_ns.max(self.updated_ns);
        let fill = |tokens: u128, rate: u64, burst: u64| {
            tokens
                .saturating_add(elapsed * u128::from(rate))
                .min(u128::from(burst) * SCALE)
        };
        self.committed = fill(self.committed, config.cir, config.cburst);
        self.peak = fill(self.peak, config.pir, config.pburst);
        let cost = u128::from(units) * SCALE;
        if before == RED || self.peak < cost {
            RED
        } else if before == YELLOW || self.committed < cost {
            self.peak -= cost;
            YELLOW
        } else {
            self.peak -= cost;
            self.committed -= cost;
            GREEN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_numbers_are_borne() {
        let config = MeterConfig {
            cir: u64::MAX,
            cburst: u64::MAX,
            pir: u64::MAX,
            pburst: u64::MAX,
        };
        let mut cell = MeterCell::new(Some(config), 0);
        assert_eq!(cell.mark(GREEN, u64::MAX, 1, u64::MAX), GREEN);
        assert_eq!(cell.mark(GREEN, u64::MAX, u64::MAX, u64::MAX), RED);
    }

    #[test]
    fn a_burst_turns_yellow_then_red_and_recovers() {
        let mut meter = Meter::new("m".into(), false, [GREEN, YELLOW, RED], 1);
        assert_eq!(meter.execute(0, GREEN, 0, 64), GREEN, "unconfigured");
        let mut unlimited = MeterCell::new(None, 0);
        assert_eq!(
            [GREEN, YELLOW, RED].map(|c| unlimited.mark(c, 0, 1, 1)),
            [GREEN, YELLOW, RED]
        );
        let config = MeterConfig {
            cir: 1,
            cburst: 2,
            pir: 2,
            pburst: 3,
        };
        meter.cell_mut(0).unwrap().configure(Some(config), 0);
        let colours: Vec<u64> = (0..4).map(|_| meter.execute(0, GREEN, 0, 64)).collect();
        assert_eq!(colours, [GREEN, GREEN, YELLOW, RED]);
        let packets = meter.cell(0).unwrap().counts().map(|c| c.packets);
        assert_eq!(packets, [3, 1, 1], "the unconfigured one was green");
        // After a second: one committed token, two peak tokens.
        let colours: Vec<u64> = (0..3)
            .map(|_| meter.execute(0, GREEN, SCALE as u64, 64))
            .collect();
        assert_eq!(colours, [GREEN, YELLOW, RED]);
        assert_eq!(
            meter.execute(0, RED, 10 * SCALE as u64, 64),
            RED,
            "colour-aware"
        );
    }
}
