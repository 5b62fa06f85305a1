//! The tests of this crate's public interface, as one program: each further program would be linked separately.

mod check_errors;
mod check_limits;
mod check_lower;
mod check_names;
mod check_others;
mod check_rules;
mod check_support;
mod check_tables;
mod corpus;
mod format;
mod fuzz_corpus;
mod graph;
mod hostile;
mod hostile_limits;
mod p4info;
mod sources;
mod tofino;
mod tofino_p4src;
mod validity;

/// Counts allocations by thread, for the tests that limit the memory for a hostile input.
#[global_allocator]
static ALLOCATOR: test_support::cost::Counting = test_support::cost::Counting;
