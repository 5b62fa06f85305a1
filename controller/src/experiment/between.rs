//! A wire between machines that exist: what goes on while it is one, and how a side learns that the other is down.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testbeds::host::Process;
use testbeds::net::{NetError, Netlink};

use super::ExperimentError;
use super::timeline::Activity;
use super::workload::{Load, Measured, Position};

/// What a wire is between, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct Between<'a> {
    /// In the order of the sides that the scenario names.
    pub interfaces: [&'a str; 2],
    /// Until it is stopped, if it says nothing.
    pub length: Option<Duration>,
    /// Set when it is to end.
    pub stop: &'static AtomicBool,
}

/// How often it is asked whether both sides are up.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Somebody else's packets pass.
pub struct Passing {
    interfaces: [String; 2],
    length: Option<Duration>,
    stop: &'static AtomicBool,
    begun: Option<Instant>,
    looked: Option<Instant>,
    netlink: Netlink,
    /// The side that was taken down because the other has no carrier.
    held_down: Option<usize>,
}

impl Passing {
    /// Between two interfaces of this namespace.
    pub fn new(between: Between<'_>) -> Result<Passing, NetError> {
        Ok(Passing {
            interfaces: between.interfaces.map(str::to_owned),
            length: between.length,
            stop: between.stop,
            begun: None,
            looked: None,
            netlink: Netlink::open()?,
            held_down: None,
        })
    }

    fn elapsed(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// A cable that is unplugged at one end is seen at the other: our interface there goes down, and with it, where the driver
    /// switches its transmitter off, the carrier of whoever is connected to it. While it is down nobody can see whether its
    /// own cable is there; it comes up again with the first one.
    fn pass_carrier_on(&mut self) -> Result<(), NetError> {
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        let names = self.interfaces.each_ref();
        if let Some(side) = self.held_down {
            if self.netlink.find(names[1 - side])?.carrier {
                self.netlink.set_up(names[side], true)?;
                tracing::info!(interface = names[1 - side], "link is up again");
                self.held_down = None;
            }
            return Ok(());
        }
        for side in [0, 1] {
            if !self.netlink.find(names[side])?.carrier {
                tracing::info!(interface = names[side], "link is down: the other side is told");
                self.netlink.set_up(names[1 - side], false)?;
                self.held_down = Some(1 - side);
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Activity for Passing {
    type Error = ExperimentError;

    fn begin(&mut self) -> Result<(), ExperimentError> {
        self.begun = Some(Instant::now());
        Ok(())
    }

    fn turn(&mut self, most: Duration) -> Result<ControlFlow<()>, ExperimentError> {
        self.pass_carrier_on()?;
        let left = self.length.map(|length| length.saturating_sub(self.elapsed()));
        if self.stop.load(Ordering::Relaxed) || left.is_some_and(|left| left.is_zero()) {
            return Ok(ControlFlow::Break(()));
        }
        std::thread::sleep(left.unwrap_or(most).min(most));
        Ok(ControlFlow::Continue(()))
    }
}

impl Load for Passing {
    /// In seconds begun; without a length there is always one more to come.
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

    fn process(&mut self, _host: &str) -> Option<&mut Process> {
        None
    }

    fn finish(self: Box<Self>) -> Result<Measured, ExperimentError> {
        Ok(Measured::default())
    }
}
