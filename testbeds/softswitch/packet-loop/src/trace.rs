//! Renders the trace events of [`pipeline`]: as text for users, as JSON for programs.

use p4lang::source::visible;
use pipeline::{Event, EventAction, EventField, EventKind};
use serde_json::{Value, json};
use std::fmt::Write;

/// Format of trace events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// Lines of text, colored on terminals
    Text,
    /// One JSON object per line
    Json,
}

/// Renders trace events. `lost`: number of events that exceeded the buffer. `colour`: whether text has colors.
#[must_use]
pub fn render(events: &[Event], lost: u64, form: Form, colour: bool) -> String {
    let mut out = String::new();
    let width = events.iter().map(|e| place(e).len()).max().unwrap_or(0);
    for event in events {
        match form {
            Form::Json => {
                out.push_str(&json(event).to_string());
                out.push('\n');
            }
            Form::Text => {
                let paint = Paint(colour);
                for (i, line) in lines(&event.kind, paint).iter().enumerate() {
                    let place = if i == 0 { place(event) } else { String::new() };
                    // Writing to a string cannot fail.
                    let line = paint.only_own(line);
                    let _ = writeln!(out, "{}  {line}", paint.dim(&format!("{place:<width$}")));
                }
            }
        }
    }
    if lost > 0 {
        let _ = match form {
            Form::Text => writeln!(out, "{lost} further events are not shown"),
            Form::Json => writeln!(out, "{}", json!({ "event": "lost", "events": lost })),
        };
    }
    out
}

/// The last line of a trace that was stopped after `rounds` rounds of recirculation.
#[must_use]
pub fn given_up(rounds: u32, form: Form) -> String {
    match form {
        Form::Text => format!("stopped: still recirculating after {rounds} rounds\n"),
        Form::Json => format!("{}\n", json!({ "event": "given_up", "rounds": rounds })),
    }
}

fn place(event: &Event) -> String {
    let at = event.at.as_ref();
    at.map_or_else(String::new, |at| {
        let file = at.file.rsplit('/').next().unwrap_or(&at.file);
        format!("{file}:{}", at.line)
    })
}

#[derive(Clone, Copy)]
struct Paint(bool);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 && !text.trim().is_empty() {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Makes control characters visible, because names may contain any; only the color codes of this module stay.
    fn only_own(self, line: &str) -> String {
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        while let Some(at) = rest.find('\x1b') {
            let (before, escape) = rest.split_at(at);
            out.push_str(&visible(before));
            let own = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m"]
                .into_iter()
                .find(|own| self.0 && escape.starts_with(own));
            let taken = own.unwrap_or("\x1b");
            match own {
                Some(own) => out.push_str(own),
                None => out.push_str(&visible(taken)),
            }
            rest = &escape[taken.len()..];
        }
        out.push_str(&visible(rest));
        out
    }

    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    fn bad(self, text: &str) -> String {
        self.with("31", text)
    }
}

/// The lines of text for a trace event: names of P4 blocks start at the margin, the steps of a block are indented.
fn lines(kind: &EventKind, paint: Paint) -> Vec<String> {
    match kind {
        EventKind::Received { port, bytes } => {
            let head = format!("port {port}: {} bytes", bytes.len());
            with_bytes(paint.bold(&head), bytes)
        }
        EventKind::Dequeued { port, bytes } => {
            let head = format!("queue of port {port}: {} bytes", bytes.len());
            with_bytes(paint.bold(&head), bytes)
        }
        EventKind::Block { name } => vec![paint.bold(name)],
        EventKind::State { state, .. } => vec![format!("  state {state}")],
        EventKind::Extract {
            header,
            offset_bits,
            fields,
        } => {
            let bits: u32 = fields.iter().map(|f| f.width).sum();
            let head = format!("    extract {header}, {bits} bits from bit {offset_bits}");
            with_fields(head, fields)
        }
        EventKind::Error { error } => vec![format!("    {}", paint.bad(&format!("error {error}")))],
        EventKind::Branch { text, taken } => vec![format!("  {text} → {taken}")],
        EventKind::Table {
            table,
            keys,
            entry,
            action,
        } => {
            let mut all = with_fields(format!("  table {table}"), keys);
            all.push(match entry {
                Some((key, priority)) => {
                    let key: Vec<_> = key
                        .iter()
                        .map(|f| format!("{} = {}", f.field, matched(&f.value)))
                        .collect();
                    let priority = match priority {
                        0 => String::new(),
                        n => format!(", priority {n}"),
                    };
                    let key = if key.is_empty() {
                        "anything".to_owned()
                    } else {
                        key.join(", ")
                    };
                    format!("      {} {key}{priority}", paint.good("hit"))
                }
                None => format!("      {}", paint.bad("miss")),
            });
            all.push(match action {
                Some(action) => format!("      → {}", called(action)),
                None => "      → nothing".to_owned(),
            });
            all
        }
        EventKind::Action(action) => vec![format!("  {}", called(action))],
        EventKind::Extern {
            object,
            method,
            args,
            result,
        } => {
            let name = match object.as_str() {
                "" => method.clone(),
                object => format!("{object}.{method}"),
            };
            let args: Vec<_> = args.iter().map(argument).collect();
            let result: Vec<_> = result.iter().map(|f| f.value.as_str()).collect();
            let result = match result.as_slice() {
                [] => String::new(),
                values => format!(" = {}", values.join(", ")),
            };
            vec![format!("  {name}({}){result}", args.join(", "))]
        }
        EventKind::Emit { header, bytes } => {
            vec![format!("  emit {header}, {} bytes", bytes.len())]
        }
        EventKind::Log { message } => vec![format!("  log: {message}")],
        EventKind::AssertionFailed { text, .. } => {
            vec![paint.bad(&format!("  failed: {text}"))]
        }
        EventKind::Undefined { what } => {
            vec![paint.bad(&format!("  undefined: {what}"))]
        }
        EventKind::Transmit { port, bytes } => {
            let head = format!("→ port {port}: {} bytes", bytes.len());
            with_bytes(paint.good(&head), bytes)
        }
        EventKind::Drop { reason } => vec![paint.bad(&format!("→ dropped: {reason}"))],
        EventKind::Enqueued { packets } => vec![format!("→ queued: {packets}")],
        EventKind::Recirculate { packets } => vec![format!("→ recirculated: {packets}")],
        EventKind::Digest { messages } => vec![format!("→ digest messages: {messages}")],
    }
}

fn with_bytes(head: String, bytes: &[u8]) -> Vec<String> {
    let rows = bytes.chunks(16).map(|row| format!("    {}", hex(row)));
    std::iter::once(head).chain(rows).collect()
}

fn with_fields(head: String, fields: &[EventField]) -> Vec<String> {
    let width = fields.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let rows = fields
        .iter()
        .map(|f| format!("        {:<width$}  {}", f.name, f.value));
    std::iter::once(head).chain(rows).collect()
}

/// Text of an extern's argument; for a field of a struct, with the field's name.
fn argument(field: &EventField) -> String {
    match field.name.split_once('.') {
        Some((_, inner)) if !inner.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("{inner} = {}", field.value)
        }
        _ => field.value.clone(),
    }
}

fn called(action: &EventAction) -> String {
    let params: Vec<_> = action
        .params
        .iter()
        .map(|f| format!("{} = {}", f.name, f.value))
        .collect();
    format!("{}({})", action.name, params.join(", "))
}

fn matched(value: &p4lang::runtime::Match) -> String {
    use p4lang::runtime::Match;
    match value {
        Match::Exact(v) | Match::Optional(v) => format!("{v:#x}"),
        Match::Lpm { value, prefix_len } => format!("{value:#x}/{prefix_len}"),
        Match::Ternary { value, mask } => format!("{value:#x} &&& {mask:#x}"),
        Match::Range { low, high } => format!("{low:#x} .. {high:#x}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<_> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    digits.join(" ")
}

fn fields(fields: &[EventField]) -> Value {
    let all = fields
        .iter()
        .map(|f| json!({ "name": f.name, "value": f.value, "bits": f.width }));
    Value::Array(all.collect())
}

fn ran(action: &EventAction) -> Value {
    json!({ "name": action.name, "params": fields(&action.params) })
}

fn json(event: &Event) -> Value {
    let mut object = match &event.kind {
        EventKind::Received { port, bytes } => {
            json!({ "event": "received", "port": port, "bytes": hex(bytes) })
        }
        EventKind::Block { name } => json!({ "event": "block", "name": name }),
        EventKind::State { parser, state } => {
            json!({ "event": "state", "parser": parser, "state": state })
        }
        EventKind::Extract {
            header,
            offset_bits,
            fields: f,
        } => {
            json!({ "event": "extract", "header": header, "offset_bits": offset_bits, "fields": fields(f) })
        }
        EventKind::Error { error } => json!({ "event": "error", "error": error }),
        EventKind::Branch { text, taken } => {
            json!({ "event": "branch", "text": text, "taken": taken })
        }
        EventKind::Table {
            table,
            keys,
            entry,
            action,
        } => {
            let entry = entry.as_ref().map(|(key, priority)| {
                let key = key
                    .iter()
                    .map(|f| json!({ "name": f.field, "match": matched(&f.value) }));
                json!({ "key": Value::Array(key.collect()), "priority": priority })
            });
            json!({
                "event": "table", "table": table, "keys": fields(keys), "hit": entry.is_some(),
                "entry": entry, "action": action.as_ref().map(ran),
            })
        }
        EventKind::Action(action) => json!({ "event": "action", "action": ran(action) }),
        EventKind::Extern {
            object,
            method,
            args,
            result,
        } => json!({
            "event": "extern", "object": object, "method": method, "args": fields(args), "result": fields(result),
        }),
        EventKind::Emit { header, bytes } => {
            json!({ "event": "emit", "header": header, "bytes": hex(bytes) })
        }
        EventKind::Log { message } => json!({ "event": "log", "message": message }),
        EventKind::AssertionFailed { function, text } => {
            json!({ "event": "assertion_failed", "function": function, "text": text })
        }
        EventKind::Undefined { what } => json!({ "event": "undefined", "what": what }),
        EventKind::Transmit { port, bytes } => {
            json!({ "event": "transmit", "port": port, "bytes": hex(bytes) })
        }
        EventKind::Drop { reason } => json!({ "event": "drop", "reason": reason }),
        EventKind::Dequeued { port, bytes } => {
            json!({ "event": "dequeued", "port": port, "bytes": hex(bytes) })
        }
        EventKind::Enqueued { packets } => json!({ "event": "enqueued", "packets": packets }),
        EventKind::Recirculate { packets } => {
            json!({ "event": "recirculate", "packets": packets })
        }
        EventKind::Digest { messages } => json!({ "event": "digest", "messages": messages }),
    };
    if let (Some(at), Some(map)) = (&event.at, object.as_object_mut()) {
        map.insert("file".into(), at.file.clone().into());
        map.insert("line".into(), at.line.into());
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_externs_arguments_and_result() {
        let field = |name: &str, value: &str| EventField {
            name: name.into(),
            value: value.into(),
            width: 8,
        };
        let event = Event {
            at: None,
            kind: EventKind::Extern {
                object: "I.sum".into(),
                method: "get".into(),
                args: vec![
                    field("1.src", "0x2"),
                    field("2.0", "0x3"),
                    field("3", "0x4"),
                ],
                result: vec![field("", "0x9")],
            },
        };
        let told = |form| render(std::slice::from_ref(&event), 0, form, false);
        assert_eq!(
            told(Form::Text),
            "    I.sum.get(src = 0x2, 0x3, 0x4) = 0x9\n"
        );
        let json: Value = serde_json::from_str(&told(Form::Json)).unwrap();
        assert_eq!(
            json["args"][0],
            json!({ "name": "1.src", "value": "0x2", "bits": 8 })
        );
        assert_eq!(json["result"][0]["value"], "0x9");
    }

    /// Every packet leaves by port 1.
    const TO_PORT_1: &str = "
        #include <core.p4>
        #include <tna.p4>
        struct none_t {}
        parser IP(packet_in p, out none_t h, out none_t m, out ingress_intrinsic_metadata_t ig) {
            state start { p.extract(ig); p.advance(PORT_METADATA_SIZE); transition accept; }
        }
        control I(inout none_t h, inout none_t m, in ingress_intrinsic_metadata_t ig,
                  in ingress_intrinsic_metadata_from_parser_t ip,
                  inout ingress_intrinsic_metadata_for_deparser_t id,
                  inout ingress_intrinsic_metadata_for_tm_t tm) {
            apply { tm.ucast_egress_port = 1; }
        }
        control ID(packet_out p, inout none_t h, in none_t m,
                   in ingress_intrinsic_metadata_for_deparser_t id) { apply {} }
        parser EP(packet_in p, out none_t h, out none_t m, out egress_intrinsic_metadata_t eg) {
            state start { p.extract(eg); transition accept; }
        }
        control E(inout none_t h, inout none_t m, in egress_intrinsic_metadata_t eg,
                  in egress_intrinsic_metadata_from_parser_t ep,
                  inout egress_intrinsic_metadata_for_deparser_t ed,
                  inout egress_intrinsic_metadata_for_output_port_t op) { apply {} }
        control ED(packet_out p, inout none_t h, in none_t m,
                   in egress_intrinsic_metadata_for_deparser_t ed) { apply {} }
        Pipeline(IP(), I(), ID(), EP(), E(), ED()) pipe;
        Switch(pipe) main;";

    /// The trace since the last call, as text and as JSON.
    fn take_trace(switch: &mut pipeline::Switch) -> (String, Vec<Value>) {
        let (mut events, lost) = switch.take_events();
        events.retain(|event| event.at.is_none());
        let json = render(&events, lost, Form::Json, false);
        let json = json.lines().map(|line| serde_json::from_str(line).unwrap());
        (render(&events, lost, Form::Text, false), json.collect())
    }

    #[test]
    fn packets_that_waited_and_packets_that_the_switch_made_have_a_heading_and_a_verdict() {
        let files = p4lang::Files::new().with("test.p4", TO_PORT_1);
        let program = p4lang::compile(&files, "test.p4", &p4lang::Options::default());
        let config = pipeline::Config {
            egress_queues: pipeline::EgressQueues {
                rate_bps: Some(8_000_000),
                ..pipeline::EgressQueues::default()
            },
            ..pipeline::Config::default()
        };
        let program = program.expect("a right program").program;
        let mut switch = pipeline::Switch::new(program.into(), config).unwrap();
        switch.set_tracing(true);
        let sent = json!({ "event": "transmit", "port": 1, "bytes": "07 08" });

        switch.handle_packet(0, 0, &[7, 8]);
        switch.handle_packet(0, 0, &[7, 8]);
        let (text, json) = take_trace(&mut switch);
        let packet = "  port 0: 2 bytes\n      07 08\n";
        let leaves = "  → port 1: 2 bytes\n      07 08\n";
        assert_eq!(text, format!("{packet}{leaves}{packet}  → queued: 1\n"));
        assert_eq!(json[1], sent);
        assert_eq!(json[3], json!({ "event": "enqueued", "packets": 1 }));
        switch.handle_timeout(2_000);
        let (text, json) = take_trace(&mut switch);
        let packet = "  queue of port 1: 2 bytes\n      07 08\n";
        assert_eq!(text, format!("{packet}{leaves}"));
        let dequeued = json!({ "event": "dequeued", "port": 1, "bytes": "07 08" });
        assert_eq!(json, [dequeued, sent]);

        let app = pipeline::GeneratorApp {
            trigger: pipeline::Trigger::OneShot { after_ns: 0 },
            offset: 0,
            length: 2,
            batches: 1,
            packets: 1,
            batch_gap_ns: 0,
            packet_gap_ns: 0,
            port: 68,
        };
        let set = switch.set_generator(9_000, 0, (0, &[7, 8]), 1, Some(app));
        set.unwrap();
        switch.handle_timeout(9_000);
        let (text, json) = take_trace(&mut switch);
        let bytes = "01 00 00 00 00 00 07 08";
        let packet = format!("  port 68: 8 bytes\n      {bytes}\n");
        let leaves = format!("  → port 1: 8 bytes\n      {bytes}\n");
        assert_eq!(text, format!("{packet}{leaves}"));
        assert_eq!(
            json,
            [
                json!({ "event": "received", "port": 68, "bytes": bytes }),
                json!({ "event": "transmit", "port": 1, "bytes": bytes }),
            ]
        );
    }

    #[test]
    fn names_do_not_reach_the_terminal_as_they_are() {
        let event = Event {
            at: None,
            kind: EventKind::Block {
                name: "I\x1b]0;x\x07\x1b[2J".into(),
            },
        };
        let told = |colour| render(std::slice::from_ref(&event), 0, Form::Text, colour);
        assert_eq!(told(false), "  I\u{241b}]0;x\u{2407}\u{241b}[2J\n");
        assert_eq!(
            told(true),
            "  \x1b[1mI\u{241b}]0;x\u{2407}\u{241b}[2J\x1b[0m\n"
        );
    }
}
