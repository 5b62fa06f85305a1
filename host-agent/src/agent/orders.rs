//! Orders to a running agent: one JSON object per line, on the standard input.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::args::{PartOf, PlaceInPart};
use crate::frames::Mac;

/// Maximum number of orders that wait for the agent; beyond it, the reading thread blocks.
const MOST_WAITING: usize = 16;
/// Maximum length of a line with an order, in bytes.
const MOST_BYTES: u64 = 1 << 20;
/// Interval at which a waiting agent polls for orders.
const PACE: Duration = Duration::from_millis(10);

/// An order to a running agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// Order to a server: from now on, switches sum these parts of the job. The server answers with
    /// [`Line::Replanned`](super::Line::Replanned).
    Replan {
        /// Parts of the job, in the form of `--part`.
        parts: Vec<PartOf>,
    },
    /// Order to a worker: send updates by another route.
    Move {
        /// The worker's part, in the form of `--part`; `None` if no switch sums its values.
        #[serde(skip_serializing_if = "Option::is_none")]
        part: Option<PlaceInPart>,
        /// Destination Ethernet address of the worker's updates, as in `--via`.
        via: Mac,
        /// Number of the first chunk sent by this route; earlier chunks go directly to the server.
        from: u32,
    },
}

/// Source of orders to this agent.
#[derive(Debug)]
pub struct Orders {
    /// Lines read by the reading thread; `None` once the source has ended.
    lines: Option<Receiver<io::Result<String>>>,
}

impl Orders {
    /// A source without orders.
    #[must_use]
    pub fn none() -> Orders {
        Orders { lines: None }
    }

    /// Orders from the standard input, which no other code of the process may read.
    pub fn from_standard_input() -> io::Result<Orders> {
        let (sender, receiver) = mpsc::sync_channel(MOST_WAITING);
        // The thread ends with the input, or with the process.
        thread::Builder::new()
            .name("orders".to_owned())
            .spawn(move || {
                let mut input = io::stdin().lock();
                while let Some(line) = next_line(&mut input).transpose() {
                    let is_last = line.is_err();
                    if sender.send(line).is_err() || is_last {
                        return;
                    }
                }
            })?;
        Ok(Orders {
            lines: Some(receiver),
        })
    }

    /// Limits a wait to the interval at which the agent must poll for orders.
    pub(super) fn at_most(&self, wait: Duration) -> Duration {
        match self.lines {
            Some(_) => wait.min(PACE),
            None => wait,
        }
    }

    /// The next order that has arrived; `None` if there is none.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<Order>> {
        let Some(lines) = &self.lines else {
            return Ok(None);
        };
        let line = match lines.try_recv() {
            Ok(line) => line.context("cannot read the standard input")?,
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => {
                self.lines = None;
                return Ok(None);
            }
        };
        let order = serde_json::from_str(&line).with_context(|| format!("not an order: {line}"))?;
        Ok(Some(order))
    }
}

/// The next line that is not empty; `None` at the end of the input.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    loop {
        let mut line = String::new();
        let length = input.by_ref().take(MOST_BYTES).read_line(&mut line)? as u64;
        if length == MOST_BYTES {
            return Err(io::Error::other(
                "a line exceeds the maximum length of an order",
            ));
        }
        if length == 0 || !line.trim().is_empty() {
            return Ok((length > 0).then_some(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lines_are_skipped_and_long_ones_refused() {
        let mut input = io::Cursor::new("\n  \none\ntwo");
        assert_eq!(next_line(&mut input).unwrap().unwrap().trim(), "one");
        assert_eq!(next_line(&mut input).unwrap().unwrap(), "two");
        assert_eq!(next_line(&mut input).unwrap(), None);
        let mut long = io::Cursor::new("x".repeat(MOST_BYTES as usize + 1));
        assert!(next_line(&mut long).is_err());
    }

    fn given(lines: &[&str]) -> Orders {
        let (sender, receiver) = mpsc::channel();
        for line in lines {
            sender.send(Ok((*line).to_owned())).unwrap();
        }
        Orders {
            lines: Some(receiver),
        }
    }

    #[test]
    fn orders_are_written_like_arguments() {
        let replan = r#"{"order":"replan","parts":["7:0,3","8:1"]}"#;
        let to_part =
            r#"{"order":"move","part":"7/1","via":"02:00:5e:57:45:07","from":4294967295}"#;
        let alone = r#"{"order":"move","via":"01:00:5e:57:45:07","from":9}"#;
        let mut orders = given(&[replan, to_part, alone]);
        for line in [replan, to_part, alone] {
            let order = orders.next().unwrap().unwrap();
            assert_eq!(serde_json::to_string(&order).unwrap(), line);
        }
        assert_eq!(orders.at_most(Duration::MAX), PACE);
        assert_eq!(orders.next().unwrap(), None);
        // The source has ended.
        assert_eq!(orders.at_most(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn an_invalid_order_is_an_error() {
        for line in [
            "go",
            r#"{"order":"stop"}"#,
            r#"{"order":"replan","parts":["7"]}"#,
            r#"{"order":"move","part":"7","via":"02:00:5e:57:45:07","from":1}"#,
            r#"{"order":"move","via":"02:00:5e:57:45:07","from":1,"to":2}"#,
        ] {
            let error = given(&[line]).next().unwrap_err();
            assert!(format!("{error:#}").contains(line), "{error:#}");
        }
    }
}
