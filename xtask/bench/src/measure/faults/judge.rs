//! Measures the judge's time per frame and its memory in a long run, with frames that are generated here in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::{Context, Result, ensure};
use proof::{Conditions, Digest, EpochWrite, Identity, Judge, Proof, Sight, Way};
use scenario::plan::TargetModel;
use scenario::replay::{Classified, Engine, Recorded, State};
use scenario::{Plan, Scenario, load, plan};

use crate::measure::clock::{median_ns, thread_cpu_ns};
use crate::measure::files::memory_kib;
use crate::measure::row::{Goal, Row};

/// Name of the row with the judge's time per frame.
pub const COST: &str = "faults/judge";
/// Names of the rows of a long run in virtual time.
pub const LONG: [&str; 2] = ["faults/virtual_memory", "faults/virtual_wrong"];

/// Name of the row that judges faulty switches, each with a single error in a long run.
pub const MUTANTS: &str = "faults/virtual_mutants";

/// Number of frames a second, in virtual time.
const RATE_PPS: u64 = 100_000;
/// Bytes of a frame, and bytes of it that the recorder keeps.
const BYTES: usize = 1_500;
const KEPT: usize = 128;
/// Time in nanoseconds that a frame spends in the switch, without the delays of faults.
const STAY_NS: u64 = 20_000;
const STEP_NS: u64 = 50_000_000;
/// Interval in nanoseconds at which the recorder reads the rings.
const GATHERING_NS: u64 = 2_000_000;
const START_NS: u64 = 1_000_000_000;

const SCENARIO: &str = "weir: 1
name: judged
seed: 7
topology: {star: {hosts: [a, b, c, s], switch: sw}}
flows:
  first: {from: a, to: s, filter: udp.dport == 1001}
  second: {from: b, to: s, filter: udp.dport == 1002}
  third: {from: c, to: s, filter: udp.dport == 1003}
faults:
  - {id: lost, flows: first, effect: !drop , select: {probability: 0.001}}
  - {id: late, flows: second, effect: !delay 5ms, select: {every: 100}}
  - {id: marked, flows: third, effect: {set: {ip.ttl: 9}}, select: {every: 100}}
";

/// Frame that will leave the switch: time in nanoseconds, order among equal times, port and bytes.
type Leaving = (u64, u64, u32, Vec<u8>);

/// Generates frames, and applies a model of the switch to the frames.
struct Frames {
    engine: Engine,
    state: State,
    leaving: BinaryHeap<Reverse<Leaving>>,
    templates: Vec<(u32, Vec<u8>)>,
    exit: u32,
    number: u64,
    mutant: Option<Mutant>,
}

/// Kind of a faulty switch's single error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Error {
    /// A fault spares a frame that it must hit.
    Spares,
    /// A fault hits a frame that it must spare.
    Hits,
    /// A fault counts a frame twice: the ordinals of all later frames are off by one.
    Skips,
    Loses,
    Repeats,
    /// A bit of the frame changes behind the bytes that the recorder keeps.
    Changes,
    /// A frame leaves the switch by its input port.
    Turns,
}

/// Faulty switch: an error on a flow's first frame, from number `from` on, that a fault must hit (`of_hit`) or spare.
#[derive(Debug, Clone, Copy)]
struct Mutant {
    error: Error,
    flow: u64,
    of_hit: bool,
    from: u64,
}

struct PassedFrame {
    port: u32,
    at_ns: u64,
    way: Way,
    bytes: Vec<u8>,
}

impl Frames {
    fn new(scenario: &Scenario, plan: &Plan) -> Result<Frames> {
        let engine = Engine::new(scenario, plan, "sw").context("sw is in no plan")?;
        let topology = &scenario.topology;
        let host = |name: &str| topology.host(name).context("no such host");
        let port = |name: &str| {
            Ok::<_, anyhow::Error>(topology.next_hop("sw", name).context("no port")?.number)
        };
        let to = host("s")?;
        let mut templates = Vec::new();
        for (name, dport) in [("a", 1001_u16), ("b", 1002), ("c", 1003)] {
            let from = host(name)?;
            let mut frame = [to.mac.0, from.mac.0].concat();
            let length = (BYTES - 14) as u16;
            frame.extend([0x08, 0x00, 0x45, 0]);
            frame.extend(length.to_be_bytes());
            frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
            frame.extend(from.ip.octets());
            frame.extend(to.ip.octets());
            frame.extend([0x30, 0x39]);
            frame.extend(dport.to_be_bytes());
            frame.extend((length - 20).to_be_bytes());
            frame.resize(BYTES, 0x5a);
            templates.push((port(name)?, frame));
        }
        Ok(Frames {
            state: engine.start(),
            engine,
            leaving: BinaryHeap::new(),
            templates,
            exit: port("s")?,
            number: 0,
            mutant: None,
        })
    }

    /// Frames that enter or leave the switch before `end_ns`, in order. If `is_over`, no new frames enter.
    fn until(&mut self, end_ns: u64, is_over: bool) -> Vec<PassedFrame> {
        let mut made = Vec::new();
        loop {
            let at_ns = match is_over {
                true => end_ns,
                false => START_NS + self.number * 1_000_000_000 / RATE_PPS,
            };
            let next_ns = at_ns.min(end_ns);
            while let Some(Reverse((left_ns, ..))) = self.leaving.peek()
                && *left_ns < next_ns
                && let Some(Reverse((at_ns, _, port, bytes))) = self.leaving.pop()
            {
                made.push(PassedFrame {
                    port,
                    at_ns,
                    way: Way::Out,
                    bytes,
                });
            }
            if at_ns >= end_ns {
                return made;
            }
            let (port, template) = &self.templates[(self.number % 3) as usize];
            let mut bytes = template.clone();
            bytes[42..50].copy_from_slice(&self.number.to_be_bytes());
            let frame = Classified {
                at_ns,
                ..self.engine.classify(&bytes, *port)
            };
            let passage = self.engine.pass(&mut self.state, &frame, 1);
            let changed = self
                .engine
                .leaves_as(&passage.ingress, Recorded::whole(&bytes));
            let mut left = FrameExit {
                copies: passage.ingress.fate.copies,
                held_ns: passage.ingress.fate.held_ns(0),
                exit: self.exit,
                bytes: changed.map_or_else(|| bytes.clone(), |changed| changed.bytes),
            };
            let of_hit = !passage.ingress.hits.is_empty();
            let flow = self.number % 3;
            let errs = |mutant: &mut Mutant| {
                (mutant.flow, mutant.of_hit) == (flow, of_hit) && mutant.from <= self.number
            };
            if let Some(mutant) = self.mutant.take_if(errs) {
                left.apply(mutant.error, flow, (*port, &bytes));
                if mutant.error == Error::Skips {
                    self.engine.pass(&mut self.state, &frame, 1);
                }
            }
            for _ in 0..left.copies {
                let left_ns = at_ns + STAY_NS + left.held_ns;
                let key = (left_ns, self.number, left.exit, left.bytes.clone());
                self.leaving.push(Reverse(key));
            }
            self.number += 1;
            made.push(PassedFrame {
                port: *port,
                at_ns,
                way: Way::In,
                bytes,
            });
        }
    }
}

struct FrameExit {
    copies: u32,
    held_ns: u64,
    exit: u32,
    bytes: Vec<u8>,
}

impl FrameExit {
    /// Applies an error to a frame of the flow. `input` is the frame's input port and bytes.
    fn apply(&mut self, error: Error, flow: u64, input: (u32, &[u8])) {
        match error {
            Error::Spares => {
                self.copies = 1;
                self.held_ns = 0;
                self.bytes = input.1.to_vec();
            }
            Error::Hits => match flow {
                0 => self.copies = 0,
                1 => self.held_ns = 5_000_000,
                // The checksum keeps its old value: no fault does that.
                _ => self.bytes[22] = 9,
            },
            Error::Skips => {}
            Error::Loses => self.copies = 0,
            Error::Repeats => self.copies += 1,
            Error::Changes => self.bytes[BYTES - 1] ^= 1,
            Error::Turns => self.exit = input.0,
        }
    }
}

/// A planned scenario with its judge, which judges from the scenario's first step on.
struct JudgedRun<'a> {
    judge: Judge<'a>,
    ports: Vec<(String, u32)>,
    digest: Digest,
    /// Frames recorded in the current step, and the bytes that the recorder keeps of them.
    records: Vec<Record>,
    kept: Vec<u8>,
    cost_ns: u64,
}

/// Frame from a recorder; its kept bytes begin at byte `start` of all kept bytes.
struct Record {
    port: usize,
    at_ns: u64,
    way: Way,
    wire_len: u32,
    identity: Identity,
    start: usize,
}

impl<'a> JudgedRun<'a> {
    fn new(scenario: &'a Scenario, plan: &'a Plan) -> JudgedRun<'a> {
        let ports = scenario.topology.ports("sw");
        let ports: Vec<(String, u32)> = ports.map(|port| ("sw".to_owned(), port.number)).collect();
        let digest = Digest::of_seed(plan.seed);
        let conditions = Conditions {
            digest,
            shares_stamps: true,
        };
        let mut judge = Judge::new(scenario, plan, &ports, conditions);
        judge.write(&EpochWrite {
            switch: "sw".to_owned(),
            epoch: 1,
            sent_ns: START_NS / 2,
            confirmed_ns: START_NS / 2 + 1_000,
        });
        JudgedRun {
            judge,
            ports,
            digest,
            records: Vec::new(),
            kept: Vec::new(),
            cost_ns: 0,
        }
    }

    /// Records and judges the frames that pass before `now_ns`. The cost of generating the frames does not count.
    fn advance(&mut self, frames: &mut Frames, now_ns: u64, is_over: bool) {
        // As in a run, a recorder reads frames soon after they pass, and the judge decides at every step.
        for before in (0..STEP_NS / GATHERING_NS).rev() {
            let made = frames.until(now_ns - before * GATHERING_NS, is_over);
            let begun_ns = thread_cpu_ns();
            self.record(&made);
            self.cost_ns += thread_cpu_ns() - begun_ns;
        }
        let begun_ns = thread_cpu_ns();
        for record in self.records.drain(..) {
            let sight = Sight {
                at_ns: record.at_ns,
                way: record.way,
                wire_len: record.wire_len,
                identity: record.identity,
                bytes: &self.kept[record.start..record.start + record.wire_len as usize],
            };
            self.judge.see(record.port, &sight);
        }
        self.kept.clear();
        self.judge.advance(now_ns, |_| ());
        self.cost_ns += thread_cpu_ns() - begun_ns;
    }

    fn record(&mut self, made: &[PassedFrame]) {
        for frame in made {
            let port = self.ports.iter().position(|(_, port)| *port == frame.port);
            let wire_len = frame.bytes.len() as u32;
            self.records.push(Record {
                port: port.unwrap_or(0),
                at_ns: frame.at_ns,
                way: frame.way,
                wire_len,
                identity: self.digest.of(&frame.bytes, wire_len),
                start: self.kept.len(),
            });
            // A fault changes frames, so the recorder keeps them whole.
            self.kept.extend_from_slice(&frame.bytes);
        }
    }
}

fn planned() -> Result<(Scenario, Plan)> {
    let scenario = load("judged.yaml", SCENARIO)?;
    let plan = plan(&scenario, &TargetModel::EMBEDDED)?;
    Ok((scenario, plan))
}

/// Row with the time of recorder and judge for a frame that enters and leaves the switch.
pub fn cost() -> Result<Row> {
    const FRAMES: u64 = 500_000;
    let (scenario, plan) = planned()?;
    let mut frames = Frames::new(&scenario, &plan)?;
    let mut run = JudgedRun::new(&scenario, &plan);
    let mut now_ns = START_NS;
    while frames.number < FRAMES {
        now_ns += STEP_NS;
        run.advance(&mut frames, now_ns, false);
    }
    let counted = frames.number;
    let cost_ns = run.cost_ns as f64 / counted as f64;
    Ok(Row {
        name: COST,
        value: Some(cost_ns / 1e3),
        unit: "us",
        goal: Goal::AtMost(1.5),
        floor: Some(floor_ns(run.digest) / 1e3),
        note: format!(
            "processor time for each of {counted} frames of {BYTES} bytes, which enter and leave; drop, delay and set on three flows; the \
             floor: twice a copy of {KEPT} bytes, twice the digest of all, twice a look into a table"
        ),
    })
}

/// Lower bound of that time in nanoseconds: two copies of the kept bytes, two digests, two lookups in a table.
fn floor_ns(digest: Digest) -> f64 {
    const COUNT: u64 = 20_000;
    let frame = vec![0x5a_u8; BYTES];
    let mut table = std::collections::HashMap::new();
    let mut kept = Vec::with_capacity(KEPT * 2 * COUNT as usize);
    median_ns(5, COUNT, || {
        kept.clear();
        for number in 0..COUNT {
            for way in 0..2 {
                kept.extend_from_slice(&frame[..KEPT]);
                let identity = digest.of(&frame, BYTES as u32);
                std::hint::black_box(identity);
                *table.entry(number).or_insert(0_u64) += way;
            }
        }
    })
}

/// Faulty switches: every kind of error for each flow, on frames that a fault must hit and on others, if it changes behavior.
fn errors() -> Vec<Mutant> {
    let mut mutants = Vec::new();
    for flow in 0..3 {
        for of_hit in [true, false] {
            let errors = [
                Error::Spares,
                Error::Hits,
                Error::Loses,
                Error::Repeats,
                Error::Changes,
                Error::Turns,
            ];
            let is_dropped = flow == 0 && of_hit;
            let is_error = |error: &Error| match error {
                Error::Spares => of_hit,
                Error::Hits => !of_hit,
                // A dropped frame does not leave, so other errors on it have no effect.
                _ => !is_dropped,
            };
            let errors = errors.into_iter().filter(is_error);
            mutants.extend(errors.map(|error| Mutant {
                error,
                flow,
                of_hit,
                from: 1_000_000,
            }));
        }
        mutants.push(Mutant {
            error: Error::Skips,
            flow,
            of_hit: false,
            from: 10_000_000,
        });
    }
    mutants
}

/// Row with the number of faulty switches, each with a single error late in a long run, that were judged correct.
pub fn mutants() -> Result<Row> {
    let (scenario, plan) = planned()?;
    let (mut count, mut missed) = (0, Vec::new());
    for mutant in std::iter::once(None).chain(errors().into_iter().map(Some)) {
        let mut frames = Frames::new(&scenario, &plan)?;
        frames.mutant = mutant;
        let mut run = JudgedRun::new(&scenario, &plan);
        let mut now_ns = START_NS;
        // Long enough for a random fault to err after a skipped ordinal.
        while frames.number < mutant.map_or(1_000_000, |mutant| mutant.from) + 50_000 {
            now_ns += STEP_NS;
            run.advance(&mut frames, now_ns, false);
        }
        now_ns += STEP_NS;
        run.advance(&mut frames, now_ns, true);
        run.judge.end(|_| ());
        let wrong = wrong(&run.judge.conclude(&[0; 3], &[], |_| ()));
        let Some(mutant) = mutant else {
            ensure!(
                wrong == 0,
                "{wrong} frames of a correct switch are judged wrong"
            );
            continue;
        };
        count += 1;
        if wrong == 0 {
            missed.push(format!("{mutant:?}"));
        }
    }
    Ok(Row {
        name: MUTANTS,
        value: Some(missed.len() as f64),
        unit: "missed",
        goal: Goal::AtMost(0.0),
        floor: None,
        note: format!(
            "{count} switches with a single error, after 10^6 frames, or a skipped ordinal after 10^7; judged correct: {}",
            missed.join(", ")
        ),
    })
}

/// Number of frames that the proof judges wrong.
fn wrong(proof: &Proof) -> u64 {
    let observations = proof.observations.iter();
    let faults = observations.map(|seen| seen.missed + seen.collateral + seen.slow);
    let strays = proof.strays.values();
    let strays = strays.map(|of| of.unexplained + of.foreign);
    faults.chain(strays).sum()
}

/// A run of `minutes` minutes at [`RATE_PPS`]: growth of this process's memory after the first ten seconds, and number
/// of frames judged wrong.
pub fn long(minutes: u64) -> Result<Vec<Row>> {
    let (scenario, plan) = planned()?;
    let mut frames = Frames::new(&scenario, &plan)?;
    let mut run = JudgedRun::new(&scenario, &plan);
    let end_ns = START_NS + minutes * 60_000_000_000;
    let mut now_ns = START_NS;
    let (mut early_kb, mut most_kb) = (0, 0);
    while now_ns < end_ns {
        now_ns += STEP_NS;
        run.advance(&mut frames, now_ns, false);
        let resident_kb = memory_kib("VmRSS:")?;
        most_kb = most_kb.max(resident_kb);
        if now_ns <= START_NS + 10_000_000_000 {
            early_kb = most_kb;
        }
    }
    now_ns += STEP_NS;
    run.advance(&mut frames, now_ns, true);
    run.judge.end(|_| ());
    let proof = run.judge.conclude(&[0; 3], &[], |_| ());
    let note = format!(
        "{} frames in {minutes} minutes of virtual time; {early_kb} KiB after the first ten seconds, {most_kb} KiB at most",
        frames.number
    );
    let row = |name, value, unit, most| Row {
        name,
        value: Some(value),
        unit,
        goal: Goal::AtMost(most),
        floor: None,
        note: note.clone(),
    };
    Ok(vec![
        row(LONG[0], most_kb as f64 / 1024.0, "MiB", 200.0),
        row(LONG[1], wrong(&proof) as f64, "frames", 0.0),
    ])
}
