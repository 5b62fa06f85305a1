#![no_main]
//! Fuzzes P4Runtime calls, valid and invalid.

#[path = "../src/p4runtime.rs"]
mod p4runtime;

libfuzzer_sys::fuzz_target!(|data: &[u8]| p4runtime::run(data));
