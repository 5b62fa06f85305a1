//! The switch under test: executes the commands of an STF file, then compares sent packets with expected packets.
//!
//! As on BMv2, only ports that the file names have an interface, so an unexpected packet is noticed only
//! there. Packets of one port are compared in order. A suffix may name a table, an action or a key field.

use super::entries;
use super::replication::Replication;
use super::script::{Condition, StfCommand, number, wide_number};
use p4lang::ir::ExternKind;
use p4lang::runtime::Value;
use pipeline::{MeterConfig, Switch, TableError};
use std::collections::BTreeMap;

/// Time between two packets, in nanoseconds; the next constant is the time that the command `wait` takes.
const STEP_NS: u64 = 1_000_000;
const WAIT_NS: u64 = 1_000_000_000;
/// Maximum number of passes of a packet over the recirculation link.
const ROUNDS: u32 = 10_000;

pub struct StfSwitch {
    switch: Switch,
    /// Whether to follow the test harness of Tofino's compiler: a table entry that is written again
    /// replaces the first, every port is watched, and the end of a counter's name selects the counter.
    tofino: bool,
    replication: Replication,
    now_ns: u64,
    expected: BTreeMap<u32, Vec<Option<String>>>,
    sent: BTreeMap<u32, Vec<Vec<u8>>>,
}

impl StfSwitch {
    pub fn new(switch: Switch) -> StfSwitch {
        StfSwitch {
            switch,
            tofino: false,
            replication: Replication::default(),
            now_ns: 0,
            expected: BTreeMap::new(),
            sent: BTreeMap::new(),
        }
    }

    /// Creates a switch that follows the test harness of Tofino's compiler.
    pub fn tofino(switch: Switch) -> StfSwitch {
        StfSwitch {
            tofino: true,
            ..StfSwitch::new(switch)
        }
    }

    pub fn execute(&mut self, command: &StfCommand) -> Result<(), String> {
        match command {
            StfCommand::Packet { port, bytes } => {
                self.expected.entry(*port).or_default();
                self.now_ns += STEP_NS;
                self.switch.handle_packet(self.now_ns, *port, bytes);
                self.collect();
                Ok(())
            }
            StfCommand::Expect { port, pattern } => {
                self.expected
                    .entry(*port)
                    .or_default()
                    .push(pattern.clone());
                Ok(())
            }
            StfCommand::Add {
                table,
                priority,
                keys,
                call,
            } => {
                let spec = entries::table(&self.switch, table)?;
                let entry = entries::entry(spec, *priority, keys, call)?;
                let written = match self.switch.insert_entry(&entry) {
                    Err(TableError::DuplicateEntry) if self.tofino => {
                        self.switch.modify_entry(&entry)
                    }
                    written => written,
                };
                written.map_err(|e| format!("add {table}: {e}"))
            }
            StfCommand::SetDefault { table, call } => {
                let spec = entries::table(&self.switch, table)?;
                let (name, call) = (spec.name.clone(), entries::call(spec, call)?);
                self.switch
                    .set_default_action(&name, Some(&call))
                    .map_err(|e| format!("setdefault {table}: {e}"))
            }
            StfCommand::CheckCounter {
                counter,
                index,
                condition,
            } => self.check_counter(counter, *index, condition.as_ref()),
            StfCommand::CheckRegister {
                register,
                index,
                high,
                value,
            } => self.check_register(register, *index, *high, *value),
            StfCommand::Ghost { queue, cells } => {
                self.switch.report_queue(self.now_ns, 0, *queue, *cells);
                self.collect();
                Ok(())
            }
            StfCommand::Wait => {
                self.now_ns += WAIT_NS;
                self.collect();
                Ok(())
            }
            StfCommand::NoPacket => {
                for port in self.sent.keys() {
                    self.expected.entry(*port).or_default();
                }
                Ok(())
            }
            StfCommand::Shell(words) => {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                self.shell(&words)
                    .map_err(|e| format!("{}: {e}", words.join(" ")))
            }
        }
    }

    /// Collects packets that the switch sends until no packets are in flight.
    fn collect(&mut self) {
        for _ in 0..ROUNDS {
            while let Some(packet) = self.switch.poll_transmit() {
                self.sent.entry(packet.port).or_default().push(packet.bytes);
            }
            let Some(due) = self.switch.poll_timeout() else {
                return;
            };
            self.now_ns = self.now_ns.max(due);
            self.switch.handle_timeout(self.now_ns);
        }
    }

    fn check_counter(
        &mut self,
        name: &str,
        index: u128,
        condition: Option<&Condition>,
    ) -> Result<(), String> {
        let index = u64::try_from(index).map_err(|e| e.to_string())?;
        let program = self.switch.program();
        let counters = program
            .externs
            .iter()
            .filter(|e| e.kind == ExternKind::Counter);
        let full = match entries::find_named(counters, name, |e| &e.name) {
            Ok(counter) if self.tofino => counter.name.as_str(),
            _ => name,
        };
        let value = self
            .switch
            .counter_read(full, index)
            .map_err(|e| format!("counter {name}: {e}"))?;
        let Some(condition) = condition else {
            return Ok(());
        };
        let found = u128::from(if condition.bytes {
            value.bytes
        } else {
            value.packets
        });
        let holds = match condition.operator.as_str() {
            "==" | "=" => found == condition.value,
            "!=" => found != condition.value,
            "<" => found < condition.value,
            "<=" => found <= condition.value,
            ">" => found > condition.value,
            ">=" => found >= condition.value,
            other => return Err(format!("`{other}` is not a comparison")),
        };
        if holds {
            Ok(())
        } else {
            let Condition {
                operator, value, ..
            } = condition;
            Err(format!(
                "counter {name}({index}) is {found}, not {operator} {value}"
            ))
        }
    }

    fn check_register(
        &self,
        name: &str,
        index: u128,
        high: bool,
        value: u128,
    ) -> Result<(), String> {
        let index = u64::try_from(index).map_err(|e| e.to_string())?;
        let register = entries::find_named(self.switch.registers().iter(), name, |r| &r.name)
            .map_err(|what| format!("{what} register {name}"))?;
        let cell = self
            .switch
            .register_read(&register.name, index)
            .map_err(|e| format!("register {name}: {e}"))?;
        let half = cell.get(usize::from(high)).ok_or("it is not a pair")?;
        if half.to_u128() == Some(value) {
            return Ok(());
        }
        let which = if high { "hi" } else { "lo" };
        Err(format!(
            "register {name}({index}) {which} is {half}, not {value}"
        ))
    }

    fn shell(&mut self, words: &[&str]) -> Result<(), String> {
        let index = |text: &str| u64::try_from(number(text)?).map_err(|e| e.to_string());
        match *words {
            ["register_read", name, at] => {
                self.switch
                    .register_read(name, index(at)?)
                    .map_err(|e| e.to_string())?;
            }
            ["register_write", name, at, value] => {
                let value = wide_number(value)?;
                self.switch
                    .register_write(name, index(at)?, &[value])
                    .map_err(|e| e.to_string())?;
            }
            ["register_reset", name] => {
                let found = self.switch.registers().iter().find(|r| r.name == name);
                let (size, fields) = found
                    .map(|r| (r.size, r.widths.len()))
                    .ok_or("no such register")?;
                for at in 0..size {
                    self.switch
                        .register_write(name, at, &vec![Value::ZERO; fields])
                        .map_err(|e| e.to_string())?;
                }
            }
            ["counter_read", name, at] => {
                self.switch
                    .counter_read(name, index(at)?)
                    .map_err(|e| e.to_string())?;
            }
            ["counter_write", name, at, packets, bytes] => {
                let value = pipeline::CounterValue {
                    packets: index(packets)?,
                    bytes: index(bytes)?,
                };
                self.switch
                    .counter_write(name, index(at)?, value)
                    .map_err(|e| e.to_string())?;
            }
            ["meter_get_rates", name, at] => {
                self.switch
                    .meter_config(name, index(at)?)
                    .map_err(|e| e.to_string())?;
            }
            ["meter_set_rates", name, at, ref rates @ ..] => {
                self.switch
                    .meter_configure(name, index(at)?, Some(parse_rates(rates)?), self.now_ns)
                    .map_err(|e| e.to_string())?;
            }
            ["meter_array_set_rates", name, ref rates @ ..] => {
                let config = parse_rates(rates)?;
                self.switch
                    .meter_config(name, 0)
                    .map_err(|e| e.to_string())?;
                let mut at = 0;
                while self
                    .switch
                    .meter_configure(name, at, Some(config), self.now_ns)
                    .is_ok()
                {
                    at += 1;
                }
            }
            _ => return self.replication.execute(words, &mut self.switch),
        }
        Ok(())
    }

    /// Checks that each port sent the expected packets in order, and no other packets.
    pub fn finish(mut self) -> Result<(), String> {
        if let Some(difference) = self.switch.take_differences().into_iter().next() {
            return Err(format!("the executors differ: {difference}"));
        }
        if self.tofino {
            for port in self.sent.keys() {
                self.expected.entry(*port).or_default();
            }
        }
        for (port, expected) in &self.expected {
            // An expectation without a pattern accepts any number of any packets.
            if self.tofino && expected.contains(&None) {
                continue;
            }
            let sent = self.sent.get(port).map_or(&[][..], Vec::as_slice);
            for (i, (pattern, packet)) in expected.iter().zip(sent).enumerate() {
                if let Some(pattern) = pattern {
                    compare(pattern, packet)
                        .map_err(|e| format!("port {port}, packet {}: {e}", i + 1))?;
                }
            }
            if expected.len() != sent.len() {
                let ports: Vec<&u32> = self.sent.keys().collect();
                return Err(format!(
                    "port {port}: {} packets, {} expected (something was sent to {ports:?})",
                    sent.len(),
                    expected.len()
                ));
            }
        }
        Ok(())
    }
}

/// Parses a meter's committed and peak rate, each `rate:burst`, in units a microsecond.
fn parse_rates(rates: &[&str]) -> Result<MeterConfig, String> {
    let rate = |text: &str| -> Result<(u64, u64), String> {
        let (rate, burst) = text.split_once(':').ok_or("not a rate")?;
        let rate: f64 = rate.parse().map_err(|_| format!("not a rate: {rate}"))?;
        let burst = burst.parse().map_err(|_| format!("not a burst: {burst}"))?;
        Ok(((rate * 1e6).round() as u64, burst))
    };
    match *rates {
        [committed, peak] => {
            let ((cir, cburst), (pir, pburst)) = (rate(committed)?, rate(peak)?);
            Ok(MeterConfig {
                cir,
                cburst,
                pir,
                pburst,
            })
        }
        _ => Err("expected two rates".into()),
    }
}

/// Compares a packet with a pattern. The packet may be longer than the pattern unless the pattern ends in `$`.
fn compare(pattern: &str, packet: &[u8]) -> Result<(), String> {
    let sent: String = packet.iter().map(|b| format!("{b:02X}")).collect();
    let (pattern, to_the_end) = match pattern.strip_suffix('$') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let pattern = pattern.to_ascii_uppercase();
    let same = pattern
        .chars()
        .zip(sent.chars())
        .all(|(p, s)| p == '*' || p == s);
    if !same || sent.len() < pattern.len() || (to_the_end && sent.len() > pattern.len()) {
        return Err(format!(
            "{sent}, expected {pattern}{}",
            if to_the_end { "$" } else { "" }
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_compare_digits_and_ends() {
        assert!(compare("0a*c", &[0x0a, 0xbc]).is_ok());
        assert!(compare("0a*c", &[0x0a, 0xbd]).is_err());
        assert!(compare("0a", &[0x0a, 0xbd]).is_ok());
        assert!(compare("0a$", &[0x0a, 0xbd]).is_err());
        assert!(compare("0abd00", &[0x0a, 0xbd]).is_err());
    }

    #[test]
    fn rates_are_per_microsecond() {
        let config = parse_rates(&["0.000005:4", "0.00002:5"]).unwrap();
        assert_eq!(
            config,
            MeterConfig {
                cir: 5,
                cburst: 4,
                pir: 20,
                pburst: 5
            }
        );
        assert!(parse_rates(&["1:1"]).is_err());
    }
}
