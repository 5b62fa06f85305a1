//! A P4 program as the packet loop sees it: it processes frames in virtual time; the control plane accesses its state.

use crate::trace::{Form, render};
use p4lang::p4info::P4Info;
use pipeline::{DigestMessage, EntryState, Switch, Transmit};
use std::io::{IsTerminal, Write};

/// A running P4 program. Pure except for its printed trace: it has no clock and no ports; `now_ns` counts from an
/// origin that the caller chooses.
pub struct Dataplane {
    switch: Switch,
    /// Format in which the trace of each packet is printed; `None`: no trace.
    told: Option<Form>,
    /// The next warning is due when the step limit has stopped this number of runs of P4 blocks.
    warns_at: u64,
}

impl Dataplane {
    /// Runs the program of `switch`. `told`: format in which the trace of each packet is printed; `None`: no trace.
    pub fn new(switch: Switch, told: Option<Form>) -> Self {
        Self {
            switch,
            told,
            warns_at: 1,
        }
    }

    /// Processes a frame that arrives on `port`.
    pub fn handle_packet(&mut self, now_ns: u64, port: u32, frame: &[u8]) {
        self.handle_arrival(now_ns, now_ns, port, frame);
    }

    /// Processes a frame that arrived on `port` at `arrived_ns` and has waited since.
    pub fn handle_arrival(&mut self, now_ns: u64, arrived_ns: u64, port: u32, frame: &[u8]) {
        self.switch.handle_arrival(now_ns, arrived_ns, port, frame);
        self.print_events();
    }

    /// Performs the program's timed work that was due by `now_ns`: packets that recirculate or wait in queues, timeouts.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        self.switch.handle_timeout(now_ns);
        self.print_events();
    }

    /// Time in nanoseconds at which the program's next timed work is due; `None`: there is none.
    pub fn poll_timeout(&self) -> Option<u64> {
        self.switch.poll_timeout()
    }

    /// Takes the next frame that the program sends, to a port or to the CPU port; `None`: there is none.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.switch.poll_transmit()
    }

    /// Takes back the buffer of a sent frame for reuse.
    pub fn recycle(&mut self, frame: Vec<u8>) {
        self.switch.recycle(frame);
    }

    /// Number of frames that the program dropped, by the name of the reason; reasons without frames are left out.
    pub fn drops(&self) -> impl Iterator<Item = (String, u64)> {
        let drops = self.switch.stats().drops();
        drops
            .filter(|(_, frames)| *frames > 0)
            .map(|(reason, frames)| (reason.name().to_owned(), frames))
    }

    /// Logs a warning when P4 blocks have exceeded the step limit: at the first one, and each time their number has doubled.
    pub fn warn_of_cuts(&mut self) {
        let cut = self.switch.stats().out_of_steps;
        if cut >= self.warns_at {
            self.warns_at = cut.saturating_mul(2);
            warn_of_cuts(&self.switch);
        }
    }

    /// Takes the next idle table entry or digest message for the control plane; `None`: there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        if let Some((table, entry)) = self.switch.poll_idle() {
            return Some(Event::Idle(table, Box::new(entry)));
        }
        self.switch.poll_digest().map(Event::Digest)
    }

    /// Tables and other state of the running program, for the control plane to read.
    pub fn switch(&self) -> &Switch {
        &self.switch
    }

    /// Tables and other state of the running program, for the control plane to write.
    pub fn switch_mut(&mut self) -> &mut Switch {
        &mut self.switch
    }

    /// Prints the trace of the packets processed since the last call.
    fn print_events(&mut self) {
        let Some(form) = self.told else { return };
        let (events, lost) = self.switch.take_events();
        let mut output = std::io::stdout().lock();
        let text = render(&events, lost, form, output.is_terminal());
        // A failure to print is ignored, so that packets continue.
        let _ = output
            .write_all(text.as_bytes())
            .and_then(|()| output.flush());
    }
}

/// An event of the program for the control plane.
#[derive(Debug, Clone)]
pub enum Event {
    /// A frame that the program sent to the CPU port, including its controller header.
    Packet(Vec<u8>),
    /// A digest message that the program sent to the control plane.
    Digest(DigestMessage),
    /// A table entry that no packet has matched within its idle timeout: the table's index, and the table entry.
    Idle(usize, Box<EntryState>),
}

/// A compiled P4 program, ready to run.
pub struct Program {
    /// The objects that a control plane may address in the program.
    pub p4info: P4Info,
    /// The program in its initial state, which can process frames.
    pub dataplane: Dataplane,
}

/// The reason why a device config cannot be loaded: the compiler's diagnostics, rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(pub String);

/// Loads programs from the device configs that P4Runtime clients send.
pub trait Loader: Send + Sync + 'static {
    /// Loads the program that `device_config` contains.
    fn load(&self, device_config: &[u8]) -> Result<Program, LoadError>;
}

/// Logs a warning that says how often parsers or controls were stopped at the step limit.
pub fn warn_of_cuts(switch: &Switch) {
    let (cut, most) = (switch.stats().out_of_steps, switch.config().max_steps);
    tracing::warn!(
        "parsers and controls were stopped {cut} times so far: they took more than {most} states or loop iterations for one packet"
    );
}
