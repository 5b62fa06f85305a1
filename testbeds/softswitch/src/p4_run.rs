//! `weir p4 run`: sends packets through a program in this process, without ports or a server.

use crate::dataplane::warn_of_cuts;
use crate::trace::{Form, given_up, render};
pub use control_state::ControlState;
pub use pipeline::Executor;
use pipeline::{Config, Switch, TableError};
use std::fmt::Write;
use std::sync::Arc;

mod control_state;

/// Maximum number of times that a packet recirculates; beyond it, `weir p4 run` stops.
const ROUNDS: u32 = 10_000;
/// Maximum number of recirculations with a trace (no user reads more of it) or in the slower reference executor.
const ROUNDS_TOLD: u32 = 64;
/// Time between two input packets on the program's clock, in nanoseconds.
const STEP_NS: u64 = 1_000_000;

/// Options of `weir p4 run`.
#[derive(Debug, Clone)]
pub struct Options {
    /// Input packets, sent one millisecond of the program's time apart.
    pub packets: Vec<Vec<u8>>,
    /// Ingress port of the input packets.
    pub port: u32,
    /// Table entries, multicast groups and clone sessions that are written before the first packet.
    pub written: ControlState,
    /// Format of the trace; `None`: no trace.
    pub trace: Option<Form>,
    /// Seed of the pattern that fills undefined bits; reads of them are reported. `None`: undefined bits are zero.
    pub poison: Option<u64>,
    /// The executor of the program; with a trace or `poison`, always the reference.
    pub executor: Executor,
    /// Whether the text of the trace contains colors.
    pub colour: bool,
}

/// The reason why packets cannot be sent through a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The program cannot be loaded; the compiler's diagnostics.
    Program(String),
    /// The program's architecture has no such ingress port.
    Port(String),
    /// A table entry, a multicast group or a clone session cannot be written.
    Entry(String),
}

/// The result of sending packets through a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The trace; or the program's log messages, with a line `PORT: BYTES` for each packet that leaves, and `-` for each
    /// input without an output.
    pub text: String,
    /// The input packet that recirculated too often: its number, from 1, and its recirculations. Later packets were not
    /// sent. `None`: all packets were sent.
    pub given_up: Option<(usize, u32)>,
    /// Descriptions of differences between the results of the two executors, with [`Executor::Both`].
    pub differences: Vec<String>,
}

/// Sends packets through a program.
///
/// # Errors
/// Returns an [`Error`].
pub fn run(program: Arc<p4lang::ir::Program>, options: &Options) -> Result<Outcome, Error> {
    let looks = options.trace.is_some() || options.poison.is_some();
    let config = Config {
        executor: if looks {
            Executor::Reference
        } else {
            options.executor
        },
        poison: options.poison,
        ..Config::default()
    };
    let mut switch = Switch::new(Arc::clone(&program), config)
        .map_err(|error| Error::Program(crate::p4::refusal(&program, &error)))?;
    pipeline::check_port(&program.arch, options.port)
        .map_err(|error| Error::Port(error.to_string()))?;
    for (i, entry) in options.written.entries.iter().enumerate() {
        switch.insert_entry(entry).map_err(|error| {
            let tables: Vec<&str> = switch.tables().map(|spec| spec.name.as_str()).collect();
            let hint = match error {
                TableError::NoSuchTable if tables.is_empty() => "; the program has none".to_owned(),
                TableError::NoSuchTable => format!("; the program has {}", tables.join(", ")),
                _ => String::new(),
            };
            Error::Entry(format!("entry {} of {}: {error}{hint}", i + 1, entry.table))
        })?;
    }
    for group in &options.written.groups {
        switch
            .set_multicast_group(group)
            .map_err(|error| Error::Entry(format!("group {}: {error}", group.id)))?;
    }
    for session in &options.written.sessions {
        switch
            .set_clone_session(session)
            .map_err(|error| Error::Entry(format!("session {}: {error}", session.id)))?;
    }
    if options.trace.is_some() {
        switch.set_tracing(true);
    }
    switch.set_logging();
    let rounds = if looks { ROUNDS_TOLD } else { ROUNDS };
    let mut outcome = Outcome::default();
    let out = &mut outcome.text;
    let (mut now_ns, mut cut) = (0, 0);
    for (number, packet) in (1..).zip(&options.packets) {
        now_ns += STEP_NS;
        let (mut left, mut sent) = (false, String::new());
        switch.handle_packet(now_ns, options.port, packet);
        for _ in 0..rounds {
            while let Some(transmit) = switch.poll_transmit() {
                left = true;
                if options.trace.is_none() {
                    // Writing to a string cannot fail.
                    let _ = write!(sent, "{}:", transmit.port);
                    for byte in &transmit.bytes {
                        let _ = write!(sent, " {byte:02x}");
                    }
                    sent.push('\n');
                }
            }
            if switch.recirculating() == 0 {
                break;
            }
            let Some(due_ns) = switch.poll_timeout() else {
                break;
            };
            now_ns = now_ns.max(due_ns);
            switch.handle_timeout(now_ns);
        }
        if switch.recirculating() > 0 {
            outcome.given_up = Some((number, rounds));
        }
        if switch.stats().out_of_steps > cut {
            cut = switch.stats().out_of_steps;
            warn_of_cuts(&switch);
        }
        if !left && options.trace.is_none() {
            sent.push_str("-\n");
        }
        let (events, lost) = switch.take_events();
        let form = options.trace.unwrap_or(Form::Text);
        out.push_str(&render(&events, lost, form, options.colour));
        out.push_str(&sent);
        if outcome.given_up.is_some() && options.trace.is_some() {
            out.push_str(&given_up(rounds, form));
        }
        outcome.differences.extend(switch.take_differences());
        if outcome.given_up.is_some() {
            break;
        }
    }
    Ok(outcome)
}

/// Parses hexadecimal digits to bytes; white space and colons between them are ignored.
///
/// # Errors
/// Returns a description of the error in the text.
pub fn bytes(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> = text
        .chars()
        .filter(|c| !c.is_whitespace() && *c != ':')
        .map(|c| c.to_digit(16).map(|d| d as u8))
        .collect();
    let digits = digits.ok_or("expected hexadecimal digits, such as 0a0b0c")?;
    if !digits.len().is_multiple_of(2) {
        return Err("an odd number of hexadecimal digits".into());
    }
    Ok(digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn packets_are_hexadecimal() {
        assert_eq!(bytes("0a:0B 0c").unwrap(), [10, 11, 12]);
        assert!(bytes("0").is_err() && bytes("zz").is_err());
    }

    pub(crate) const PROGRAM: &str = "#include <core.p4>
#include <v1model.p4>
header x_h { bit<8> a; bit<8> b; }
struct headers_t { x_h x; }
struct meta_t {}
parser P(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t s) {
    state start { pkt.extract(hdr.x); transition accept; }
}
control V(inout headers_t hdr, inout meta_t meta) { apply {} }
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t s) {
    action to(bit<9> port) { s.egress_spec = port; }
    action drop() { mark_to_drop(s); }
    table t { key = { hdr.x.a: lpm; } actions = { to; drop; } default_action = drop(); }
    apply { t.apply(); }
}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t s) { apply {} }
control C(inout headers_t hdr, inout meta_t meta) { apply {} }
control D(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

    fn through(trace: Option<Form>) -> String {
        let files = p4lang::Files::new().with("a.p4", PROGRAM);
        let compiled = p4lang::compile(&files, "a.p4", &p4lang::Options::default());
        let program = compiled.unwrap_or_else(|e| panic!("{e}")).program;
        let entry = r#"[{"table": "I.t", "key": {"hdr.x.a": {"value": "0x10", "prefix": 4}}, "action": "I.to", "params": {"port": 5}}]"#;
        let options = Options {
            packets: vec![vec![0x12, 3, 4], vec![0x22, 3]],
            port: 1,
            written: ControlState::parse(entry).unwrap(),
            trace,
            poison: None,
            executor: Executor::Both,
            colour: false,
        };
        let outcome = run(program.into(), &options).unwrap();
        assert_eq!((outcome.given_up, outcome.differences), (None, vec![]));
        outcome.text
    }

    #[test]
    fn packets_that_leave_are_printed() {
        assert_eq!(through(None), "5: 12 03 04\n-\n");
    }

    #[test]
    fn log_messages_come_before_sent_packets() {
        let logging =
            r#"apply { log_msg("a is {}", { hdr.x.a }); assert(hdr.x.a < 0x20); t.apply(); }"#;
        let text = PROGRAM.replace("apply { t.apply(); }", logging);
        let files = p4lang::Files::new().with("a.p4", text);
        let compiled = p4lang::compile(&files, "a.p4", &p4lang::Options::default());
        let program = Arc::new(compiled.unwrap_or_else(|e| panic!("{e}")).program);
        for executor in [Executor::Fast, Executor::Both] {
            let options = Options {
                packets: vec![vec![0x12, 3], vec![0x22, 3]],
                port: 1,
                written: ControlState::default(),
                trace: None,
                poison: None,
                executor,
                colour: false,
            };
            let outcome = run(Arc::clone(&program), &options).unwrap();
            assert_eq!(
                outcome.text,
                "a.p4:14    log: a is 18\n-\n\
                 a.p4:14    log: a is 34\na.p4:14    failed: assert(hdr.x.a < 0x20)\n-\n"
            );
            assert_eq!(outcome.differences, Vec::<String>::new());
        }
    }

    /// A loop over a `bit<16>` must not count as infinite.
    #[test]
    fn loops_run_to_their_end() {
        let looped = "apply { bit<32> n = 0; for (bit<32> i in 32w1..32w65535) { n = n + 1; }
            if (n == 65535) { s.egress_spec = 2; } }";
        let text = PROGRAM.replace("apply { t.apply(); }", looped);
        let files = p4lang::Files::new().with("a.p4", text);
        let compiled = p4lang::compile(&files, "a.p4", &p4lang::Options::default());
        let program = compiled.unwrap_or_else(|e| panic!("{e}")).program;
        let options = Options {
            packets: vec![vec![0x12, 3]],
            port: 1,
            written: ControlState::default(),
            trace: None,
            poison: None,
            executor: Executor::Both,
            colour: false,
        };
        let outcome = run(program.into(), &options).unwrap();
        assert_eq!(outcome.text, "2: 12 03\n");
        assert_eq!(outcome.differences, Vec::<String>::new());
    }

    #[test]
    fn a_trace_explains_each_packet() {
        let text = through(Some(Form::Text));
        for line in [
            "           port 1: 3 bytes",
            "a.p4:7     state start",
            "a.p4:7       extract hdr.x, 16 bits from bit 0",
            "                 a  0x12",
            "a.p4:14    table I.t",
            "               hit hdr.x.a = 0x10/4",
            "               → I.to(port = 0x5)",
            "           → port 5: 3 bytes",
            "               miss",
            "               → I.drop()",
            "           → dropped: ingress",
        ] {
            assert!(
                text.lines().any(|l| l.trim() == line.trim()),
                "{line}\n{text}"
            );
        }
    }

    #[test]
    fn a_trace_of_an_endless_recirculation_ends() {
        let text = PROGRAM.replace(
            "inout standard_metadata_t s) { apply {} }",
            "inout standard_metadata_t s) { apply { recirculate_preserving_field_list(0); } }",
        );
        let files = p4lang::Files::new().with("a.p4", text);
        let compiled = p4lang::compile(&files, "a.p4", &p4lang::Options::default());
        let program: Arc<_> = compiled.unwrap_or_else(|e| panic!("{e}")).program.into();
        let entry = r#"[{"table": "I.t", "key": {"hdr.x.a": {"value": "0x10", "prefix": 4}}, "action": "I.to", "params": {"port": 5}}]"#;
        let given_up = |trace| {
            let options = Options {
                packets: vec![vec![0x12, 3]],
                port: 1,
                written: ControlState::parse(entry).unwrap(),
                trace: Some(trace),
                poison: None,
                executor: Executor::Reference,
                colour: false,
            };
            let outcome = run(Arc::clone(&program), &options).unwrap();
            assert_eq!(outcome.given_up, Some((1, ROUNDS_TOLD)));
            assert!(outcome.text.lines().count() < 100 * ROUNDS_TOLD as usize);
            outcome.text.lines().last().unwrap_or("").to_owned()
        };
        let text = given_up(Form::Text);
        assert_eq!(text, "stopped: still recirculating after 64 rounds");
        let json: Value = serde_json::from_str(&given_up(Form::Json)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({ "event": "given_up", "rounds": 64 })
        );
    }

    #[test]
    fn a_trace_for_machines_is_an_object_a_line() {
        let text = through(Some(Form::Json));
        let lines: Vec<Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        let events: Vec<_> = lines.iter().filter_map(|l| l["event"].as_str()).collect();
        assert_eq!(events.len(), lines.len());
        let table = lines.iter().find(|l| l["event"] == "table").unwrap();
        assert_eq!(table["action"]["params"][0]["value"], "0x5");
        assert_eq!(
            (&table["hit"], &table["line"]),
            (&Value::Bool(true), &Value::from(14))
        );
        assert_eq!(lines.last().unwrap()["reason"], "ingress");
    }
}
