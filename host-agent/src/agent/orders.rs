//! What an agent is told while it runs: a JSON object a line, on the standard input.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::args::{PartOf, PlaceInPart};
use crate::frames::Mac;

/// So many orders wait at most; who gives more waits.
const MOST_WAITING: usize = 16;
/// A line is no longer.
const MOST_BYTES: u64 = 1 << 20;
/// So often an agent that takes orders looks for them.
const PACE: Duration = Duration::from_millis(10);

/// One order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// To a server: switches sum these parts from now on. It answers with [`Line::Replanned`](super::Line::Replanned).
    Replan {
        /// As `--part` has them.
        parts: Vec<PartOf>,
    },
    /// To a worker: its updates go another way.
    Move {
        /// As `--part` has it; none if no switch sums them.
        #[serde(skip_serializing_if = "Option::is_none")]
        part: Option<PlaceInPart>,
        /// As `--via` has it.
        via: Mac,
        /// From this chunk on; before it, to the server by itself.
        from: u32,
    },
}

/// Where orders come from.
#[derive(Debug)]
pub struct Orders {
    /// `None` once nobody gives any more.
    lines: Option<Receiver<io::Result<String>>>,
}

impl Orders {
    /// From nowhere.
    #[must_use]
    pub fn none() -> Orders {
        Orders { lines: None }
    }

    /// From the standard input, which nobody else reads.
    pub fn from_standard_input() -> io::Result<Orders> {
        let (sender, receiver) = mpsc::sync_channel(MOST_WAITING);
        // It ends with the input, or with the process.
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

    /// No longer than this the agent may wait for anything else.
    pub(super) fn at_most(&self, wait: Duration) -> Duration {
        match self.lines {
            Some(_) => wait.min(PACE),
            None => wait,
        }
    }

    /// The next order, if there is one.
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
        let order = serde_json::from_str(&line).with_context(|| format!("no order: {line}"))?;
        Ok(Some(order))
    }
}

/// A line that is not empty; nothing at the end.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    loop {
        let mut line = String::new();
        let length = input.by_ref().take(MOST_BYTES).read_line(&mut line)? as u64;
        if length == MOST_BYTES {
            return Err(io::Error::other("a line is too long for an order"));
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
    fn empty_lines_are_none_and_long_ones_are_refused() {
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
    fn orders_are_written_as_arguments_are() {
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
        // Whoever gave them has gone.
        assert_eq!(orders.at_most(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn what_is_no_order_is_an_error() {
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
