//! Prints trace events and warnings of the switches, the agents and the libraries to standard error.

use std::io::IsTerminal;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// Installs the global subscriber, which prints each admitted trace event as one line. `RUST_LOG` is the filter if it is set;
/// else warnings are admitted, or more with `verbose` (1: information, 2: debugging, 3: all).
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

/// Libraries of other authors that log many events; `filter` admits only their warnings unless `verbose` is 3.
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

/// Returns the filter that `to_stderr` uses, and the error in `asked` (the value of `RUST_LOG`) if it cannot be parsed.
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
