//! A loaded program as the packet loop sees it: packets in virtual time, and its state for the control plane.

use crate::trace::{Form, render};
use p4lang::p4info::P4Info;
use pipeline::{DigestMessage, EntryState, Switch, Transmit};
use std::io::{IsTerminal, Write};

/// A program in execution. Pure but for what it prints: it knows no clock and no port; `now_ns` counts from an origin of
/// the caller's.
pub struct Dataplane {
    switch: Switch,
    /// How what it tells of packets is printed.
    told: Option<Form>,
    /// How many blocks are cut when the next warning is due.
    warns_at: u64,
}

impl Dataplane {
    /// Runs `switch`; what it tells is printed in a form, if there is one.
    pub fn new(switch: Switch, told: Option<Form>) -> Self {
        Self {
            switch,
            told,
            warns_at: 1,
        }
    }

    /// Processes a frame.
    pub fn handle_packet(&mut self, now_ns: u64, port: u32, frame: &[u8]) {
        self.handle_arrival(now_ns, now_ns, port, frame);
    }

    /// Processes a frame that has waited for its turn since `arrived_ns`.
    pub fn handle_arrival(&mut self, now_ns: u64, arrived_ns: u64, port: u32, frame: &[u8]) {
        self.switch.handle_arrival(now_ns, arrived_ns, port, frame);
        self.print_events();
    }

    /// Does what was due by `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.switch.handle_timeout(now_ns);
        self.print_events();
    }

    /// When something will be due.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.switch.poll_timeout()
    }

    /// The next frame to send, also to the CPU port.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.switch.poll_transmit()
    }

    /// Takes the buffer of a sent frame back.
    pub fn recycle(&mut self, frame: Vec<u8>) {
        self.switch.recycle(frame);
    }

    /// Frames that ended in the program, by reason, in order of the reason.
    pub fn drops(&self) -> impl Iterator<Item = (String, u64)> {
        let drops = self.switch.stats().drops();
        drops
            .filter(|(_, frames)| *frames > 0)
            .map(|(reason, frames)| (reason.name().to_owned(), frames))
    }

    /// Warns of blocks that ran out of steps, at the first and whenever there are twice as many.
    pub fn warn_of_cuts(&mut self) {
        let cut = self.switch.stats().out_of_steps;
        if cut >= self.warns_at {
            self.warns_at = cut.saturating_mul(2);
            warn_of_cuts(&self.switch);
        }
    }

    /// The next thing that the control plane is told of, apart from packets.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some((table, entry)) = self.switch.poll_idle() {
            return Some(Event::Idle(table, Box::new(entry)));
        }
        self.switch.poll_digest().map(Event::Digest)
    }

    /// The program's state, for the control plane.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// The program's state, for the control plane.
    pub fn switch_mut(&mut self) -> &mut Switch {
        &mut self.switch
    }

    /// Prints what the program told since the last time.
    fn print_events(&mut self) {
        let Some(form) = self.told else { return };
        let (events, lost) = self.switch.take_events();
        let mut output = std::io::stdout().lock();
        let text = render(&events, lost, form, output.is_terminal());
        // Nobody may be reading; packets go on.
        let _ = output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush());
    }
}

/// What a program has for the control plane.
#[derive(Debug, Clone)]
pub enum Event {
    /// A frame on the CPU port, headers and all.
    Packet(Vec<u8>),
    /// A digest message.
    Digest(DigestMessage),
    /// No packet has found the entry for its idle timeout: its table's position, and itself.
    Idle(usize, Box<EntryState>),
}

/// A program, ready to run.
pub struct Program {
    /// What a control plane may address in it.
    pub p4info: P4Info,
    /// The program in its initial state.
    pub dataplane: Dataplane,
}

/// Why a device config is no program: the compiler's diagnostics, rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(pub String);

/// Makes programs of device configs.
pub trait Loader: Send + Sync + 'static {
    /// The program that `device_config` holds.
    fn load(&self, device_config: &[u8]) -> Result<Program, LoadError>;
}

/// Says that loops or parsers were cut.
pub fn warn_of_cuts(switch: &Switch) {
    let (cut, most) = (switch.stats().out_of_steps, switch.config().max_steps);
    tracing::warn!(
        "{cut} times so far a parser or control was cut short: it took more than {most} states or rounds of loops for one packet"
    );
}
