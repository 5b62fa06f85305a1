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
mod image_error;
mod kernel;
mod lan;
mod machine;
mod options;
mod packages;
mod pair;
mod qemu;
mod tap;

pub use channel::{OUTPUT_LIMIT, Output};
pub use image::Image;
pub use image_error::ImageError;
pub use lan::{neighbour, switch_program};
pub use machine::{Job, Machine, MachineError};
pub use options::MachineOptions;
pub use pair::{PORT, between};
pub use qemu::Accelerator;

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Environment variable that names the image's folder, where that is not `target/test-machines`.
pub const FOLDER_VARIABLE: &str = "WEIR_MACHINES";

/// Where the image is looked for: `test-machines` below the folder of the workspace's builds, unless the variable says.
fn default_folder() -> PathBuf {
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-machines");
    std::env::var_os(FOLDER_VARIABLE).map_or(image, PathBuf::from)
}

/// The image, where [`FOLDER_VARIABLE`] says or below the workspace's builds. Errors: it has not been made.
pub fn image() -> Result<Image, ImageError> {
    Image::open(&default_folder())
}

/// Makes the image there, if it is not there, as [`Image::make`] does; the folder.
pub fn make_image(limit: Duration) -> Result<PathBuf, ImageError> {
    let folder = default_folder();
    Image::make(&folder, limit)?;
    Ok(folder)
}

/// The image, for a test that may make tap interfaces where it is. The test is skipped by name where something is missing, and
/// where [`FOLDER_VARIABLE`] is set and empty: `cargo xtask test` without `--machines` says so.
pub fn for_test(test: &str) -> Option<Image> {
    if std::env::var_os(FOLDER_VARIABLE).is_some_and(|folder| folder.is_empty()) {
        test_support::skip(
            test,
            "boots virtual machines: `cargo xtask test --machines`",
        );
        return None;
    }
    if let Some(errno) = tap::refusal() {
        test_support::skip(test, &format!("no tap interfaces here: {errno}"));
        return None;
    }
    match image() {
        Ok(image) => Some(image),
        Err(error) => {
            test_support::skip(
                test,
                &format!("{error}; `cargo run -p machines --example image` makes it"),
            );
            None
        }
    }
}
