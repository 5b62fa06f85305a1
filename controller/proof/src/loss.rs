//! Counts of frames missing from the captures of a switch: nothing may be concluded without them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Frames missing from the captures of a switch, because a component lost them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// Name of the switch.
    pub switch: String,
    /// Port of the switch; `None` if the switch does not report it.
    pub port: Option<u32>,
    /// Minimum number of lost frames: a packet of many frames that a recorder or a link loses counts as one.
    pub frames: u64,
    /// The component that lost the frames.
    pub by: Loser,
    /// Lower bound on the time of the first lost frame, in nanoseconds since 1970: decisions on earlier frames stand. `None`: the
    /// frames may have been lost at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
}

impl Loss {
    /// Adds this loss to the loss of the same port and component in `losses`, or appends it.
    pub(crate) fn add_to(self, losses: &mut Vec<Loss>) {
        let is_alike = |other: &&mut Loss| {
            (&other.switch, other.port, other.by) == (&self.switch, self.port, self.by)
        };
        match losses.iter_mut().find(is_alike) {
            None => losses.push(self),
            Some(other) => {
                other.frames += self.frames;
                // An unknown time sorts before all others.
                other.since_ns = other.since_ns.min(self.since_ns);
            }
        }
    }
}

/// Component of the testbed that lost frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loser {
    /// The recorder was too slow to read the frames from the port's ring.
    Recorder,
    /// The recording was full, or more frames waited for the judge than `limits.disk` allows.
    Limit,
    /// The frames waited on disk for the judge, and the disk failed to store them or to return them.
    Disk,
    /// The link to the switch lost the frames.
    Link,
    /// The receive ring of the port: the switch did not take the frames from it.
    ReceiveRing,
    /// The switch's port did not accept the frames for sending.
    Transmit,
    /// A queue within the switch was full, and the switch dropped the frames.
    Queue,
    /// The lease of the switch's faults had expired because the controller did not refresh it in time.
    Lease,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let switch = &self.switch;
        let (frames, were) = match self.frames {
            1 => ("1 frame".to_owned(), "was"),
            frames => (format!("{frames} frames"), "were"),
        };
        let port = match self.port {
            Some(port) => format!("port {port} of switch {switch}"),
            None => format!("switch {switch}"),
        };
        match self.by {
            Loser::Recorder => write!(
                f,
                "the capture at {port} lost at least {frames}: the recorder was too slow"
            ),
            Loser::Limit => write!(
                f,
                "{frames} at {port} {were} not judged: more frames waited for the judge than `limits.disk` allows"
            ),
            Loser::Disk => write!(
                f,
                "{frames} at {port} {were} not judged: they could not be written to disk (is it full?)"
            ),
            Loser::Link => write!(
                f,
                "the link to {port} lost {frames}: the switch was too slow"
            ),
            Loser::ReceiveRing => write!(
                f,
                "{frames} {were} lost in the receive ring of {port}: the switch was too slow"
            ),
            Loser::Transmit => write!(
                f,
                "{frames} could not be sent by {port}: the link was too slow"
            ),
            Loser::Lease => write!(
                f,
                "{frames} passed {port} without faults: the lease of the faults had expired, because weir refreshed it too late"
            ),
            Loser::Queue => write!(f, "{frames} {were} lost in a full queue of {port}"),
        }
    }
}
