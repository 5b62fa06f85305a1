//! Namespaces, links, workloads and captures for experiments on one machine.
