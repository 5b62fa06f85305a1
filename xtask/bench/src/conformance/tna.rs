//! `tna_programs`: other people's TNA programs, compiled unchanged with our own include files, on the embedded switch.
//!
//! A program passes if it sums real packets correctly; the test's own control plane writes its entries and groups. The
//! test computes the expected sums and compares whole frames, and with `--executor both` the executors.

mod frames;
mod nga;
mod switchml;

use super::corpus;
use super::suite::{Case, Suite, SuiteGoal};
use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry};
use pipeline::{Config, Executor, Switch};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const NAME: &str = "tna_programs";

/// Result of the suite, and reasons for programs that were skipped for lack of a checkout.
pub struct Programs {
    pub suite: Option<Suite>,
    pub skipped: Vec<String>,
}

type ProgramTest = fn(&Path, Executor) -> Result<(), String>;

/// Runs the tests of each program whose checkout is given.
pub fn run([switchml, nga]: [Option<&Path>; 2], filter: &str, executor: Executor) -> Programs {
    let all: [(&str, Option<&Path>, ProgramTest); 2] = [
        ("switchml", switchml, switchml::test),
        ("nga", nga, nga::test),
    ];
    let (mut given, mut skipped) = (Vec::new(), Vec::new());
    for (name, dir, test) in all {
        match dir {
            _ if !name.contains(filter) => {}
            Some(dir) => given.push((name, dir.to_owned(), test)),
            None => skipped.push(format!("{name} (--{name} DIR names no checkout)")),
        }
    }
    let name = |(name, _, _): &(&str, PathBuf, ProgramTest)| (*name).to_owned();
    let cases: Vec<Case> = corpus::run_cases(&given, name, |(_, dir, test)| test(dir, executor));
    let suite = (!cases.is_empty()).then(|| Suite {
        name: NAME,
        goal: SuiteGoal::Cases(cases.len()),
        cases,
        apart: Vec::new(),
    });
    Programs { suite, skipped }
}

/// Compiles a program of the checkout `dir`, the first of `candidates` that exists, and loads it into a switch.
fn load(dir: &Path, candidates: &[&str], executor: Executor) -> Result<Switch, String> {
    let path = candidates.iter().map(|c| dir.join(c)).find(|p| p.is_file());
    let Some(path) = path else {
        return Err(format!(
            "{} has no {}",
            dir.display(),
            candidates.join(", ")
        ));
    };
    let compiled = corpus::compile(&path).map_err(|d| d.to_string())?;
    let config = Config {
        executor,
        ..Config::default()
    };
    Switch::new(Arc::new(compiled.program), config).map_err(|e| e.to_string())
}

/// An embedded switch, and the virtual clock by which it runs.
struct ClockedSwitch {
    switch: Switch,
    now_ns: u64,
}

/// Maximum number of passes of a packet over the recirculation link.
const ROUNDS: u32 = 1000;

impl ClockedSwitch {
    fn new(switch: Switch) -> ClockedSwitch {
        ClockedSwitch { switch, now_ns: 0 }
    }

    /// Sends a frame to a port of the switch; returns all frames that leave, with their output ports.
    fn send(&mut self, port: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.now_ns += 1_000;
        self.switch.handle_packet(self.now_ns, port, frame);
        let mut sent = Vec::new();
        for _ in 0..ROUNDS {
            while let Some(packet) = self.switch.poll_transmit() {
                sent.push((packet.port, packet.bytes));
            }
            let Some(due) = self.switch.poll_timeout() else {
                break;
            };
            self.now_ns = self.now_ns.max(due);
            self.switch.handle_timeout(self.now_ns);
        }
        sent
    }

    /// Sends a frame to a port of the switch, and checks that exactly the expected frames leave.
    fn expect(
        &mut self,
        what: &str,
        port: u32,
        frame: &[u8],
        expected: &[(u32, Vec<u8>)],
    ) -> Result<(), String> {
        let mut sent = self.send(port, frame);
        if let Some(difference) = self.switch.take_differences().first() {
            return Err(format!("{what}: the executors differ: {difference}"));
        }
        sent.sort();
        let mut expected = expected.to_vec();
        expected.sort();
        if sent == expected {
            return Ok(());
        }
        let ports = |of: &[(u32, Vec<u8>)]| of.iter().map(|(p, _)| *p).collect::<Vec<_>>();
        if ports(&sent) != ports(&expected) {
            let (is, wanted) = (ports(&sent), ports(&expected));
            return Err(format!(
                "{what}: frames at ports {is:?}, expected at {wanted:?}"
            ));
        }
        let differing = sent.iter().zip(&expected).find(|(a, b)| a != b);
        let (a, b) = differing.map_or((&[][..], &[][..]), |(a, b)| (&a.1[..], &b.1[..]));
        let at = a.iter().zip(b).position(|(a, b)| a != b);
        Err(format!(
            "{what}: a frame of {} bytes, expected {}; first difference at {at:?}: {:02x?}, expected {:02x?}",
            a.len(),
            b.len(),
            &a[at.unwrap_or(0)..a.len().min(at.unwrap_or(0) + 8)],
            &b[at.unwrap_or(0)..b.len().min(at.unwrap_or(0) + 8)],
        ))
    }

    /// Writes an entry to a table of the switch.
    fn entry(
        &mut self,
        table: &str,
        key: &[(&str, Match)],
        priority: i32,
        action: &str,
        params: &[(&str, u128)],
    ) -> Result<(), String> {
        let key = key.iter().map(|(field, value)| FieldMatch {
            field: (*field).to_owned(),
            value: value.clone(),
        });
        let entry = TableEntry {
            table: table.to_owned(),
            key: key.collect(),
            priority,
            action: call(action, params),
        };
        let written = self.switch.insert_entry(&entry);
        written.map_err(|e| format!("entry of {table}: {e}"))
    }
}

fn call(action: &str, params: &[(&str, u128)]) -> ActionCall {
    ActionCall {
        name: action.to_owned(),
        params: params
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).into()))
            .collect(),
    }
}

/// Pseudo-random value of a worker's tensor, at index `i` of a chunk, that is the same in every run.
fn value(worker: u32, chunk: u32, i: usize) -> u32 {
    let seed = (worker + 1).wrapping_mul(0x9e37_79b9) ^ (chunk + 1).wrapping_mul(0x85eb_ca6b);
    let mixed = seed.wrapping_add(i as u32).wrapping_mul(0xc2b2_ae35);
    mixed ^ mixed >> 15
}
