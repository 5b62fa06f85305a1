//! Compiles the protocol's declarations without a system `protoc`.

use std::io::Error;

const FILES: [&str; 6] = [
    "google/rpc/code.proto",
    "google/rpc/status.proto",
    "p4/config/v1/p4types.proto",
    "p4/config/v1/p4info.proto",
    "p4/v1/p4data.proto",
    "p4/v1/p4runtime.proto",
];

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(FILES, ["proto"]).map_err(Error::other)?;
    let out = std::path::PathBuf::from(
        std::env::var_os("OUT_DIR").ok_or_else(|| Error::other("no OUT_DIR"))?,
    );
    // The descriptors travel with the crate, so that a test can hold them against an independent declaration.
    std::fs::write(
        out.join("descriptors.bin"),
        prost::Message::encode_to_vec(&descriptors),
    )?;
    tonic_prost_build::configure()
        .btree_map(".")
        .compile_fds(descriptors)
}
