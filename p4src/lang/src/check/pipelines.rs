//! Makes the names of objects unique that several pipelines of a Tofino have in common.
//!
//! A control passed to two pipelines is instantiated twice, and each instance has its own table entries and register cells. An
//! object whose name would occur in both is prefixed with its pipeline's name: `pipe0.Ingress.t`.

use super::Checker;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

/// A Tofino pipeline, which is a named package instance, and the instances created for its arguments.
pub(crate) struct Pipeline {
    /// Name of the package instance.
    pub(crate) name: String,
    /// Index range of the pipeline's controls in [`super::Output`]; the next field has that of its externs.
    pub(crate) controls: Range<usize>,
    pub(crate) externs: Range<usize>,
}

impl Checker<'_, '_> {
    /// Prefixes tables and other objects that have the same name in several pipelines with their pipeline's name.
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
