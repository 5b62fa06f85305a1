//! Small virtual machines with Debian's kernel and its RoCE in software (rxe), as peers for tests: nothing here wrote them.
//!
//! ```text
//! the test ── tap interface ── QEMU: virtio-net ── rxe0
//!    └─────── socket ───────── QEMU: virtio-serial ── init.sh ── ibv_rc_pingpong, ib_write_bw …
//! ```
//!
//! An [`Image`] is made once of packages that are downloaded, not installed; QEMU is in it. A [`Machine`] has one interface, in the network
//! namespace of the test that boots it: a bridge, or a port of a switch, takes it as any other. It has the image in its memory and
//! no disk, ends with the test, and leaves nothing behind.

mod channel;
mod cpio;
mod elf;
mod image;
mod kernel;
mod machine;
mod packages;
mod pair;
mod qemu;
mod tap;

pub use channel::{OUTPUT_LIMIT, Output};
pub use image::{Image, ImageError};
pub use machine::{Job, Machine, MachineError, MachineOptions};
pub use pair::{PORT, between};
pub use qemu::Accelerator;

use std::path::{Path, PathBuf};

/// Names the folder of the image, where it is not [`folder`]'s default.
pub const FOLDER_VARIABLE: &str = "WEIR_MACHINES";

/// Where the image is, below the folder of the workspace's builds.
pub fn folder(target: &Path) -> PathBuf {
    target.join("test-machines")
}

/// The image, for a test that may make tap interfaces where it is; where something is missing, the test is skipped by name.
pub fn for_test(test: &str) -> Option<Image> {
    if let Some(errno) = tap::refusal() {
        test_support::skip(test, &format!("no tap interfaces here: {errno}"));
        return None;
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let folder = std::env::var_os(FOLDER_VARIABLE).map_or(folder(&target), PathBuf::from);
    match Image::open(&folder) {
        Ok(image) => Some(image),
        Err(error) => {
            test_support::skip(test, &format!("{error}; `cargo xtask test` makes it"));
            None
        }
    }
}
