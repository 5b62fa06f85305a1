//! Fault scenarios: the YAML schema, topologies, resolution and planning. Pure.

pub mod decision;
pub mod selection;
