//! A program of p4src as a switch of `aggregation`'s cluster: the P4 text, compiled and executed, with real frames.

use std::collections::{BTreeMap, HashMap};
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock};

use aggregation::{CellIndex, ChunkId, Job, WorkerId, WorkerSet};
use cluster::{CellState, Node, SwitchModel};
use host_agent::frames::{Endpoint, Mac, asking, build, group, open, sum};
use p4lang::runtime::{ActionCall, FieldMatch, Match, MulticastGroup, Replica, TableEntry};
use parser_gen::{Arch, FrameValues, Library, generate, program};
use pipeline::{Config, Switch};
use scenario::plan::names::aggregate::{self, ARRIVALS, BITMAPS, FLAGS, MARKS, OWNERS, SCALES};
use scenario::plan::names::forward;
use wire::{Flags, Kind, Packet};

/// The server's port. Rank r is at port `FIRST_WORKER_PORT + r`.
pub const SERVER_PORT: u32 = 1;
/// Rank 0's port: no rank's port is its own number, nor another's rank, and all are Ethernet ports of a Tofino's pipe 0.
pub const FIRST_WORKER_PORT: u32 = 32;
/// The architectures whose programs are tested against the protocol.
pub const ARCHS: [Arch; 3] = [Arch::Psa, Arch::V1model, Arch::Tna];
/// Number of values in a packet and in a cell, by default.
pub const VALUES: usize = 256;
/// Cells of the program.
pub const CELLS: u64 = 2048;
/// First cell of an admitted job.
pub const BASE: u64 = 96;
/// Port of the switch above, in a tree.
pub const UP_PORT: u32 = 2;
const RESULTS_GROUP: u32 = 17;
/// Content of the cells on both sides of the job's, which no frame may change.
const SENTINEL: u128 = 0xA5;

/// Outcomes of a frame, by their index in `Tally` (p4src/common/aggregate_types.p4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Summed; other workers are missing.
    Absorbed,
    /// Summed; no worker is missing.
    Completed,
    /// A duplicate for a complete cell.
    Again,
    /// A duplicate for an incomplete cell.
    Duplicate,
    /// Older than the cell's owner.
    Stale,
    /// The worker is unknown, or has another port.
    Foreign,
    /// Slot, version or count are not the chunk's.
    Malformed,
    /// The job is not summed here.
    Passed,
    /// A probe: answered, or sent to the switch above.
    Probed,
    /// The frame closed its chunk.
    Closed,
    /// The chunk was closed before.
    Late,
    /// The chunk may be closed, but its cell was not opened.
    Forgotten,
}

impl Outcome {
    /// All, by index.
    pub const ALL: [Self; 12] = [
        Self::Absorbed,
        Self::Completed,
        Self::Again,
        Self::Duplicate,
        Self::Stale,
        Self::Foreign,
        Self::Malformed,
        Self::Passed,
        Self::Probed,
        Self::Closed,
        Self::Late,
        Self::Forgotten,
    ];

    /// Whether jobs with deadlines alone have it.
    pub fn is_of_deadlines(self) -> bool {
        matches!(self, Self::Closed | Self::Late | Self::Forgotten)
    }
}

/// A change of the P4 text: path, a part that occurs once, its replacement.
pub type Patch = (&'static str, &'static str, &'static str);

/// Compiles a program of p4src with these changes.
pub fn compile(arch: Arch, patches: &[Patch]) -> Arc<p4lang::ir::Program> {
    compile_of(arch, FrameValues::V256, patches)
}

/// Like [`compile`], for frames with this number of values.
pub fn compile_of(arch: Arch, values: FrameValues, patches: &[Patch]) -> Arc<p4lang::ir::Program> {
    let options = parser_gen::Options {
        aggregate: Some(values),
        ..Default::default()
    };
    compile_with(arch, &options, patches)
}

/// Like [`compile`], with all options. Each program is compiled once for all tests.
pub fn compile_with(
    arch: Arch,
    options: &parser_gen::Options,
    patches: &[Patch],
) -> Arc<p4lang::ir::Program> {
    type Compiled = Arc<OnceLock<Arc<p4lang::ir::Program>>>;
    static PROGRAMS: Mutex<BTreeMap<String, Compiled>> = Mutex::new(BTreeMap::new());
    let name = format!("{arch:?} {options:?} {patches:?}");
    let compiled = Arc::clone(PROGRAMS.lock().unwrap().entry(name).or_default());
    Arc::clone(compiled.get_or_init(|| compile_text(arch, options, patches)))
}

fn compile_text(
    arch: Arch,
    options: &parser_gen::Options,
    patches: &[Patch],
) -> Arc<p4lang::ir::Program> {
    let generated = generate(&Library::builtin(), &[], options).expect("generates");
    let mut files = p4lang::Files::new();
    let mut changed = 0;
    for (path, mut text) in program(arch, &generated) {
        for (_, old, new) in patches.iter().filter(|(of, ..)| *of == path) {
            assert_eq!(text.matches(old).count(), 1, "{path}: `{old}`");
            text = text.replace(old, new);
            changed += 1;
        }
        files.insert(&path, text);
    }
    assert_eq!(changed, patches.len(), "a patch names no file");
    match p4lang::compile(&files, &arch.main_path(), &p4lang::Options::default()) {
        Ok(compiled) => Arc::new(compiled.program),
        Err(diagnostics) => panic!("{}: {diagnostics}", arch.main_path()),
    }
}

/// Where a node is.
pub fn endpoint(node: Node) -> Endpoint {
    let last = match node {
        Node::Server => 254,
        Node::Worker(WorkerId(rank)) => u8::try_from(rank).expect("few"),
    };
    Endpoint {
        mac: Mac([2, 0, 0, 0, 1, last]),
        ip: Ipv4Addr::new(10, 0, 1, last),
    }
}

/// The port that a node is at.
pub fn port(node: Node) -> u32 {
    match node {
        Node::Server => SERVER_PORT,
        Node::Worker(WorkerId(rank)) => FIRST_WORKER_PORT + u32::from(rank),
    }
}

/// The node at a port.
pub fn node_at(port: u32) -> Node {
    if port == SERVER_PORT {
        return Node::Server;
    }
    let rank = port
        .checked_sub(FIRST_WORKER_PORT)
        .and_then(|rank| u16::try_from(rank).ok());
    Node::Worker(WorkerId(
        rank.unwrap_or_else(|| panic!("nobody is at port {port}")),
    ))
}

/// Whom a driver addresses a payload to (docs/protocol.md, "Frame").
pub fn addressee(payload: &[u8]) -> Endpoint {
    match Packet::new_checked(payload) {
        Ok(packet) if packet.kind() == Kind::Result && packet.worker() == wire::ALL_WORKERS => {
            group(packet.job())
        }
        Ok(packet) if packet.kind() == Kind::Result => {
            endpoint(Node::Worker(WorkerId(packet.worker())))
        }
        _ => endpoint(Node::Server),
    }
}

/// Destination of a frame from a node whose probes go to its switch.
fn addressee_of(from: Node, payload: &[u8]) -> Endpoint {
    match Packet::new_checked(payload) {
        Ok(packet) if packet.kind() == Kind::Update && packet.flags().contains(Flags::PROBE) => {
            asking(packet.job(), endpoint(from))
        }
        _ => addressee(payload),
    }
}

/// The frame that a node sends with this payload.
pub fn frame(from: Node, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    build(
        &mut frame,
        endpoint(from),
        addressee_of(from, payload),
        payload,
    );
    frame
}

/// Content of the cells after an admission. Bitmaps are empty in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Owners older than the first chunk; the rest 0, as in the reference, so that cells can be compared.
    Cleared,
    /// Owners older than the first chunk; whatever another job left of values, flags and scales.
    LeftBehind,
    /// The same, but each cell has the first chunk that it will hold for its owner, as zeroed registers have 0: rule 2
    /// takes a cell over, whoever owns it, if nobody has contributed.
    Owned,
}

/// The part of a job that a switch sums.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its children: workers, or the switches below. Child c is at port `FIRST_WORKER_PORT + c`.
    pub children: u16,
    /// Its number at the switch above, if there is one.
    pub up: Option<u16>,
    /// By which port each worker is reached.
    pub routes: Vec<(WorkerId, u32)>,
}

impl Part {
    /// All of it.
    pub fn all(job: &Job) -> Self {
        let to = |worker| (worker, port(Node::Worker(worker)));
        Self {
            children: job.workers(),
            up: None,
            routes: job.everyone().iter().map(to).collect(),
        }
    }
}

/// The program on the embedded switch, with one job.
pub struct P4Switch {
    /// The switch.
    pub switch: Switch,
    /// By value.
    sums: Vec<String>,
    /// By register, how many fields its cells have: the first is what the protocol speaks of.
    fields: HashMap<String, usize>,
    job: Option<Job>,
    entries: Vec<TableEntry>,
    frame: Vec<u8>,
}

impl P4Switch {
    /// Loads a compiled program.
    pub fn load(program: Arc<p4lang::ir::Program>) -> Self {
        let switch = Switch::new(program, Config::default()).expect("loads");
        let registers = switch.registers().iter();
        let fields: HashMap<String, usize> = registers
            .map(|r| (r.name.clone(), r.widths.len()))
            .collect();
        let sums = (0..).map(aggregate::sums);
        let sums = sums.take_while(|name| fields.contains_key(name));
        Self {
            sums: sums.collect(),
            fields,
            switch,
            job: None,
            entries: Vec::new(),
            frame: Vec::new(),
        }
    }

    /// Takes the last job out and admits this one.
    pub fn admit(&mut self, job: Job, admission: Admission) {
        self.admit_part(job, admission, &Part::all(&job));
    }

    /// Like [`Self::admit`], for a job with deadlines, with or without opened cells.
    pub fn admit_until(&mut self, job: Job, admission: Admission, is_opened: bool) {
        self.admit_as(job, admission, &Part::all(&job), aggregate::AGGREGATE_UNTIL);
        for cell in BASE..BASE + job.cells() as u64 {
            self.write(MARKS, cell, u128::from(is_opened) << 1);
        }
    }

    /// Like [`Self::admit`], at a switch that sums a part of the job.
    pub fn admit_part(&mut self, job: Job, admission: Admission, part: &Part) {
        let action = match part.up {
            None => aggregate::AGGREGATE_JOB,
            Some(_) => aggregate::AGGREGATE_PART,
        };
        self.admit_as(job, admission, part, action);
    }

    fn admit_as(&mut self, job: Job, admission: Admission, part: &Part, action: &str) {
        assert_eq!(
            job.values_per_packet(),
            self.sums.len(),
            "the P4 text has so many"
        );
        for entry in self.entries.drain(..) {
            self.switch.delete_entry(&entry).expect("it was inserted");
        }
        self.job = Some(job);

        let (cells, window) = (job.cells() as u64, u128::from(job.window()));
        assert!(BASE + cells < CELLS);
        let first = job.first_chunk();
        for chunk in (0..cells as u32).map(|n| first.plus(n)) {
            let owner = if admission == Admission::Owned {
                chunk
            } else {
                first.plus(u32::MAX)
            };
            let cell = BASE + u64::from(job.cell(chunk).0);
            self.write(OWNERS, cell, u128::from(owner.0));
            for name in [BITMAPS, ARRIVALS] {
                if self.has(name) {
                    self.write(name, cell, 0);
                }
            }
        }
        if admission == Admission::Cleared {
            let set = [OWNERS, BITMAPS, ARRIVALS];
            for name in self
                .register_names()
                .iter()
                .filter(|n| !set.contains(&n.as_str()))
            {
                (BASE..BASE + cells).for_each(|cell| self.write(name, cell, 0));
            }
        }
        for name in self.register_names() {
            for cell in [BASE - 1, BASE + cells] {
                self.write(&name, cell, SENTINEL);
            }
        }

        let id = (aggregate::KEY_JOB, u128::from(job.id().0));
        let all = u128::from(WorkerSet::first(part.children).0);
        let mut params = vec![
            (aggregate::ALL_WORKERS, all),
            (aggregate::BASE, u128::from(BASE / 2)),
            (aggregate::WINDOW, window),
            (aggregate::SLOT_MASK, window - 1),
        ];
        if let Some(number) = part.up {
            params.push((aggregate::UP_PORT, u128::from(UP_PORT)));
            params.push((aggregate::UP_WORKER, u128::from(number)));
        }
        self.insert(aggregate::JOBS, &[id], action, &params);
        for child in 0..part.children {
            let rank = u128::from(child);
            for (probe, bit) in [(0, 1 << rank), (1, 0)] {
                let key = [
                    id,
                    (aggregate::KEY_WORKER, rank),
                    (aggregate::KEY_PROBE, probe),
                    (
                        aggregate::KEY_PORT,
                        u128::from(FIRST_WORKER_PORT + u32::from(child)),
                    ),
                ];
                let bit = [(aggregate::WORKER_BIT, bit)];
                self.insert(aggregate::MEMBERS, &key, aggregate::MEMBER, &bit);
            }
        }
        let routes = part
            .routes
            .iter()
            .map(|(worker, port)| (Node::Worker(*worker), *port));
        for (node, port) in routes.chain([(Node::Server, SERVER_PORT)]) {
            let to = [(forward::PORT, u128::from(port))];
            self.insert(
                forward::TABLE,
                &[mac(endpoint(node))],
                forward::UNICAST,
                &to,
            );
        }
        let to = [(forward::GROUP, u128::from(RESULTS_GROUP))];
        for all in [group(job.id().0), sum(job.id().0)] {
            self.insert(forward::TABLE, &[mac(all)], forward::MULTICAST, &to);
        }
        let asks = mac(asking(job.id().0, endpoint(Node::Server)));
        self.insert(forward::TABLE, &[asks], forward::BACK, &[]);
        let replicas = (0..part.children).map(|child| Replica {
            port: FIRST_WORKER_PORT + u32::from(child),
            instance: 1 + child,
        });
        let results = MulticastGroup {
            id: RESULTS_GROUP,
            replicas: replicas.collect(),
        };
        self.switch
            .set_multicast_group(&results)
            .expect("the group");
    }

    fn insert(&mut self, table: &str, key: &[(&str, u128)], action: &str, params: &[(&str, u128)]) {
        let exact = |(field, value): &(&str, u128)| FieldMatch {
            field: (*field).to_owned(),
            value: Match::exact(*value),
        };
        let entry = TableEntry {
            table: table.to_owned(),
            key: key.iter().map(exact).collect(),
            priority: 0,
            action: ActionCall {
                name: action.to_owned(),
                params: params
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).into()))
                    .collect(),
            },
        };
        self.switch
            .insert_entry(&entry)
            .unwrap_or_else(|error| panic!("{entry:?}: {error}"));
        self.entries.push(entry);
    }

    /// Tells the program more of the job: it is taken out with it.
    pub fn tell(&mut self, entry: TableEntry) {
        let told = self.switch.insert_entry(&entry);
        told.unwrap_or_else(|error| panic!("{entry:?}: {error}"));
        self.entries.push(entry);
    }

    /// Whether a cell is opened, and whether closed.
    pub fn marks(&self, cell: CellIndex) -> (bool, bool) {
        let marks = self.read(MARKS, BASE + u64::from(cell.0));
        (marks & 2 != 0, marks & 1 != 0)
    }

    /// The job that was admitted last.
    pub fn job(&self) -> Job {
        self.job.expect("admitted")
    }

    /// Every register of `Aggregate`.
    pub fn register_names(&self) -> Vec<String> {
        let state = [OWNERS, BITMAPS, ARRIVALS, FLAGS, SCALES, MARKS];
        let state = state.into_iter().filter(|name| self.has(name));
        let state = state.map(str::to_owned);
        state.chain(self.sums.iter().cloned()).collect()
    }

    fn has(&self, register: &str) -> bool {
        self.fields.contains_key(register)
    }

    /// Writes it to every field of a cell.
    fn write(&mut self, register: &str, index: u64, value: u128) {
        let values = vec![value.into(); self.fields.get(register).copied().unwrap_or(0)];
        self.switch
            .register_write(register, index, &values)
            .unwrap_or_else(|error| panic!("{register}[{index}]: {error}"));
    }

    fn read(&self, register: &str, index: u64) -> u128 {
        match self.switch.register_read(register, index).as_deref() {
            Ok([value, ..]) => value.to_u128().unwrap(),
            other => panic!("{register}[{index}]: {other:?}"),
        }
    }

    /// All cells of all registers.
    pub fn registers(&self) -> Vec<u128> {
        let names = self.register_names();
        let cells = names
            .iter()
            .flat_map(|name| (0..CELLS).map(move |cell| (name, cell)));
        cells.map(|(name, cell)| self.read(name, cell)).collect()
    }

    /// Wants the cells beside the job's as they were.
    pub fn assert_neighbours_untouched(&self) {
        let cells = self.job.expect("admitted").cells() as u64;
        for name in self.register_names() {
            for cell in [BASE - 1, BASE + cells] {
                assert_eq!(self.read(&name, cell), SENTINEL, "{name}[{cell}]");
            }
        }
    }

    /// How many frames met this outcome since the program was loaded.
    pub fn outcomes(&self, outcome: Outcome) -> u64 {
        self.switch
            .counter_read(aggregate::OUTCOMES, outcome as u64)
            .expect("Tally counts")
            .packets
    }

    /// Port and bytes of each frame that leaves after this one has arrived.
    pub fn send(&mut self, now_ns: u64, port: u32, frame: &[u8]) -> Vec<(u32, Vec<u8>)> {
        self.switch.handle_packet(now_ns, port, frame);
        let sent = std::iter::from_fn(|| self.switch.poll_transmit());
        let sent = sent
            .map(|transmit| (transmit.port, transmit.bytes))
            .collect();
        assert_eq!(self.switch.poll_timeout(), None, "nothing is held here");
        sent
    }
}

fn mac(endpoint: Endpoint) -> (&'static str, u128) {
    let value = endpoint
        .mac
        .0
        .iter()
        .fold(0, |value, byte| value << 8 | u128::from(*byte));
    (forward::KEY, value)
}

impl SwitchModel for P4Switch {
    fn handle(&mut self, now_ns: u64, from: Node, payload: &[u8], out: &mut Vec<(Node, Vec<u8>)>) {
        let to = addressee_of(from, payload);
        build(&mut self.frame, endpoint(from), to, payload);
        self.switch.handle_packet(now_ns, port(from), &self.frame);
        while let Some(transmit) = self.switch.poll_transmit() {
            let to = node_at(transmit.port);
            let opened = open(&transmit.bytes, endpoint(to));
            let payload = opened.unwrap_or_else(|| panic!("{to:?}: {:02x?}", transmit.bytes));
            out.push((to, payload.to_vec()));
            self.switch.recycle(transmit.bytes);
        }
    }

    fn cell(&self, cell: CellIndex) -> Option<CellState> {
        let job = self.job?;
        if cell.index() >= job.cells() {
            return None;
        }
        let index = BASE + u64::from(cell.0);
        Some(CellState {
            owner: ChunkId(self.read(OWNERS, index) as u32),
            contributors: WorkerSet(self.read(BITMAPS, index) as u64),
            flags: self.read(FLAGS, index) as u8,
            next_scale: self.read(SCALES, index) as u8,
            values: self
                .sums
                .iter()
                .map(|name| self.read(name, index) as u32 as i32)
                .collect(),
        })
    }
}
