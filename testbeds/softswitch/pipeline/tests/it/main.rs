//! The external tests of this crate, as one program: each further one would have to be linked.

mod aggregate;
mod arithmetic;
mod composites;
mod control_plane;
mod controls;
mod corpus;
mod differential;
mod entries;
mod externs;
mod fuzz_corpus;
mod hostile;
mod meters;
mod parsers;
mod paths;
mod profiles;
mod queues;
mod reference;
mod support;
mod tna_alu;
mod tna_externs;
mod tna_generator;
mod tna_ghost;
mod tna_p4src;
mod tna_paths;
mod tna_queues;
mod v1model_externs;
mod v1model_paths;
mod wide;

/// Counts allocations by thread, for tests of the memory that hostile input takes.
#[global_allocator]
static ALLOCATOR: test_support::cost::Counting = test_support::cost::Counting;
