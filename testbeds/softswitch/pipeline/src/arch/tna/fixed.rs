//! What a Tofino's control plane sets besides the program's own objects: port metadata, loopbacks, mirror sessions,
//! multicast trees, pruning, the packet generator. None of it takes part in batches.

use super::multicast::MulticastTree;
use super::packet_generator::{Generator, GeneratorApp};
use super::pipes::Pipes;
use super::{PIPES, PORTS};
use crate::error::{ExternError, GeneratorError, ReplicationError};
use crate::externs::counter::CounterValue;
use crate::externs::filter::{FilterConfig, cell_words};
use crate::switch::{Ports, Switch};
use p4lang::runtime::{TableEntry, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Port of the CPU on the PCIe bus, of a Tofino 1 and of a Tofino 2.
const CPU_PORTS: [u32; 2] = [320, 0];
/// Recirculation ports within a pipe.
pub(super) const RECIRCULATION: std::ops::RangeInclusive<u32> = 68..=71;
/// Trees, sessions at most.
const LIMIT: usize = 65_536;

/// Where the copies of a mirror session go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MirrorSession {
    /// To one port.
    pub port: Option<u32>,
    /// To multicast trees A and B.
    pub groups: [Option<u16>; 2],
    /// To the CPU.
    pub copy_to_cpu: bool,
    /// For pruning within the trees.
    pub rid: u16,
    /// L1 and L2 exclusion ids for the trees.
    pub exclusion: (u16, u16),
    /// L1 and L2 hashes for the trees.
    pub hashes: [u16; 2],
    /// Queue.
    pub qid: u8,
    /// Class of service.
    pub cos: u8,
    /// `MeterColor_t`: 0 green, 1 or 2 yellow, 3 red.
    pub colour: u8,
    /// Bytes that a copy has at most, its mirror header counted; `None`: all.
    pub max_length: Option<u16>,
}

/// From which depth on a queue takes no red, no yellow and no green packets any more, in cells of 80 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueThresholds {
    /// The smallest.
    pub red: u64,
    /// Larger.
    pub yellow: u64,
    /// The largest.
    pub green: u64,
}

impl QueueThresholds {
    /// How congested a queue of this depth is: 0 none, 1 light, 2 high, 3 extreme.
    pub(super) fn congestion(&self, cells: u64) -> u64 {
        let above = [self.red, self.yellow, self.green];
        above.iter().filter(|threshold| cells > **threshold).count() as u64
    }
}

/// The CPU's device port: the configured one if it is a device port.
pub(crate) fn cpu_port(configured: u32, tofino2: bool) -> u32 {
    if configured < PORTS {
        configured
    } else {
        CPU_PORTS[usize::from(tofino2)]
    }
}

/// Whether a device port comes back in on every chip.
pub(crate) fn recirculates(port: u32) -> bool {
    RECIRCULATION.contains(&(port & 0x7f))
}

#[derive(Debug, Default)]
pub(crate) struct Fixed {
    pub(crate) pipes: Pipes,
    pub(crate) generator: Generator,
    tofino2: bool,
    port_metadata: BTreeMap<u32, Vec<u8>>,
    port_parsers: BTreeMap<u32, usize>,
    loopback: BTreeSet<u32>,
    sessions: BTreeMap<u32, MirrorSession>,
    trees: BTreeMap<u32, MulticastTree>,
    prunes: BTreeMap<u16, BTreeSet<u32>>,
    thresholds: Option<QueueThresholds>,
    deflection: Option<(u32, u8)>,
}

impl Fixed {
    pub(super) fn new(pipes: Pipes, tofino2: bool) -> Fixed {
        Fixed {
            pipes,
            generator: Generator::new(tofino2),
            tofino2,
            ..Fixed::default()
        }
    }

    pub(super) fn port_metadata(&self, port: u32) -> &[u8] {
        self.port_metadata.get(&port).map_or(&[], Vec::as_slice)
    }

    /// Which of a pipe's parsers a port has.
    pub(super) fn port_parser(&self, port: u32) -> usize {
        self.port_parsers.get(&port).copied().unwrap_or(0)
    }

    /// Whether what goes to the port comes back in.
    pub(super) fn loops(&self, port: u32) -> bool {
        recirculates(port) || self.loopback.contains(&port)
    }

    pub(super) fn is_port(&self, ports: &Ports, port: u32) -> bool {
        let named = match ports {
            Ports::Any => true,
            Ports::Only(ports) => ports.contains(&port),
        };
        port < PORTS && (named || self.loops(port) || port == CPU_PORTS[usize::from(self.tofino2)])
    }

    /// The CPU's device port: the configured one if it is a device port.
    pub(super) fn cpu_port(&self, configured: u32) -> u32 {
        cpu_port(configured, self.tofino2)
    }

    /// The device port of a port as its driver numbers it.
    pub(crate) fn port_of(&self, port: u32, cpu_port: u32) -> u32 {
        if port == cpu_port {
            self.cpu_port(cpu_port)
        } else {
            port
        }
    }

    /// The other way round.
    pub(super) fn outside(&self, port: u32, cpu_port: u32) -> u32 {
        if port == self.cpu_port(cpu_port) {
            cpu_port
        } else {
            port
        }
    }

    /// Congestion of a queue of that depth.
    pub(super) fn congestion(&self, cells: u64) -> u64 {
        self.thresholds.map_or(0, |t| t.congestion(cells))
    }

    /// Port and queue of what is deflected.
    pub(super) fn deflection(&self) -> Option<(u32, u8)> {
        self.deflection
    }

    pub(super) fn mirror_session(&self, id: u32) -> Option<&MirrorSession> {
        self.sessions.get(&id)
    }

    pub(super) fn tree(&self, id: u32) -> Option<&MulticastTree> {
        self.trees.get(&id)
    }

    /// Whether an L2 exclusion id keeps copies from the port.
    pub(super) fn prunes(&self, exclusion: u16, port: u32) -> bool {
        self.prunes
            .get(&exclusion)
            .is_some_and(|ports| ports.contains(&port))
    }
}

/// Puts a value, or takes one out.
fn put<K: Ord, V>(
    map: &mut BTreeMap<K, V>,
    key: K,
    value: Option<V>,
) -> Result<(), ReplicationError> {
    match value {
        Some(_) if map.len() >= LIMIT && !map.contains_key(&key) => Err(ReplicationError::Full),
        Some(value) => {
            map.insert(key, value);
            Ok(())
        }
        None => map.remove(&key).map(drop).ok_or(ReplicationError::NotFound),
    }
}

impl Switch {
    /// TNA: the bytes that packets from a port have behind their intrinsic metadata, cut or filled with zeroes.
    pub fn set_port_metadata(&mut self, port: u32, bytes: &[u8]) {
        let bytes = bytes.iter().take(24).copied().collect();
        self.core.tofino.port_metadata.insert(port, bytes);
    }

    /// TNA: which parser of a `MultiParserPipeline` a port's packets take.
    pub fn set_port_parser(&mut self, port: u32, parser: usize) {
        self.core.tofino.port_parsers.insert(port, parser);
    }

    /// TNA: ports whose packets come back in, besides the recirculation ports 68 … 71 of each pipe.
    pub fn set_loopback_ports(&mut self, ports: BTreeSet<u32>) {
        self.core.tofino.loopback = ports;
    }

    /// TNA: sets a mirror session, or takes it out. Session 0 is reserved.
    pub fn set_mirror_session(
        &mut self,
        id: u32,
        session: Option<MirrorSession>,
    ) -> Result<(), ReplicationError> {
        if id == 0 {
            return Err(ReplicationError::ZeroId);
        }
        put(&mut self.core.tofino.sessions, id, session)
    }

    /// TNA: sets a two-level multicast tree. It goes before a group of that number.
    pub fn set_multicast_tree(&mut self, tree: &MulticastTree) -> Result<(), ReplicationError> {
        if tree.id == 0 {
            return Err(ReplicationError::ZeroId);
        }
        put(
            &mut self.core.tofino.trees,
            tree.id.into(),
            Some(tree.clone()),
        )
    }

    /// TNA: takes a multicast tree out.
    pub fn delete_multicast_tree(&mut self, id: u16) -> Result<(), ReplicationError> {
        put(&mut self.core.tofino.trees, id.into(), None)
    }

    /// TNA: the ports that an L2 exclusion id keeps copies from.
    pub fn set_pruned_ports(&mut self, exclusion: u16, ports: BTreeSet<u32>) {
        self.core.tofino.prunes.insert(exclusion, ports);
    }

    /// TNA: the thresholds of every queue; `None`: nothing is refused for its colour, and no queue is congested. Depth in
    /// packets is [`crate::EgressQueues::depth`].
    pub fn set_queue_thresholds(&mut self, thresholds: Option<QueueThresholds>) {
        self.core.tofino.thresholds = thresholds;
    }

    /// TNA: port and queue of unicast packets whose `deflect_on_drop` is 1 and whose own queue refuses them; `None`: they
    /// are dropped.
    pub fn set_deflection(&mut self, to: Option<(u32, u8)>) {
        self.core.tofino.deflection = to;
    }

    /// TNA: writes bytes into the buffer of a pipe's packet generator (16 KiB) from an offset on, and sets one of its
    /// applications or, without one, stops it.
    ///
    /// # Errors
    /// After one nothing has changed.
    pub fn set_generator(
        &mut self,
        now_ns: u64,
        pipe: u32,
        buffer: (usize, &[u8]),
        app: u32,
        config: Option<GeneratorApp>,
    ) -> Result<(), GeneratorError> {
        let generator = &mut self.core.tofino.generator;
        generator.set(now_ns, pipe, buffer, app, config)
    }

    /// TNA: a port has gone down: starts what waits for it.
    pub fn port_down(&mut self, now_ns: u64, port: u32) {
        let core = &mut self.core;
        let generator = &mut core.tofino.generator;
        generator.port_down(&mut core.stats, now_ns, port);
    }

    /// TNA: a register's cell in one pipe. [`Switch::register_read`] reads pipe 0's, a write goes to all.
    pub fn register_read_pipe(
        &self,
        pipe: u32,
        name: &str,
        index: u64,
    ) -> Result<Vec<Value>, ExternError> {
        if pipe == 0 {
            return self.register_read(name, index);
        }
        let info = self.registers().iter().find(|r| r.name == name);
        let info = info.ok_or(ExternError::NotFound)?;
        let local = self.core.tofino.pipes.other(pipe).filter(|_| pipe < PIPES);
        let bank = local.and_then(|l| l.banks.get(info.bank as usize));
        info.read(bank.ok_or(ExternError::OutOfRange)?, index)
    }

    /// TNA: a counter's cell in one pipe. [`Switch::counter_read`] gives all pipes' sum.
    pub fn counter_read_pipe(
        &self,
        pipe: u32,
        name: &str,
        index: u64,
    ) -> Result<CounterValue, ExternError> {
        let counters = &self.core.state.counters;
        let counter = counters.iter().position(|c| c.name == name);
        let counter = counter.ok_or(ExternError::NotFound)?;
        let counters = match pipe {
            0 => counters,
            _ => {
                let local = self.core.tofino.pipes.other(pipe).filter(|_| pipe < PIPES);
                &local.ok_or(ExternError::OutOfRange)?.counters
            }
        };
        let cell = usize::try_from(index)
            .ok()
            .and_then(|i| counters.get(counter)?.cells.get(i));
        cell.copied().ok_or(ExternError::OutOfRange)
    }

    /// TNA: configures the cell that an entry has of a `DirectLpf` or `DirectWred`, in all pipes.
    ///
    /// # Errors
    /// [`ExternError::NotFound`]: no such filter, no table names it, or the table has no such entry.
    pub fn direct_filter_configure(
        &mut self,
        name: &str,
        entry: &TableEntry,
        config: Option<FilterConfig>,
        now_ns: u64,
    ) -> Result<(), ExternError> {
        let state = &mut self.core.state;
        let filter = state.filters.iter().find(|f| f.name == name);
        let direct = filter.and_then(|f| f.direct);
        let direct = direct.ok_or(ExternError::NotFound)?;
        let table = &mut state.tables[direct.table as usize];
        if table.spec.name != entry.table {
            return Err(ExternError::NotFound);
        }
        let words = cell_words(config, now_ns);
        let set = table.set_cell(entry, direct.offset, &words);
        set.map_err(|_| ExternError::NotFound)
    }

    /// TNA: configures a cell of an `Lpf` or `Wred` in all pipes.
    pub fn filter_configure(
        &mut self,
        name: &str,
        index: u64,
        config: Option<FilterConfig>,
        now_ns: u64,
    ) -> Result<(), ExternError> {
        let filters = &mut self.core.state.filters;
        let at = filters.iter().position(|f| f.name == name);
        let at = at.ok_or(ExternError::NotFound)?;
        filters[at]
            .configure(index, config, now_ns)
            .ok_or(ExternError::OutOfRange)?;
        for local in self.core.tofino.pipes.each() {
            local.filters[at]
                .configure(index, config, now_ns)
                .ok_or(ExternError::OutOfRange)?;
        }
        Ok(())
    }
}
