//! Prints warnings of the running parts (switch, agents) to standard error.

use std::io::IsTerminal;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// Prints trace events from now on, one line each, if the filter admits them: the filter of `RUST_LOG` if it is set, else
/// warnings, or more with `verbose` (1: information, 2: debugging, 3: all).
pub fn to_stderr(verbose: u8) {
    let asked = std::env::var("RUST_LOG").ok();
    let (filter, misspelt) = filter(asked.as_deref(), verbose);
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .init();
    if let Some(misspelt) = misspelt {
        tracing::warn!("{misspelt}");
    }
}

/// Libraries that weir uses and that log many events.
const LIBRARIES: [&str; 8] = [
    "h2",
    "hyper",
    "hyper_util",
    "netlink_proto",
    "rtnetlink",
    "thrift",
    "tonic",
    "tower",
];

/// Returns the filter, and the error in the requested one, if any.
fn filter(asked: Option<&str>, verbose: u8) -> (Targets, Option<String>) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // Library events for each frame and buffer would hide weir's events: the filter omits them unless all events are requested.
    let theirs = match verbose {
        0..=2 => level.min(LevelFilter::WARN),
        _ => level,
    };
    let usual = Targets::new()
        .with_targets(LIBRARIES.map(|library| (library, theirs)))
        .with_default(level);
    match asked.filter(|text| !text.is_empty()).map(str::parse) {
        None => (usual, None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => {
            let hint = "expected a filter such as info or softswitch=debug,warn";
            (usual, Some(format!("RUST_LOG is ignored: {error}; {hint}")))
        }
    }
}
