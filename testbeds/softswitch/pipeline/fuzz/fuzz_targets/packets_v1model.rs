#![no_main]
//! Frames, entries and time into programs of one architecture.

#[path = "../../tests/it/support/aggregate.rs"]
mod aggregate;
#[path = "../src/packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| packets::run(parser_gen::Arch::V1model, data));
