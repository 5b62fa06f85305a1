//! Frames that passed a switch, or came to it, and are not in the evidence: nothing may be concluded without them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Frames that somebody lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Loss {
    /// At which switch.
    pub switch: String,
    /// At which of its ports; nothing if the switch does not say.
    pub port: Option<u32>,
    /// How many.
    pub frames: u64,
    /// Who lost them.
    pub by: Loser,
    /// The first of them passed after this, in nanoseconds since 1970: what is decided of earlier frames stands. `None`: they may
    /// have been lost at any time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_ns: Option<u64>,
}

impl Loss {
    /// Adds a loss to those of the same port and loser.
    pub(crate) fn add_to(self, losses: &mut Vec<Loss>) {
        let is_alike = |other: &&mut Loss| {
            (&other.switch, other.port, other.by) == (&self.switch, self.port, self.by)
        };
        match losses.iter_mut().find(is_alike) {
            None => losses.push(self),
            Some(other) => {
                other.frames += self.frames;
                // A time that is not known is before all others.
                other.since_ns = other.since_ns.min(self.since_ns);
            }
        }
    }
}

/// Who lost frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Loser {
    /// The recorder was too slow.
    Recorder,
    /// The recording was full, or the frames that waited for the judge were more than `limits.disk` allows.
    Limit,
    /// The frames waited for the judge, and the disk did not take them or did not give them back.
    Disk,
    /// The link, on their way to the switch.
    Link,
    /// The switch did not take them from the receive ring of its port.
    ReceiveRing,
    /// The switch's port did not take them to send.
    Transmit,
    /// A queue within the switch was full.
    Queue,
    /// The faults' lease had run out: nobody had refreshed it in time.
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
                "the capture at {port} lost {frames}: the recorder was too slow"
            ),
            Loser::Limit => write!(
                f,
                "{frames} at {port} {were} not judged: more frames waited for the judge than `limits.disk` allows"
            ),
            Loser::Disk => write!(
                f,
                "{frames} at {port} {were} not judged: the disk did not take them (is it full?)"
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
                "{frames} met no fault at {port}: the lease of its faults had run out, weir was too slow to refresh it"
            ),
            Loser::Queue => write!(f, "{frames} met a full queue within {port}"),
        }
    }
}
