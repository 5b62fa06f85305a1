//! The schema of a command of the workload: its keys, with shapes and defaults.

use super::metrics;
use crate::file::schema::shape::{DURATION, Object, Shape, duration, may, needed};
use crate::file::schema::templates::RUN;
use crate::model::workload::commands::Stop;

pub(in crate::file::schema::workload) static COMMAND: Object = Object {
    what: "a command",
    keys: &[
        needed("name", Shape::Name("a command"), "its name"),
        needed("host", Shape::Name("a host"), "where it runs"),
        needed("run", RUN, "a line for the shell, or words"),
        may(
            "ready",
            Shape::Either(&[Shape::Word(&["started"]), Shape::Object(&READY)]),
            "makes it a service: the sign that it can be used",
        ),
        may(
            "env",
            Shape::Map(&Shape::Either(&[Shape::Value, Shape::Bool])),
            "variables",
        ),
        may(
            "dir",
            Shape::Text,
            "the folder it starts in, such as `{dir}`, one of its own; where `weir` was called",
        ),
        may(
            "root",
            Shape::Bool,
            "whether it runs as root of its namespace",
        )
        .or_flag(false),
        may(
            "repeat",
            Shape::Either(&[TIMES, Shape::Object(&REPEAT)]),
            "how often a driver runs",
        )
        .or(1),
        may(
            "stop",
            Shape::Either(&[Shape::Text, Shape::Object(&STOP)]),
            "the signal that ends a service",
        )
        .or_word("TERM"),
        may(
            "metrics",
            Shape::Map(&Shape::Object(&metrics::SERIES)),
            "numbers in its output",
        ),
    ],
};

pub(super) static READY: Object = Object {
    what: "`ready`",
    keys: &[
        may(
            "tcp",
            Shape::Integer(1, 65_535),
            "a port on which it accepts connections",
        ),
        may(
            "log",
            Shape::Text,
            "a regular expression of a line that it writes",
        ),
        may("file", Shape::Text, "a file that it makes"),
        may(
            "exit",
            Shape::Integer(0, 255),
            "it is a preparation, and ends with this exit code",
        ),
        may(
            "within",
            duration(1, 3_600_000_000_000),
            "how long that may take; 10s, of a preparation 60s",
        ),
    ],
};

/// The shape of the number of runs of a driver.
const TIMES: Shape = Shape::Integer(1, 1_000_000);

pub(super) static REPEAT: Object = Object {
    what: "`repeat`",
    keys: &[
        may("times", TIMES, "how often"),
        may("for", duration(1, u64::MAX), "until this time has passed"),
        may("pause", DURATION, "between two runs").or(0),
    ],
};

pub(super) static STOP: Object = Object {
    what: "`stop`",
    keys: &[
        needed(
            "signal",
            Shape::Text,
            "`TERM`, `INT`, `QUIT`, `HUP` or `KILL`",
        ),
        may(
            "within",
            duration(1, 60_000_000_000),
            "how long it may take to end, before it is killed",
        )
        .or(Stop::DEFAULT.within_ns),
    ],
};
