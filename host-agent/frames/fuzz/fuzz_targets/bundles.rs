#![no_main]
//! Cuts any packet with any virtio header, and joins its frames.

#[path = "../src/bundles.rs"]
mod bundles;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bundles::run(data));
