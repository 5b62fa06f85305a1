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
    // Entries come by the hundred thousand: their values lie in the buffer that they came in, and what few of them have
    // takes no room in the others.
    let mut build = tonic_prost_build::configure().btree_map(".");
    for values in [".p4.v1.FieldMatch", ".p4.v1.Action.Param"] {
        build = build.bytes(values);
    }
    for rare in [
        ".p4.v1.TableEntry.meter_config",
        ".p4.v1.TableEntry.meter_counter_data",
        ".p4.v1.Entity.entity.direct_meter_entry",
        ".p4.v1.Entity.entity.direct_counter_entry",
    ] {
        build = build.boxed(rare);
    }
    build.compile_fds(descriptors)
}
