//! The Rust types that prost generates from P4Runtime's protobuf files, in modules nested as the protobuf packages are: they
//! refer to each other by relative paths.
#![allow(missing_docs, clippy::all, rustdoc::all)]

/// The protobuf declarations of all messages, as a serialised `google.protobuf.FileDescriptorSet`.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

pub mod google {
    pub mod rpc {
        include!(concat!(env!("OUT_DIR"), "/google.rpc.rs"));
    }
}

pub mod p4 {
    pub mod v1 {
        include!(concat!(env!("OUT_DIR"), "/p4.v1.rs"));
    }
    pub mod config {
        pub mod v1 {
            include!(concat!(env!("OUT_DIR"), "/p4.config.v1.rs"));
        }
    }
}
