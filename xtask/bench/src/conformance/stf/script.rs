//! Parser of STF files, which have one command a line.

use p4lang::runtime::Value;
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Line number in the STF file, from 1.
    pub line: usize,
    pub what: String,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// A P4 action with its arguments (name, value), values as written in the STF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub action: String,
    pub args: Vec<(String, String)>,
}

/// Comparison that a counter's value must satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub bytes: bool,
    pub operator: String,
    pub value: u128,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StfCommand {
    /// A packet arrives at a port of the switch.
    Packet {
        port: u32,
        bytes: Vec<u8>,
    },
    /// The switch must send a packet. Pattern: hex digits, `*` for any digit, `$` for the end; `None` accepts any packet.
    Expect {
        port: u32,
        pattern: Option<String>,
    },
    Add {
        table: String,
        priority: Option<i32>,
        keys: Vec<(String, String)>,
        call: Call,
    },
    SetDefault {
        table: String,
        call: Call,
    },
    CheckCounter {
        counter: String,
        index: u128,
        condition: Option<Condition>,
    },
    /// Compares a register cell, or one half of a cell that is a pair, with a value.
    CheckRegister {
        register: String,
        index: u128,
        /// Whether the second field of the pair is compared; otherwise the first.
        high: bool,
        value: u128,
    },
    /// The traffic manager of a Tofino 2 reports a queue of pipe 0, and the queue's depth in cells.
    Ghost {
        queue: u64,
        cells: u64,
    },
    Wait,
    NoPacket,
    /// A command of BMv2's runtime shell, as its words.
    Shell(Vec<String>),
}

/// Parses an STF file into commands; comments are ignored.
pub fn parse(text: &str) -> Result<Vec<StfCommand>, BadLine> {
    let mut commands = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let command = command(line).map_err(|what| BadLine { line: i + 1, what })?;
        commands.push(command);
    }
    Ok(commands)
}

fn command(line: &str) -> Result<StfCommand, String> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    match word.to_ascii_lowercase().as_str() {
        "packet" => {
            let (port, data) = port(rest)?;
            Ok(StfCommand::Packet {
                port,
                bytes: bytes(&data)?,
            })
        }
        "expect" => {
            let (port, pattern) = port(rest)?;
            Ok(StfCommand::Expect {
                port,
                pattern: (!pattern.is_empty()).then_some(pattern),
            })
        }
        "add" => add(rest),
        "setdefault" => {
            let (table, action) = rest
                .split_once(char::is_whitespace)
                .ok_or("an action is missing")?;
            Ok(StfCommand::SetDefault {
                table: table.to_owned(),
                call: call(action.trim(), action)?,
            })
        }
        "check_counter" => check_counter(rest),
        "check_register" => check_register(rest),
        "ghost" => ghost(rest),
        "wait" => Ok(StfCommand::Wait),
        "no_packet" => Ok(StfCommand::NoPacket),
        "mirroring_add"
        | "mirroring_add_mc"
        | "mirroring_delete"
        | "mirroring_get"
        | "mc_mgrp_create"
        | "mc_node_create"
        | "mc_node_update"
        | "mc_node_associate"
        | "counter_read"
        | "counter_write"
        | "register_read"
        | "register_write"
        | "register_reset"
        | "meter_get_rates"
        | "meter_set_rates"
        | "meter_array_set_rates" => Ok(StfCommand::Shell(
            line.split_whitespace().map(str::to_owned).collect(),
        )),
        other => Err(format!("no such command: {other}")),
    }
}

/// Parses the arguments of a `ghost` command: `run QUEUE:CELLS`
fn ghost(rest: &str) -> Result<StfCommand, String> {
    let report = rest.strip_prefix("run").map(str::trim);
    let report = report.and_then(|r| r.split_once(':'));
    let (queue, cells) = report.ok_or("`run QUEUE:CELLS` is missing")?;
    let small = |text: &str| u64::try_from(number(text.trim())?).map_err(|e| e.to_string());
    Ok(StfCommand::Ghost {
        queue: small(queue)?,
        cells: small(cells)?,
    })
}

/// Parses a port number; returns it, and the rest of the line without white space.
fn port(rest: &str) -> Result<(u32, String), String> {
    let (port, data) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let port = port.parse().map_err(|_| format!("not a port: {port}"))?;
    Ok((port, data.split_whitespace().collect()))
}

fn bytes(hex: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> = hex.chars().map(|c| Some(c.to_digit(16)? as u8)).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks(2).map(|d| d[0] << 4 | d[1]).collect())
        }
        _ => Err(format!("not a packet: {hex}")),
    }
}

fn add(rest: &str) -> Result<StfCommand, String> {
    // An action without arguments needs no brackets.
    let open = rest.find('(').unwrap_or(rest.len());
    let head = join_colons(&rest[..open]);
    let mut words: Vec<&str> = head.split_whitespace().collect();
    let action = words.pop().filter(|word| !word.contains(':'));
    let action = action.ok_or("an action is missing")?;
    let mut words = words.into_iter().peekable();
    let table = words.next().ok_or("a table is missing")?.to_owned();
    let priority = match words.peek() {
        Some(word) if word.bytes().all(|b| b.is_ascii_digit()) => {
            let priority = word.parse().map_err(|_| format!("bad priority {word}"))?;
            words.next();
            Some(priority)
        }
        _ => None,
    };
    let key = |word: &str| match word.split_once(':') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("not a key field: {word}")),
    };
    Ok(StfCommand::Add {
        table,
        priority,
        keys: words.map(key).collect::<Result<_, _>>()?,
        call: match &rest[open..] {
            "" => call(action, "()")?,
            args => call(action, args)?,
        },
    })
}

/// Removes white space around colons in a line.
fn join_colons(text: &str) -> String {
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    parts.join(":")
}

/// Parses an action call: `name(a:1, b:2) = id`; the id is not used.
fn call(name: &str, text: &str) -> Result<Call, String> {
    let open = text.find('(').ok_or("arguments are missing")?;
    let close = text
        .find(')')
        .filter(|c| *c > open)
        .ok_or("a bracket is missing")?;
    let arg = |arg: &str| match arg.split_once(':') {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err(format!("not an argument: {arg}")),
    };
    // Commas between arguments are optional.
    let inside = join_colons(&text[open + 1..close]);
    let args = inside
        .split(|c: char| c == ',' || c.is_whitespace())
        .filter(|a| !a.is_empty());
    Ok(Call {
        action: name.split('(').next().unwrap_or(name).trim().to_owned(),
        args: args.map(arg).collect::<Result<_, _>>()?,
    })
}

/// Parses a check of a counter: `name(index)`, followed by `packets == 2` for a comparison.
fn check_counter(rest: &str) -> Result<StfCommand, String> {
    let (counter, rest) = rest.split_once('(').ok_or("an index is missing")?;
    let (index, rest) = rest.split_once(')').ok_or("a bracket is missing")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let condition = match words[..] {
        [] => None,
        [what @ ("packets" | "bytes"), operator, value] => Some(Condition {
            bytes: what == "bytes",
            operator: operator.to_owned(),
            value: number(value)?,
        }),
        _ => return Err(format!("not a condition: {}", rest.trim())),
    };
    Ok(StfCommand::CheckCounter {
        counter: counter.trim().to_owned(),
        index: number(index.trim())?,
        condition,
    })
}

/// Parses a check of a register: `name(index) lo = value`, or `hi`.
fn check_register(rest: &str) -> Result<StfCommand, String> {
    let (register, rest) = rest.split_once('(').ok_or("an index is missing")?;
    let (index, rest) = rest.split_once(')').ok_or("a bracket is missing")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    match words[..] {
        [half @ ("lo" | "hi"), "=" | "==", value] => Ok(StfCommand::CheckRegister {
            register: register.trim().to_owned(),
            index: number(index.trim())?,
            high: half == "hi",
            value: cell(value)?,
        }),
        _ => Err(format!("not a condition: {}", rest.trim())),
    }
}

/// Parses the value of a register cell in C's notation, with octal numbers after a 0.
fn cell(text: &str) -> Result<u128, String> {
    match text.strip_prefix('0') {
        Some(octal) if !octal.is_empty() && octal.bytes().all(|b| b.is_ascii_digit()) => {
            u128::from_str_radix(octal, 8).map_err(|_| format!("not a number: {text}"))
        }
        _ => number(text),
    }
}

/// Parses a number: decimal, or with the prefix `0x`, `0b` or `0o`.
pub fn number(text: &str) -> Result<u128, String> {
    let value = wide_number(text)?;
    value.to_u128().ok_or_else(|| format!("too large: {text}"))
}

/// Parses a number of any width in bits.
pub fn wide_number(text: &str) -> Result<Value, String> {
    let (digits, radix) = digits(text);
    Value::from_str_radix(digits, radix).ok_or_else(|| format!("not a number: {text}"))
}

/// The digits of a number without its prefix, and their base.
pub fn digits(text: &str) -> (&str, u32) {
    match text.get(..2).map(str::to_ascii_lowercase).as_deref() {
        Some("0x") => (&text[2..], 16),
        Some("0b") => (&text[2..], 2),
        Some("0o") => (&text[2..], 8),
        _ => (text, 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> StfCommand {
        parse(line).unwrap().remove(0)
    }

    #[test]
    fn packets_have_bytes_and_expectations_wildcards() {
        assert_eq!(
            parse_line("packet 3 01 2a ff  # in"),
            StfCommand::Packet {
                port: 3,
                bytes: vec![1, 0x2a, 0xff]
            }
        );
        assert_eq!(
            parse_line("expect 1 0a** ff $"),
            StfCommand::Expect {
                port: 1,
                pattern: Some("0a**ff$".into())
            }
        );
        assert_eq!(
            parse_line("EXPECT 1"),
            StfCommand::Expect {
                port: 1,
                pattern: None
            }
        );
        assert_eq!(
            parse("\n\npacket 1 0"),
            Err(BadLine {
                line: 3,
                what: "not a packet: 0".into()
            })
        );
    }

    #[test]
    fn entries_have_keys_and_maybe_a_priority() {
        let call = |action: &str, args: &[(&str, &str)]| Call {
            action: action.into(),
            args: args
                .iter()
                .map(|(n, v)| ((*n).into(), (*v).into()))
                .collect(),
        };
        assert_eq!(
            parse_line("add t 7 h.f[0]:0x** m : 1/2 i.act(a:1, b:0x2) = X"),
            StfCommand::Add {
                table: "t".into(),
                priority: Some(7),
                keys: vec![("h.f[0]".into(), "0x**".into()), ("m".into(), "1/2".into())],
                call: call("i.act", &[("a", "1"), ("b", "0x2")]),
            }
        );
        assert_eq!(
            parse_line("setdefault t drop()"),
            StfCommand::SetDefault {
                table: "t".into(),
                call: call("drop", &[])
            }
        );
        assert!(parse("add t a:1").is_err());
    }

    #[test]
    fn brackets_and_commas_may_be_left_out() {
        assert_eq!(parse_line("add t k:1 act"), parse_line("add t k:1 act()"));
        assert_eq!(
            parse_line("add t k:1 a(x:1 y : 2)"),
            parse_line("add t k:1 a(x:1, y:2)")
        );
        assert!(parse("add t").is_err());
    }

    #[test]
    fn registers_are_compared() {
        assert_eq!(
            parse_line("check_register a.r(3) hi = 0x10"),
            StfCommand::CheckRegister {
                register: "a.r".into(),
                index: 3,
                high: true,
                value: 16
            }
        );
        assert!(parse("check_register r(3) mid = 1").is_err());
        for (text, value) in [("010", 8), ("10", 10), ("0", 0), ("0b10", 2)] {
            let StfCommand::CheckRegister { value: read, .. } =
                parse_line(&format!("check_register r(1) lo = {text}"))
            else {
                panic!("{text}")
            };
            assert_eq!(read, value, "{text}");
        }
        assert!(parse("check_register r(3) lo = 08").is_err());
    }

    #[test]
    fn queues_are_reported() {
        let report = StfCommand::Ghost {
            queue: 0x333,
            cells: 11_000,
        };
        assert_eq!(parse_line("ghost run 0x333:11000"), report);
        assert!(parse("ghost run 5").is_err());
        assert!(parse("ghost stop").is_err());
    }

    #[test]
    fn counters_are_compared() {
        let condition = Some(Condition {
            bytes: false,
            operator: "==".into(),
            value: 2,
        });
        assert_eq!(
            parse_line("check_counter c(0x10) packets == 2"),
            StfCommand::CheckCounter {
                counter: "c".into(),
                index: 16,
                condition
            }
        );
        assert!(parse("frobnicate 1").is_err());
    }
}
