//! Small virtual machines with Debian's kernel and its software RoCE (rxe): independent peers for our tests.
//!
//! ```text
//! the test ── tap interface ── QEMU: virtio-net ── rxe0
//!    └─────── socket ───────── QEMU: virtio-serial ── init.sh ── ibv_rc_pingpong, ib_write_bw …
//! ```
//!
//! An [`Image`] is built once from packages that are downloaded, not installed; it contains QEMU. A [`Machine`] has one interface,
//! in the network namespace of the test that boots it, which a bridge or a switch can use like any other. It keeps the image in
//! memory, has no disk, ends with the test, and leaves nothing behind.

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

/// Environment variable with the folder of the image; without it, the folder is `target/test-machines`.
pub const FOLDER_VARIABLE: &str = "WEIR_MACHINES";

/// The image's folder: the value of [`FOLDER_VARIABLE`], or else `test-machines` in the workspace's target folder.
fn default_folder() -> PathBuf {
    let image = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-machines");
    std::env::var_os(FOLDER_VARIABLE).map_or(image, PathBuf::from)
}

/// Opens the image in the folder of [`FOLDER_VARIABLE`] or in the default one.
pub fn image() -> Result<Image, ImageError> {
    Image::open(&default_folder())
}

/// Makes the image that [`image()`] opens, if it does not exist; returns its folder. See [`Image::make`].
pub fn make_image(limit: Duration) -> Result<PathBuf, ImageError> {
    let folder = default_folder();
    Image::make(&folder, limit)?;
    Ok(folder)
}

/// Opens the image for a test; `None` if the test is skipped. Skips the test by name if the image is missing, if tap
/// interfaces cannot be made, or if [`FOLDER_VARIABLE`] is set and empty, as by `cargo xtask test` without `--machines`.
pub fn for_test(test: &str) -> Option<Image> {
    if std::env::var_os(FOLDER_VARIABLE).is_some_and(|folder| folder.is_empty()) {
        test_support::skip(
            test,
            "boots virtual machines; use `cargo xtask test --machines`",
        );
        return None;
    }
    if let Some(errno) = tap::refusal() {
        test_support::skip(test, &format!("cannot make tap interfaces: {errno}"));
        return None;
    }
    match image() {
        Ok(image) => Some(image),
        Err(error) => {
            test_support::skip(
                test,
                &format!("{error}; make it with `cargo run -p machines --example image`"),
            );
            None
        }
    }
}
