//! Writes GOAT's decision (which switches sum which sub-models) as a linear program, for [`super::relax`] and [`super::exact`].

use super::instance::GoatProblem;
use crate::solve::{Cmp, Model, Sense, Var};

/// Sub-models that the program treats as one, because they fit into the same switches.
pub(super) struct Class {
    /// Total bytes of the sub-models of the class.
    pub bytes: u64,
    /// For each switch, whether its memory can hold one sub-model of the class.
    pub fits: Vec<bool>,
}

pub(super) struct Program {
    /// The linear program; it counts bytes as shares of the gradient.
    pub model: Model,
    /// For each class of sub-models and each switch: the variable for whether (or to what share) the switch sums the class.
    pub open: Vec<Vec<Var>>,
    /// Cost if the server sums everything; the program's objective is the saving from it.
    constant: f64,
    sum: f64,
}

impl Program {
    pub fn new(instance: &GoatProblem, classes: &[Class], is_whole: bool) -> Program {
        let sum = instance.bytes.iter().sum::<u64>() as f64;
        let mut model = Model::new(Sense::Minimize);
        let mut constant = 0.0;
        let mut open = Vec::new();
        for class in classes {
            let share = class.bytes as f64 / sum;
            let sites = instance.sites.iter().zip(&class.fits);
            let sites: Vec<Var> = sites
                .map(|(site, fits)| {
                    let most = f64::from(u8::from(*fits));
                    let cost = share * site.up as f64;
                    match is_whole {
                        true => model.integer(0.0, most, cost),
                        false => model.variable(0.0, most, cost),
                    }
                })
                .collect();
            for group in &instance.groups {
                let count = group.count() as f64;
                constant += share * count * group.direct as f64;
                let mut ways = Vec::new();
                for (site, to) in group.to.iter().enumerate() {
                    if class.fits[site] && *to < group.direct {
                        let saved = (group.direct - to) as f64;
                        let way = model.variable(0.0, 1.0, -share * count * saved);
                        model.constrain([(way, 1.0), (sites[site], -1.0)], Cmp::Le, 0.0);
                        ways.push((way, 1.0));
                    }
                }
                if ways.len() > 1 {
                    model.constrain(ways, Cmp::Le, 1.0);
                }
            }
            open.push(sites);
        }
        for (number, site) in instance.sites.iter().enumerate() {
            if (site.memory as f64) < sum {
                let held = classes.iter().zip(&open);
                let held = held.map(|(class, sites)| (sites[number], class.bytes as f64 / sum));
                model.constrain(held, Cmp::Le, site.memory as f64 / sum);
            }
        }
        Program {
            model,
            open,
            constant,
            sum,
        }
    }

    /// Cost of the placement for which the program has this objective.
    pub fn cost(&self, objective: f64) -> f64 {
        (objective + self.constant) * self.sum
    }
}
