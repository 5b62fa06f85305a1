//! Names of what several pipelines of a Tofino have in common.
//!
//! A control given to two of them is instantiated twice, and each has its own entries and cells. What would have one name
//! in both goes by its pipeline's first: `pipe0.Ingress.t`.

use super::Checker;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// What was made for the arguments of a package with a name.
pub(crate) struct Pipeline {
    /// Of the instance.
    pub(crate) name: String,
    /// Of [`super::Output`].
    pub(crate) controls: Range<usize>,
    pub(crate) externs: Range<usize>,
}

impl Checker<'_, '_> {
    /// Tells apart tables and objects that have one name in several pipelines.
    pub(crate) fn name_by_pipeline(&mut self) {
        let mut pipelines_of: HashMap<(bool, &str), BTreeSet<usize>> = HashMap::new();
        for (i, pipeline) in self.pipelines.iter().enumerate() {
            let controls = self.out.controls[pipeline.controls.clone()]
                .iter()
                .flatten();
            for table in controls.flat_map(|c| &c.tables) {
                pipelines_of
                    .entry((true, &table.name))
                    .or_default()
                    .insert(i);
            }
            for object in &self.out.externs[pipeline.externs.clone()] {
                pipelines_of
                    .entry((false, &object.name))
                    .or_default()
                    .insert(i);
            }
        }
        let several: BTreeSet<(bool, String)> = pipelines_of
            .into_iter()
            .filter(|(_, pipelines)| pipelines.len() > 1)
            .map(|((is_table, name), _)| (is_table, name.to_owned()))
            .collect();
        for pipeline in &self.pipelines {
            let rename = |is_table: bool, name: &mut String| {
                if several.contains(&(is_table, name.clone())) {
                    *name = format!("{}.{name}", pipeline.name);
                }
            };
            let controls = &mut self.out.controls[pipeline.controls.clone()];
            for table in controls.iter_mut().flatten().flat_map(|c| &mut c.tables) {
                rename(true, &mut table.name);
            }
            for object in &mut self.out.externs[pipeline.externs.clone()] {
                rename(false, &mut object.name);
            }
        }
    }
}
