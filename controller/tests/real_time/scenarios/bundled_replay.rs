//! Replays the captured input of a run through its switches twice, frame by frame and in the longest bundles: whatever a switch
//! does, it does to frames.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use controller::run_folder::{StoredRun, load};
use frames::bundle::{Checksums, Cut, Joins, Run};
use parser_gen::Arch;
use pipeline::{Config, Switch};
use test_support::runs_all;
use testbeds::capture::Direction;

use super::TESTED;
use super::rdma::with_weir_in_path;
use crate::support::leftovers::Watched;
use crate::support::*;

/// Scenarios that also run without `--all`, with the programs that they need.
const FEW: [(&str, &[&str]); 2] = [
    ("rdma-effects.yaml", &[]),
    ("redis-slow-after-loss.yaml", &["redis-server"]),
];
/// Time after the last frame within which held frames leave, in nanoseconds.
const AFTER_NS: u64 = 10_000_000_000;

/// Input of a switch.
enum Input {
    /// A step of the timeline is put in force.
    Epoch(u16),
    /// Frames of a port that one bundle can carry, at the time of the first one.
    Frames(u64, u32, Vec<Vec<u8>>),
}

/// How the frames of a bundle reach a switch, and leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carried {
    OneByOne,
    InBundles,
}

/// Result of a replay: frames that left, by port and in order, and counts of the faults.
#[derive(Debug, Default, PartialEq, Eq)]
struct Output {
    left: BTreeMap<u32, Vec<Vec<u8>>>,
    fired: Vec<u64>,
}

/// Numbers of frames that entered the switches, of packets that carried them in the longest bundles, and of frames that left.
#[derive(Debug, Default, Clone, Copy)]
pub struct Replayed {
    pub frames: usize,
    pub packets: usize,
    pub left: usize,
}

/// Replays a run's folder, which has all frames, and compares.
pub fn assert_equal_in_bundles(folder: &Path) -> Replayed {
    let run = load(folder).unwrap();
    let mut replayed = Replayed::default();
    for switch in &run.planned.plan.switches {
        let inputs = inputs(&run, &switch.name);
        let mut plain = replay(&run, &switch.name, &inputs, Carried::OneByOne);
        let mut bundled = replay(&run, &switch.name, &inputs, Carried::InBundles);
        replayed.left += plain.left.values().map(Vec::len).sum::<usize>();
        for input in &inputs {
            if let Input::Frames(_, _, frames) = input {
                replayed.frames += frames.len();
                replayed.packets += 1;
            }
        }
        for (port, frames) in &mut plain.left {
            let others = bundled.left.entry(*port).or_default();
            assert_eq!(frames.len(), others.len(), "port {port} of {}", switch.name);
            for (frame, other) in frames.iter_mut().zip(others) {
                without_added_checksum(frame, other);
            }
        }
        assert!(plain == bundled, "{}: outputs differ", switch.name);
    }
    replayed
}

/// Input of a switch in the order of time, with the longest bundles that keep this order.
fn inputs(run: &StoredRun, switch: &str) -> Vec<Input> {
    let ports = run.ports();
    let mut writes = run.evidence.writes.iter();
    let mut writes = writes
        .by_ref()
        .filter(|write| write.switch == switch)
        .peekable();
    let mut inputs = Vec::new();
    let mut open = Run::new();
    for frame in run.frames().unwrap() {
        let (port, frame) = frame.unwrap();
        let (of, port) = &ports[port];
        if of != switch || frame.direction != Direction::In {
            continue;
        }
        assert_eq!(frame.wire_len as usize, frame.bytes.len());
        while let Some(write) = writes.next_if(|write| write.confirmed_ns <= frame.at_ns) {
            inputs.push(Input::Epoch(write.epoch));
        }
        let bytes = frame.bytes.into_vec();
        if let Some(Input::Frames(_, last, frames)) = inputs.last_mut()
            && last == port
            && open.add(&bytes, Joins::ALL)
        {
            frames.push(bytes);
            continue;
        }
        open.clear();
        assert!(open.add(&bytes, Joins::ALL));
        inputs.push(Input::Frames(frame.at_ns, *port, vec![bytes]));
    }
    inputs
}

/// A switch that runs what the plan says, without any fault armed.
fn build(run: &StoredRun, name: &str) -> Switch {
    let planned = run.planned.plan.switch(name).unwrap();
    let generated = planned.generate().unwrap();
    let mut files = p4lang::Files::new();
    for (path, text) in parser_gen::program(Arch::Psa, &generated) {
        files.insert(&path, text);
    }
    let main = Arch::Psa.main_path();
    let compiled = p4lang::compile(&files, &main, &p4lang::Options::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    let mut switch = Switch::new(Arc::new(compiled.program), Config::default()).unwrap();
    for entry in &planned.all_entries(Arch::Psa, &generated) {
        switch.insert_entry(entry).unwrap();
    }
    for group in &planned.groups {
        switch.set_multicast_group(group).unwrap();
    }
    for session in &planned.sessions {
        switch.set_clone_session(session).unwrap();
    }
    switch
}

fn replay(run: &StoredRun, name: &str, inputs: &[Input], carried: Carried) -> Output {
    let mut switch = build(run, name);
    let mut output = Output::default();
    let mut now_ns = 0;
    for input in inputs {
        match input {
            Input::Epoch(epoch) => {
                for (table, call) in run.planned.plan.switch(name).unwrap().set_epoch(*epoch) {
                    switch.set_default_action(&table, Some(&call)).unwrap();
                }
            }
            Input::Frames(at_ns, port, frames) => {
                now_ns = now_ns.max(*at_ns);
                let mut left = until(&mut switch, now_ns);
                for frame in carry(frames, carried) {
                    switch.handle_packet(now_ns, *port, &frame);
                    left.extend(transmitted(&mut switch));
                }
                leave(&mut output, left, carried);
            }
        }
    }
    let left = until(&mut switch, now_ns + AFTER_NS);
    leave(&mut output, left, carried);
    let points = run.planned.plan.injections.iter();
    let points = points.filter(|point| point.switch == name);
    let fired = points.map(|point| {
        let counter = switch.counter_read(&point.counter, point.cell as u64);
        counter.unwrap().packets
    });
    output.fired = fired.collect();
    output
}

/// Lets time pass; returns the port and bytes of the frames that leave.
fn until(switch: &mut Switch, now_ns: u64) -> Vec<(u32, Vec<u8>)> {
    let mut left = Vec::new();
    while let Some(due_ns) = switch.poll_timeout().filter(|due_ns| *due_ns <= now_ns) {
        switch.handle_timeout(due_ns);
        left.extend(transmitted(switch));
    }
    left
}

fn transmitted(switch: &mut Switch) -> Vec<(u32, Vec<u8>)> {
    let next = || switch.poll_transmit();
    let transmitted = std::iter::from_fn(next);
    transmitted.map(|sent| (sent.port, sent.bytes)).collect()
}

/// Adds frames that left in one iteration to the output, carried port by port.
fn leave(output: &mut Output, left: Vec<(u32, Vec<u8>)>, carried: Carried) {
    let mut by_port: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
    for (port, frame) in left {
        by_port.entry(port).or_default().push(frame);
    }
    for (port, frames) in by_port {
        let frames = carry(&frames, carried);
        output.left.entry(port).or_default().extend(frames);
    }
}

/// The frames after they were carried: joined to bundles, and cut again.
fn carry(frames: &[Vec<u8>], carried: Carried) -> Vec<Vec<u8>> {
    if carried == Carried::OneByOne {
        return frames.to_vec();
    }
    let (mut run, mut cut) = (Run::new(), Vec::new());
    for frame in frames {
        if !run.add(frame, Joins::ALL) {
            split(&mut run, &mut cut);
            assert!(run.add(frame, Joins::ALL));
        }
    }
    split(&mut run, &mut cut);
    cut
}

/// Cuts a run into its frames, and clears it.
fn split(run: &mut Run, frames: &mut Vec<Vec<u8>>) {
    if !run.is_empty() {
        let (offload, packet) = run.finish();
        let mut packet = packet.to_vec();
        let cut = Cut::new(offload, &packet, 0, Checksums::Finish, usize::MAX);
        let mut cut = cut.unwrap();
        while let Some(frame) = cut.next(&mut packet) {
            frames.push(frame.to_vec());
        }
    }
    run.clear();
}

/// A bundle gives frames of UDP over IPv4 a checksum where they have none: removes it from `bundled`.
fn without_added_checksum(plain: &[u8], bundled: &mut [u8]) {
    const CHECKSUM: std::ops::Range<usize> = 40..42;
    let is_udp = plain.get(12..15) == Some(&[8, 0, 0x45]) && plain.get(23) == Some(&17);
    if is_udp && plain.get(CHECKSUM) == Some(&[0, 0]) && bundled.len() == plain.len() {
        bundled[CHECKSUM].fill(0);
    }
}

/// With `--all`, all scenarios that weir ships; those of foreign programs are replayed where they are tested.
#[test]
fn shipped_scenarios_do_the_same_to_bundles() {
    if !has_namespaces("replays in bundles") {
        return;
    }
    let _turn = beside();
    for file in TESTED {
        let few = FEW.iter().find(|(few, _)| *few == file);
        if few.is_none() && !runs_all() {
            continue;
        }
        let programs = match few {
            Some((_, programs)) => *programs,
            None if file.starts_with("redis") => &["redis-server"],
            None => &[],
        };
        if !programs.iter().all(|program| has_program(file, program)) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let scenario = repository("testbeds/scenarios").join(file);
        let scenario = scenario.to_str().unwrap();
        let captured = ["--captures", "all", "--out", "run"];
        let arguments = [&["run", scenario, "--json"][..], &captured].concat();
        Watched::weir(folder.path(), &arguments)
            .env("PATH", with_weir_in_path())
            .run()
            .expect_code(PASSED);
        let replayed = assert_equal_in_bundles(&folder.path().join("run"));
        println!("{file}: {replayed:?}");
        assert!(replayed.left > 0, "{file}: {replayed:?}");
    }
}
