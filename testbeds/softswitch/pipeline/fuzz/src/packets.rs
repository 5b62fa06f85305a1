//! Runs frames, writes and time through programs of one architecture, in both executors: they must agree, nothing may
//! panic, and every packet must be counted. Shared by the fuzz targets and by the test that replays the corpus.

mod writes;

// tests/it/support/aggregate.rs, which every includer of this file also includes.
use super::aggregate;
use arbitrary::{Result, Unstructured};
use p4lang::ir::Program;
use parser_gen::Arch;
use pipeline::{
    Config, EgressQueues, Executor, Image, Ports, RecirculationLink, Scheduler, Switch,
};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Maximum number of steps per input; further bytes are not read.
const STEPS: usize = 200;
/// Longest frame in bytes: more than a port of the switch accepts.
const JUMBO: usize = 9_600;
/// Maximum number of parser states and loop iterations in a block.
const MAX_STEPS: u32 = 256;
/// Maximum number of waiting packets, which bounds a multicast that recirculates.
const WAITING: usize = 64;

/// Panics if the switch violates a guarantee on this input.
pub fn run(arch: Arch, data: &[u8]) {
    let mut input = Unstructured::new(data);
    // The end of the input is not an error.
    let _ended = drive(arch, &mut input);
}

fn drive(arch: Arch, input: &mut Unstructured<'_>) -> Result<()> {
    let images = images(arch);
    // The last image, p4src's, has the longest packets.
    let last = images.len() - 1;
    let [plain, traced] = match input.ratio(1, 8)? {
        true => &images[last],
        false => input.choose(&images[..last])?,
    };
    let config = config(input)?;
    let image = if config.trace { traced } else { plain };
    let mut switch = match image.switch(config) {
        Ok(switch) => switch,
        Err(error) => panic!("{error}"),
    };
    let mut driven = Driven {
        now_ns: input.int_in_range(0..=1 << 40)?,
        given: 0,
        taken: 0,
        switch: &mut switch,
    };
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        driven.step(input)?;
        driven.holds();
    }
    Ok(())
}

/// Two images of a program: one for switches that do not trace, and one for those that do.
type Images = [Image; 2];

/// The programs, compiled once; each run makes its switch from them.
fn images(arch: Arch) -> &'static [Images] {
    static PSA: OnceLock<Vec<Images>> = OnceLock::new();
    static V1MODEL: OnceLock<Vec<Images>> = OnceLock::new();
    static TNA: OnceLock<Vec<Images>> = OnceLock::new();
    let filters = [
        "ip.src == 10.0.0.0/8 && udp.dport == 53",
        "tcp.flags.syn && !tcp.flags.ack",
        "ipv6",
    ];
    let all = |texts: &[&str]| {
        let mut all: Vec<_> = texts.iter().map(|text| compiled(text)).collect();
        all.push(aggregate::program_for(arch, &filters));
        all.iter().map(loaded).collect()
    };
    match arch {
        Arch::Psa => PSA.get_or_init(|| {
            all(&[
                include_str!("../programs/psa.p4"),
                include_str!("../../../../../p4src/lang/tests/corpus/pass/psa.p4"),
            ])
        }),
        Arch::V1model => V1MODEL.get_or_init(|| {
            all(&[
                include_str!("../programs/v1model.p4"),
                include_str!("../../../tests/support/everything.p4"),
                include_str!("../../../../../p4src/lang/tests/corpus/pass/v1model.p4"),
            ])
        }),
        Arch::Tna => TNA.get_or_init(|| {
            all(&[
                include_str!("../programs/tna.p4"),
                include_str!("../programs/t2na.p4"),
                include_str!("../../../../../p4src/lang/tests/corpus/pass/tna.p4"),
                include_str!("../../../../../p4src/lang/tests/corpus/pass/t2na.p4"),
            ])
        }),
    }
}

fn compiled(text: &str) -> Arc<Program> {
    let files = p4lang::Files::new().with("fuzz.p4", text);
    match p4lang::compile(&files, "fuzz.p4", &p4lang::Options::default()) {
        Ok(compiled) => Arc::new(compiled.program),
        Err(errors) => panic!("{errors}"),
    }
}

fn loaded(program: &Arc<Program>) -> Images {
    [false, true].map(|trace| {
        let config = Config {
            trace,
            max_steps: MAX_STEPS,
            ..Config::default()
        };
        match Image::new(Arc::clone(program), &config) {
            Ok(image) => image,
            Err(error) => panic!("{error}"),
        }
    })
}

fn config(input: &mut Unstructured<'_>) -> Result<Config> {
    let [kind, depth, rate] = input.arbitrary::<[u8; 3]>()?;
    let scheduler = match kind & 1 {
        0 => Scheduler::StrictPriority,
        _ => Scheduler::Weighted([1, 2, 0, 4, 5, 6, 7, u32::MAX]),
    };
    let rate_bps = (kind & 2 != 0).then(|| 1 << (rate & 63));
    Ok(Config {
        seed: rate.into(),
        recirculation: RecirculationLink {
            latency_ns: 1 << (depth & 31),
            rate_bps: (kind & 4 != 0).then(|| 1 << (rate & 63)),
            queue: usize::from(depth).min(WAITING),
        },
        egress_queues: EgressQueues {
            depth: usize::from(depth),
            scheduler,
            rate_bps,
            port_rates_bps: BTreeMap::from([(1, 0), (2, u64::MAX)]),
        },
        cpu_port: if kind & 8 != 0 { 192 } else { 510 },
        ports: match kind & 16 {
            0 => Ports::Any,
            _ => Ports::Only((0..8).chain([64, 511]).collect()),
        },
        max_steps: MAX_STEPS,
        max_passes: 8,
        max_work: 64,
        transmit_limit: if kind & 32 != 0 { 4 } else { 1024 },
        trace: kind & 64 != 0,
        executor: if kind & 128 != 0 {
            Executor::Fast
        } else {
            Executor::Both
        },
        poison: None,
    })
}

/// A switch, and the entries written to it.
struct Driven<'s> {
    switch: &'s mut Switch,
    now_ns: u64,
    given: u64,
    taken: u64,
}

impl Driven<'_> {
    fn step(&mut self, input: &mut Unstructured<'_>) -> Result<()> {
        match input.int_in_range(0..=7u8)? {
            0..=3 => {
                let port = port(input)?;
                let frame = frame(input)?;
                self.given += 1;
                self.switch.handle_packet(self.now_ns, port, &frame);
            }
            4 => {
                self.now_ns = self
                    .now_ns
                    .saturating_add(1 << input.int_in_range(0..=40u8)?);
                self.switch.handle_timeout(self.now_ns);
            }
            5 => {
                while let Some(transmit) = self.switch.poll_transmit() {
                    self.taken += 1;
                    self.switch.recycle(transmit.bytes);
                }
                while self.switch.poll_digest().is_some() {}
                while self.switch.poll_idle().is_some() {}
                self.switch.take_trace();
            }
            _ => writes::one(self.switch, self.now_ns, input)?,
        }
        Ok(())
    }

    /// Checks the invariants that hold after every step.
    fn holds(&mut self) {
        let differences = self.switch.take_differences();
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        let waiting = self.switch.waiting() as u64;
        let stats = self.switch.stats();
        assert_eq!(stats.received, self.given);
        let dropped: u64 = stats.drops().map(|(_, packets)| packets).sum();
        assert_eq!(
            stats.received + stats.made,
            stats.transmitted + dropped + waiting,
            "{waiting} wait: {stats:?}"
        );
        assert!(stats.transmitted >= self.taken);
        if let Some(due) = self.switch.poll_timeout() {
            assert!(due > 0 || self.now_ns == 0);
        }
    }
}

fn port(input: &mut Unstructured<'_>) -> Result<u32> {
    let named = [0, 1, 2, 3, 7, 8, 64, 68, 192, 510, 511, 512, u32::MAX];
    match input.arbitrary::<bool>()? {
        true => Ok(*input.choose(&named)?),
        false => input.arbitrary(),
    }
}

/// Raw bytes, or a frame of a p4src protocol with some bytes changed; possibly cut, or padded up to a jumbo frame.
fn frame(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut frame = match input.int_in_range(0..=3u8)? {
        0 => {
            let length = input.int_in_range(0..=1500usize)?;
            let length = length.min(input.len());
            input.bytes(length)?.to_vec()
        }
        1 => {
            let length = input.int_in_range(0..=40usize)?;
            let length = length.min(input.len());
            input.bytes(length)?.to_vec()
        }
        kind => {
            let [worker, chunk, values] = input.arbitrary::<[u8; 3]>()?;
            let values = if kind == 2 { 256 } else { usize::from(values) };
            let values: Vec<u32> = (0..values as u32).map(|n| n << (chunk & 31)).collect();
            aggregate::update((worker & 7).into(), chunk.into(), &values)
        }
    };
    for _ in 0..input.int_in_range(0..=4u8)? {
        let (at, byte) = (input.arbitrary::<u8>()?, input.arbitrary()?);
        if let Some(place) = frame.get_mut(usize::from(at)) {
            *place = byte;
        }
    }
    match input.int_in_range(0..=7u8)? {
        0 => frame.truncate(input.int_in_range(0..=80usize)?),
        1 => frame.resize(
            input.int_in_range(frame.len()..=JUMBO.max(frame.len()))?,
            0xa5,
        ),
        _ => {}
    }
    Ok(frame)
}
