//! Compiles `weir.v1.Switch` without a system `protoc`.

use std::io::Error;

fn main() -> Result<(), Error> {
    println!("cargo::rerun-if-changed=proto");
    let descriptors = protox::compile(["weir/v1/switch.proto"], ["proto"]).map_err(Error::other)?;
    tonic_prost_build::configure().compile_fds(descriptors)
}
