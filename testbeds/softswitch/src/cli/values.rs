//! Parses the values of flags: interfaces, rates, times and marks, for all ports or for one port.

use std::str::FromStr;

use pipeline::{CLASSES, Scheduler};

use crate::ports::MOST_MARK_AT;

/// A port and the interface behind it, written `1@veth0`, or `1@veth0,bundles` if the other end is known to take bundles of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Number of the switch's port.
    pub port: u32,
    /// Name of the interface.
    pub name: String,
    /// Whether the port sends bundles from the start, instead of after one has come.
    pub bundles: bool,
}

impl FromStr for Interface {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (port, name) = text
            .split_once('@')
            .ok_or("expected PORT@INTERFACE, such as 1@veth0")?;
        let port = port
            .parse()
            .map_err(|_| format!("`{port}` is not a port number"))?;
        let (name, bundles) = match name.strip_suffix(",bundles") {
            Some(name) => (name, true),
            None => (name, false),
        };
        match name {
            "" => Err("the interface's name is missing".to_owned()),
            name => Ok(Self {
                port,
                name: name.to_owned(),
                bundles,
            }),
        }
    }
}

/// Rate for all ports, written `1gbps`, or for one port, written `2@1gbps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRate {
    /// The port; `None`: all ports that no other flag names.
    pub port: Option<u32>,
    /// Rate in bits per second.
    pub rate_bps: u64,
}

impl FromStr for PortRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (port, rate) = port_and(text)?;
        Ok(Self {
            port,
            rate_bps: rate_bps(rate)?,
        })
    }
}

/// Number of waiting frames from which on a port marks frames (ECN): for all ports, written `65`, or for one, written `2@65`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortMark {
    /// The port; `None`: all ports that no other flag names.
    pub port: Option<u32>,
    /// Number of waiting frames from which on frames are marked.
    pub frames: usize,
}

impl FromStr for PortMark {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (port, frames) = port_and(text)?;
        let number = frames.parse().ok();
        let number = number.filter(|frames| (1..=MOST_MARK_AT).contains(frames));
        let wrong =
            || format!("`{frames}` is not a number of frames: expected 1 to {MOST_MARK_AT}");
        Ok(Self {
            port,
            frames: number.ok_or_else(wrong)?,
        })
    }
}

/// Number of waiting frames from which on a port marks frames (ECN); `None`: it never does. A flag that names the port precedes
/// one for all ports; among equals, the last one applies.
pub(super) fn mark_at(given: &[PortMark], port: u32) -> Option<usize> {
    let of = |wanted| given.iter().rfind(|mark| mark.port == wanted);
    let mark = of(Some(port)).or_else(|| of(None))?;
    Some(mark.frames)
}

/// Splits `PORT@REST`: the port (`None` without an `@`), and the rest of the text.
fn port_and(text: &str) -> Result<(Option<u32>, &str), String> {
    let Some((port, rest)) = text.split_once('@') else {
        return Ok((None, text));
    };
    let number = port.parse();
    let number = number.map_err(|_| format!("`{port}` is not a port number"))?;
    Ok((Some(number), rest))
}

pub(super) fn port_latency(text: &str) -> Result<(u32, u64), String> {
    let (port, time) = text
        .split_once('@')
        .ok_or("expected PORT@TIME, such as 1@10ms")?;
    let number = port.parse();
    let number = number.map_err(|_| format!("`{port}` is not a port number"))?;
    Ok((number, time_ns(time)?))
}

/// Latency of a port's link, in nanoseconds; 0 if no flag names the port. If several do, the last one applies.
pub(super) fn latency_ns(given: &[(u32, u64)], port: u32) -> u64 {
    let of_port = given.iter().rfind(|(number, _)| *number == port);
    of_port.map_or(0, |(_, ns)| *ns)
}

pub(super) fn weights(text: &str) -> Result<Scheduler, String> {
    let weights: Result<Vec<u32>, String> = text
        .split(',')
        .map(|weight| match weight.parse() {
            Ok(0) | Err(_) => Err(format!("`{weight}` is not a weight: expected 1, 2, …")),
            Ok(weight) => Ok(weight),
        })
        .collect();
    let weights = weights?.try_into();
    let weights: [u32; CLASSES] =
        weights.map_err(|w: Vec<u32>| format!("{} weights; expected {CLASSES}", w.len()))?;
    Ok(Scheduler::Weighted(weights))
}

pub(super) fn time_ns(text: &str) -> Result<u64, String> {
    with_unit(
        text,
        &[
            ("ns", 1),
            ("us", 1_000),
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
        ],
    )
}

pub(super) fn rate_bps(text: &str) -> Result<u64, String> {
    with_unit(
        text,
        &[
            ("bps", 1),
            ("kbps", 1_000),
            ("mbps", 1_000_000),
            ("gbps", 1_000_000_000),
        ],
    )
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Result<u64, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let names = || {
        units
            .iter()
            .map(|(name, _)| *name)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (_, factor) = units
        .iter()
        .find(|(name, _)| unit.eq_ignore_ascii_case(name))
        .ok_or_else(|| format!("expected a whole number with a unit ({})", names()))?;
    let number: u64 = number
        .parse()
        .map_err(|_| format!("`{number}` is not a number"))?;
    number
        .checked_mul(*factor)
        .filter(|value| *value > 0)
        .ok_or_else(|| "out of range".to_owned())
}
