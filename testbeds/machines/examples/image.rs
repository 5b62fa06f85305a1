//! Makes what virtual machines boot, and nothing else of what `cargo xtask test` makes: `cargo run -p machines --example image`.
//! Where `WEIR_MACHINES` says, or in the workspace's target folder. apt has to know today's packages (`apt-get update`).

use std::time::Duration;

/// For a slow network.
const LIMIT: Duration = Duration::from_secs(900);

fn main() {
    match machines::make_image(LIMIT) {
        Ok(folder) => println!("the machines' image is in {}", folder.display()),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    }
}
