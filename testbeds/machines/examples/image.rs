//! Makes the image of the virtual machines: `cargo run -p machines --example image`. Run `apt-get update` before, so that apt knows
//! the current packages. The folder is that of `WEIR_MACHINES`, or else `test-machines` in the workspace's target folder.

use std::time::Duration;

/// Time limit, for a slow network.
const LIMIT: Duration = Duration::from_secs(900);

fn main() {
    match machines::make_image(LIMIT) {
        Ok(folder) => println!("the image is in {}", folder.display()),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    }
}
