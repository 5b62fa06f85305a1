#![no_main]
//! P4Runtime's calls, right and wrong.

#[path = "../src/p4runtime.rs"]
mod p4runtime;

libfuzzer_sys::fuzz_target!(|data: &[u8]| p4runtime::run(data));
