//! The tests of this crate that see it from outside, as one program: each more would be linked anew.

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

/// Counts by thread, for the tests that hold what memory a hostile input takes.
#[global_allocator]
static ALLOCATOR: test_support::cost::Counting = test_support::cost::Counting;
