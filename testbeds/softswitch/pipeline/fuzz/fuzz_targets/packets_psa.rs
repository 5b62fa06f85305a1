#![no_main]
//! Fuzzes programs of one architecture with frames, entries and time.

#[path = "../../tests/it/support/aggregate.rs"]
mod aggregate;
#[path = "../src/packets.rs"]
mod packets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| packets::run(parser_gen::Arch::Psa, data));
