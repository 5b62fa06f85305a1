//! Max-min fair shares by progressive filling (Bertsekas and Gallager, *Data Networks*, 6.5.2), with weights; a demand
//! may load several resources by different factors.

/// Relative difference below which two levels count as equal: the order of additions changes the rounding.
const ROUNDING: f64 = 1e-12;

/// Demand of a transfer for a share of resources.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demand<'a> {
    /// Weight, above 0: rates that no cap limits are proportional to it.
    pub weight: f64,
    /// Maximum rate of the demand; infinite if only resources limit it.
    pub cap: f64,
    /// (Resource number, load of a rate of 1); each resource once, each load above 0.
    pub loads: &'a [(usize, f64)],
}

/// Returns the rate of each demand. No demand can get more without taking from one whose rate over weight is no
/// greater.
///
/// All rates rise together, in proportion to their weights. When a resource is full, the rates of its demands stop; the
/// others continue. An unlimited demand has an infinite rate.
#[must_use]
pub fn max_min(capacities: &[f64], demands: &[Demand<'_>]) -> Vec<f64> {
    let mut filling = Filling::new(capacities, demands);
    while let Some(level) = filling.next_level() {
        filling.raise(level);
    }
    filling.rates
}

struct Filling<'d, 'a> {
    demands: &'d [Demand<'a>],
    /// Rate of each demand; infinite while the demand's rate still rises.
    rates: Vec<f64>,
    rising: Vec<usize>,
    /// Resources that at least one demand uses.
    resources: Vec<Filled>,
    /// For each resource number, the index of the resource in `resources`.
    place: Vec<usize>,
}

struct Filled {
    /// Capacity of the resource that demands whose rates have stopped leave.
    left: f64,
    /// Load of the rising demands on the resource for each unit of the level (rate over weight).
    slope: f64,
    rising: usize,
}

impl Filled {
    fn level(&self) -> f64 {
        if self.rising == 0 {
            return f64::INFINITY;
        }
        self.left.max(0.0) / self.slope
    }
}

impl<'d, 'a> Filling<'d, 'a> {
    fn new(capacities: &[f64], demands: &'d [Demand<'a>]) -> Filling<'d, 'a> {
        let mut place = vec![usize::MAX; capacities.len()];
        let mut resources: Vec<Filled> = Vec::new();
        for demand in demands {
            for (resource, load) in demand.loads {
                if place[*resource] == usize::MAX {
                    place[*resource] = resources.len();
                    resources.push(Filled {
                        left: capacities[*resource],
                        slope: 0.0,
                        rising: 0,
                    });
                }
                let filled = &mut resources[place[*resource]];
                filled.slope += demand.weight * load;
                filled.rising += 1;
            }
        }
        Filling {
            demands,
            rates: vec![f64::INFINITY; demands.len()],
            rising: (0..demands.len()).collect(),
            resources,
            place,
        }
    }

    /// Level (rate over weight) at which the next demand's rate stops rising.
    fn next_level(&self) -> Option<f64> {
        let full = self.resources.iter().map(Filled::level);
        let capped = self.rising.iter().map(|demand| {
            let demand = &self.demands[*demand];
            demand.cap / demand.weight
        });
        let level = full.chain(capped).fold(f64::INFINITY, f64::min);
        level.is_finite().then_some(level)
    }

    fn raise(&mut self, level: f64) {
        let reached = level * (1.0 + ROUNDING);
        let is_full: Vec<bool> = self
            .resources
            .iter()
            .map(|r| r.level() <= reached)
            .collect();
        let rising = std::mem::take(&mut self.rising);
        for number in rising {
            let demand = &self.demands[number];
            let mut uses = demand.loads.iter();
            let rate = if demand.cap / demand.weight <= reached {
                demand.cap
            } else if uses.any(|(resource, _)| is_full[self.place[*resource]]) {
                demand.weight * level
            } else {
                self.rising.push(number);
                continue;
            };
            self.rates[number] = rate;
            for (resource, load) in demand.loads {
                let filled = &mut self.resources[self.place[*resource]];
                filled.left -= rate * load;
                filled.slope -= demand.weight * load;
                filled.rising -= 1;
            }
        }
    }
}
