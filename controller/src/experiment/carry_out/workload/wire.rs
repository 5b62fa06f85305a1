//! The activity of a wire between two interfaces: frames of other machines pass. If one side's link is down, so is the other's.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testbeds::net::{Found, NetError, Netlink};

use super::{Load, Measured, Position, WorkloadError};
use crate::experiment::prepare::WireEnds;

/// Interval between checks whether both interfaces exist and are up.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// The activity of a wire: it lasts until its duration is over, it is stopped, or an interface disappears.
pub struct Wire {
    /// Indices of the two interfaces; an index stays when an interface is renamed.
    interfaces: [u32; 2],
    names: [String; 2],
    /// Side (0 or 1) whose interface no longer exists, and when that was noticed since the start.
    gone: Option<(usize, Duration)>,
    length: Option<Duration>,
    stop: &'static AtomicBool,
    begun: Option<Instant>,
    checked: Option<Instant>,
    netlink: Netlink,
    /// Side (0 or 1) whose interface weir has set down because the other side has no carrier.
    held_down: Option<usize>,
}

impl Wire {
    /// Creates the activity of a wire between two interfaces of this network namespace.
    pub fn new(between: WireEnds<'_>) -> Result<Wire, NetError> {
        let netlink = Netlink::open()?;
        let [one, other] = between.interfaces;
        Ok(Wire {
            interfaces: [netlink.find(one)?.index, netlink.find(other)?.index],
            names: between.interfaces.map(str::to_owned),
            gone: None,
            length: between.length,
            stop: between.stop,
            begun: None,
            checked: None,
            netlink,
            held_down: None,
        })
    }

    fn elapsed(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// Passes on that the cable at one side is unplugged: sets the other side's interface down, so that the machine connected
    /// there loses its carrier, if the driver switches its transmitter off. Sets this interface up again when the first side
    /// has a carrier again; while it is down, the state of its own cable is unknown.
    fn pass_carrier_on(&mut self, sides: &[(String, Found); 2]) -> Result<(), NetError> {
        let carrier = |side: usize| sides[side].1.carrier;
        let name = |side: usize| sides[side].0.as_str();
        if let Some(side) = self.held_down {
            if carrier(1 - side) {
                self.netlink.set_up(name(side), true)?;
                tracing::info!(interface = name(1 - side), "link is up again");
                self.held_down = None;
            }
            return Ok(());
        }
        if let Some(side) = [0, 1].into_iter().find(|side| !carrier(*side)) {
            tracing::info!(
                interface = name(side),
                "link is down: weir sets its other side down too"
            );
            self.netlink.set_up(name(1 - side), false)?;
            self.held_down = Some(1 - side);
        }
        Ok(())
    }

    /// Checks, if a check is due, whether both interfaces exist and have a carrier.
    fn check(&mut self) -> Result<(), NetError> {
        if self
            .checked
            .is_some_and(|checked| checked.elapsed() < CHECK_EVERY)
        {
            return Ok(());
        }
        self.checked = Some(Instant::now());
        let sides = match self.sides()? {
            Ok(sides) => sides,
            Err(side) => {
                self.is_gone(side);
                return Ok(());
            }
        };
        let Err(error) = self.pass_carrier_on(&sides) else {
            return Ok(());
        };
        // An interface may have disappeared since.
        match self.sides()? {
            Ok(_) => Err(error),
            Err(side) => {
                self.is_gone(side);
                Ok(())
            }
        }
    }

    /// Current name and state of both interfaces; `Err` with the side (0 or 1) whose interface does not exist.
    fn sides(&self) -> Result<Result<[(String, Found); 2], usize>, NetError> {
        let [one, other] = self.interfaces;
        Ok(
            match (
                self.netlink.find_index(one)?,
                self.netlink.find_index(other)?,
            ) {
                (Some(one), Some(other)) => Ok([one, other]),
                (None, _) => Err(0),
                (_, None) => Err(1),
            },
        )
    }

    fn is_gone(&mut self, side: usize) {
        tracing::warn!(
            interface = self.names[side],
            "the interface no longer exists: the wire ends"
        );
        self.gone = Some((side, self.elapsed()));
    }
}

impl Load for Wire {
    fn begin(&mut self) -> Result<(), WorkloadError> {
        self.begun = Some(Instant::now());
        Ok(())
    }

    fn poll(&mut self, most: Duration) -> Result<ControlFlow<()>, WorkloadError> {
        self.check()?;
        let left = self
            .length
            .map(|length| length.saturating_sub(self.elapsed()));
        if self.gone.is_some()
            || self.stop.load(Ordering::Relaxed)
            || left.is_some_and(|left| left.is_zero())
        {
            return Ok(ControlFlow::Break(()));
        }
        std::thread::sleep(left.unwrap_or(most).min(most));
        Ok(ControlFlow::Continue(()))
    }

    /// Progress in seconds; for a wire without a duration, the total is always one second more than has passed.
    fn position(&self) -> Position {
        let done = self.elapsed().as_secs();
        let total = self.length.map(|length| length.as_secs_f64().ceil() as u64);
        Position {
            unit: "s",
            done: done.min(total.unwrap_or(done)),
            total: total.unwrap_or(done + 1),
            message: String::new(),
        }
    }

    fn finish(self: Box<Self>) -> Result<Measured, WorkloadError> {
        let failure = self.gone.map(|(side, after)| {
            format!(
                "interface {} no longer existed {:.1} s after the start: the wire ended",
                self.names[side],
                after.as_secs_f64()
            )
        });
        Ok(Measured {
            failures: failure.into_iter().collect(),
            ..Measured::default()
        })
    }
}
