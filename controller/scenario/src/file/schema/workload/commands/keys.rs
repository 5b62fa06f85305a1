//! The keys of a command.

use super::metrics;
use crate::file::schema::shape::{DURATION, Object, Shape, may, needed};
use crate::file::schema::templates::RUN;

pub(in crate::file::schema::workload) static COMMAND: Object = Object {
    what: "a command",
    keys: &[
        needed("name", Shape::Name, "its name"),
        needed("host", Shape::Name, "where it runs"),
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
            "whether it runs as root of its namespace; false",
        ),
        may(
            "repeat",
            Shape::Either(&[Shape::Integer(1, 1_000_000), Shape::Object(&REPEAT)]),
            "how often a driver runs; once",
        ),
        may(
            "stop",
            Shape::Either(&[Shape::Text, Shape::Object(&STOP)]),
            "the signal that ends a service; TERM",
        ),
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
            DURATION,
            "how long that may take; 10s, of a preparation 60s",
        ),
    ],
};

pub(super) static REPEAT: Object = Object {
    what: "`repeat`",
    keys: &[
        may("times", Shape::Integer(1, 1_000_000), "how often"),
        may("for", DURATION, "until this time has passed"),
        may("pause", DURATION, "between two runs; 0s"),
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
            DURATION,
            "how long it may take to end, before it is killed; 2s",
        ),
    ],
};
