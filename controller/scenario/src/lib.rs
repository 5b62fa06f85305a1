//! Fault scenarios: the YAML schema, topologies, resolution and planning. Pure.
