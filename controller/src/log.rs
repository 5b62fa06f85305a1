//! Where warnings of the running parts (switch, agents) go: standard error.

use std::io::IsTerminal;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

/// From here on what is traced is printed, a line each, as far as the filter lets it through: the one of `RUST_LOG` if it
/// is set, else warnings, or more with `verbose` (1: information, 2: debugging, 3: all).
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

/// What ours stand on and is as talkative.
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

/// The filter, and what is wrong with the one that was asked for.
fn filter(asked: Option<&str>, verbose: u8) -> (Targets, Option<String>) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    // What libraries say of each frame and buffer hides what ours say, until all is asked for.
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
            let hint = "expected such as info or softswitch=debug,warn";
            (usual, Some(format!("RUST_LOG is ignored: {error}; {hint}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn warnings_unless_more_is_asked_for() {
        let enabled = |asked, verbose, target, level| {
            let (filter, misspelt) = filter(asked, verbose);
            assert_eq!(misspelt, None);
            filter.would_enable(target, &level)
        };
        assert!(enabled(None, 0, "softswitch", Level::WARN));
        assert!(enabled(Some(""), 0, "softswitch", Level::WARN));
        assert!(!enabled(None, 0, "softswitch", Level::INFO));
        assert!(enabled(None, 1, "softswitch", Level::INFO));
        assert!(enabled(None, 2, "softswitch", Level::DEBUG));
        for library in ["h2::codec::framed_write", "hyper_util::client", "tonic"] {
            assert!(enabled(None, 2, library, Level::WARN), "{library}");
            assert!(!enabled(None, 2, library, Level::DEBUG), "{library}");
            assert!(enabled(None, 3, library, Level::TRACE), "{library}");
        }
        assert!(enabled(
            Some("softswitch=debug"),
            0,
            "softswitch",
            Level::DEBUG
        ));
        assert!(!enabled(
            Some("softswitch=debug"),
            0,
            "testbeds",
            Level::WARN
        ));
        let (usual, misspelt) = filter(Some("softswitch=loud"), 0);
        assert!(usual.would_enable("softswitch", &Level::WARN));
        assert!(misspelt.unwrap().starts_with("RUST_LOG is ignored: "));
    }
}
