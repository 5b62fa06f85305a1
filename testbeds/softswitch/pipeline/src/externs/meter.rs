//! Two-rate three-colour markers (RFC 2698). A cell that was never configured paints green.

/// Rates and bursts, in packets or bytes as the meter's type says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MeterConfig {
    /// Committed information rate, units a second.
    pub cir: u64,
    /// Committed burst size, units.
    pub cburst: u64,
    /// Peak information rate, units a second.
    pub pir: u64,
    /// Peak burst size, units.
    pub pburst: u64,
}

/// Internal colours, ordered.
pub const GREEN: u64 = 0;
/// Beyond the committed rate.
pub const YELLOW: u64 = 1;
/// Beyond the peak rate.
pub const RED: u64 = 2;

/// One marker: its configuration and buckets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cell {
    config: Option<MeterConfig>,
    /// Tokens × 10⁹, so that a nanosecond's worth is a whole number.
    committed: u128,
    peak: u128,
    updated_ns: u64,
}

/// An indexed meter.
#[derive(Debug)]
pub struct Meter {
    /// Fully qualified name.
    pub name: String,
    /// Bytes rather than packets.
    pub bytes: bool,
    /// The program's values of green, yellow, red.
    pub colours: [u64; 3],
    cells: Vec<Cell>,
}

const SCALE: u128 = 1_000_000_000;

impl Meter {
    /// All cells unconfigured.
    pub fn new(name: String, bytes: bool, colours: [u64; 3], size: usize) -> Meter {
        Meter {
            name,
            bytes,
            colours,
            cells: vec![Cell::default(); size],
        }
    }

    /// Sets or removes a cell's configuration; its buckets start full. `None` if the index is out of range.
    pub fn configure(
        &mut self,
        index: u64,
        config: Option<MeterConfig>,
        now_ns: u64,
    ) -> Option<()> {
        let cell = self.cells.get_mut(usize::try_from(index).ok()?)?;
        *cell = Cell::new(config, now_ns);
        Some(())
    }

    /// A cell's configuration.
    pub fn config(&self, index: u64) -> Option<Option<MeterConfig>> {
        Some(self.cells.get(usize::try_from(index).ok()?)?.config)
    }

    /// Marks one packet that came with `colour` (the program's value).
    pub fn execute(&mut self, index: u64, colour: u64, now_ns: u64, bytes: u64) -> u64 {
        let before = self.colours.iter().position(|c| *c == colour).unwrap_or(0) as u64;
        let units = if self.bytes { bytes } else { 1 };
        let after = usize::try_from(index)
            .ok()
            .and_then(|i| self.cells.get_mut(i))
            .map_or(GREEN, |cell| cell.mark(before, now_ns, units));
        self.colours[after as usize]
    }
}

impl Cell {
    /// With full buckets.
    pub fn new(config: Option<MeterConfig>, now_ns: u64) -> Cell {
        Cell {
            config,
            committed: config.map_or(0, |c| u128::from(c.cburst) * SCALE),
            peak: config.map_or(0, |c| u128::from(c.pburst) * SCALE),
            updated_ns: now_ns,
        }
    }

    /// Its configuration.
    pub fn config(&self) -> Option<MeterConfig> {
        self.config
    }

    /// Marks a packet of that many units.
    pub fn mark(&mut self, before: u64, now_ns: u64, units: u64) -> u64 {
        let Some(config) = self.config else {
            return before;
        };
        let elapsed = u128::from(now_ns.saturating_sub(self.updated_ns));
        self.updated_ns = now_ns.max(self.updated_ns);
        let fill = |tokens: u128, rate: u64, burst: u64| {
            (tokens + elapsed * u128::from(rate)).min(u128::from(burst) * SCALE)
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
    fn a_burst_turns_yellow_then_red_and_recovers() {
        let mut meter = Meter::new("m".into(), false, [GREEN, YELLOW, RED], 1);
        assert_eq!(meter.execute(0, GREEN, 0, 64), GREEN, "unconfigured");
        let config = MeterConfig {
            cir: 1,
            cburst: 2,
            pir: 2,
            pburst: 3,
        };
        meter.configure(0, Some(config), 0).unwrap();
        let colours: Vec<u64> = (0..4).map(|_| meter.execute(0, GREEN, 0, 64)).collect();
        assert_eq!(colours, [GREEN, GREEN, YELLOW, RED]);
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
