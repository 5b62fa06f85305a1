#![no_main]
//! Compiles any bytes as a P4 program.

#[path = "../src/p4_source.rs"]
mod p4_source;

libfuzzer_sys::fuzz_target!(|data: &[u8]| p4_source::run(data));
