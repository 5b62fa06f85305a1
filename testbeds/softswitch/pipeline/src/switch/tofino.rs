//! Control plane operations of a Tofino other than those on the program's objects, and reads of individual pipes.

use super::Switch;
use crate::arch::tofino::packet_generator::GeneratorApp;
use crate::arch::tofino::{MirrorSession, MulticastTree, QueueThresholds, put};
use crate::error::{ExternError, GeneratorError, ReplicationError};
use crate::externs::counter::CounterValue;
use crate::externs::filter::{FilterConfig, cell_words};
use crate::port_numbers::PIPES;
use p4lang::runtime::{TableEntry, Value};
use std::collections::BTreeSet;

impl Switch {
    /// TNA: sets the port metadata, the bytes after the intrinsic metadata of packets from a port; cut or padded with zeroes.
    pub fn set_port_metadata(&mut self, port: u32, bytes: &[u8]) {
        let bytes = bytes.iter().take(24).copied().collect();
        self.core.tofino.port_metadata.insert(port, bytes);
    }

    /// TNA: sets the ports in loopback, whose packets return to ingress, besides recirculation ports 68 … 71 of each pipe.
    pub fn set_loopback_ports(&mut self, ports: BTreeSet<u32>) {
        self.core.tofino.loopback = ports;
    }

    /// TNA: sets a mirror session, or removes it for `None`. Session 0 is reserved.
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

    /// TNA: sets a two-level multicast tree. It takes precedence over a multicast group with the same number.
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

    /// TNA: removes the multicast tree with this number.
    pub fn delete_multicast_tree(&mut self, id: u16) -> Result<(), ReplicationError> {
        put(&mut self.core.tofino.trees, id.into(), None)
    }

    /// TNA: sets the ports to which packets with this L2 exclusion id are not copied.
    pub fn set_pruned_ports(&mut self, exclusion: u16, ports: BTreeSet<u32>) {
        self.core.tofino.prunes.insert(exclusion, ports);
    }

    /// TNA: sets the thresholds of every queue; `None`: no queue refuses a packet for its color, or counts as congested.
    /// [`crate::EgressQueues::depth`] limits queues in packets.
    pub fn set_queue_thresholds(&mut self, thresholds: Option<QueueThresholds>) {
        self.core.tofino.thresholds = thresholds;
    }

    /// TNA: sets the port and queue for unicast packets whose `deflect_on_drop` is 1 and whose own queue refuses them; `None`:
    /// they are dropped.
    pub fn set_deflection(&mut self, to: Option<(u32, u8)>) {
        self.core.tofino.deflection = to;
    }

    /// TNA: writes bytes into the buffer of a pipe's packet generator (16 KiB) from an offset on, and sets an application of
    /// the generator; `None` stops the application.
    ///
    /// # Errors
    /// After an error nothing has changed.
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

    /// TNA: handles a port that went down: starts the generator's applications that wait for this.
    pub fn port_down(&mut self, now_ns: u64, port: u32) {
        let core = &mut self.core;
        let generator = &mut core.tofino.generator;
        generator.port_down(&mut core.stats, now_ns, port);
    }

    /// TNA: reads a register's cell in one pipe. [`Switch::register_read`] reads the cell of pipe 0; a write goes to all pipes.
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

    /// TNA: reads a counter's cell in one pipe. [`Switch::counter_read`] returns the sum over all pipes.
    pub fn counter_read_pipe(
        &self,
        pipe: u32,
        name: &str,
        index: u64,
    ) -> Result<CounterValue, ExternError> {
        let counters = &self.core.state.cells.counters;
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

    /// TNA: configures the cell of a `DirectLpf` or `DirectWred` for a table entry, in all pipes.
    ///
    /// # Errors
    /// [`ExternError::NotFound`]: the filter does not exist, no table names it, or the table has no such entry.
    pub fn direct_filter_configure(
        &mut self,
        name: &str,
        entry: &TableEntry,
        config: Option<FilterConfig>,
        now_ns: u64,
    ) -> Result<(), ExternError> {
        let state = &mut self.core.state;
        let filter = state.cells.filters.iter().find(|f| f.name == name);
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

    /// TNA: configures a cell of an indexed `Lpf` or `Wred` in all pipes.
    pub fn filter_configure(
        &mut self,
        name: &str,
        index: u64,
        config: Option<FilterConfig>,
        now_ns: u64,
    ) -> Result<(), ExternError> {
        let filters = &mut self.core.state.cells.filters;
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
