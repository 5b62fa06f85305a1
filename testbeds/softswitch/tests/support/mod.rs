//! A data plane in 200 lines, to test server and packet loop without a compiler: it forwards by destination MAC.
#![allow(dead_code)]

use p4lang::p4info::*;
use p4lang::runtime::*;
use p4rt::rpc::Code;
use p4rt::status::{UpdateError, UpdateResult};
use p4rt::translate::CounterValue;
use softswitch::dataplane::{Dataplane, LoadError, Loader, Program, Transmit};
use softswitch::instance::{Config, Instance, start};
use softswitch::ports::PortIo;
use softswitch::ports::memory::{MemoryLink, link};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

pub const DEVICE: u64 = 7;
pub const CPU_PORT: u32 = 510;
pub const TABLE_SIZE: i64 = 8;
/// The device config that [`FakeLoader`] takes.
pub const PROGRAM: &[u8] = b"forward by destination";

pub fn p4info() -> P4Info {
    let preamble = |id, name: &str| Preamble {
        id,
        name: name.into(),
        alias: name.rsplit('.').next().unwrap().into(),
        ..Preamble::default()
    };
    let key = |id, name: &str, bitwidth, match_type| MatchField {
        id,
        name: name.into(),
        bitwidth,
        match_type,
        annotations: vec![],
        structured: vec![],
        type_name: None,
    };
    let table = |id, name: &str, match_fields, is_const_table| Table {
        preamble: preamble(id, name),
        match_fields,
        action_refs: [0x0100_0001, 0x0100_0002]
            .map(|id| ActionRef {
                id,
                scope: ActionScope::TableAndDefault,
                annotations: vec![],
                structured: vec![],
            })
            .to_vec(),
        const_default_action_id: if is_const_table { 0x0100_0002 } else { 0 },
        initial_default_action_id: 0x0100_0002,
        initial_default_args: vec![],
        implementation_id: 0,
        direct_resource_ids: vec![],
        size: TABLE_SIZE,
        is_const_table,
        has_initial_entries: false,
        idle_timeout: false,
    };
    let param = Param {
        id: 1,
        name: "port".into(),
        bitwidth: 9,
        annotations: vec![],
        structured: vec![],
        type_name: None,
    };
    let field = |name: &str, bitwidth| ElementField {
        name: name.into(),
        bitwidth,
        signed: false,
        boolean: false,
    };
    let header = |id, name: &str, field: &str| ControllerPacketMetadata {
        preamble: preamble(id, name),
        metadata: vec![
            PacketMetadata {
                id: 1,
                name: field.into(),
                bitwidth: 9,
                annotations: vec![],
                type_name: None,
            },
            PacketMetadata {
                id: 2,
                name: "padding".into(),
                bitwidth: 7,
                annotations: vec![],
                type_name: None,
            },
        ],
    };
    P4Info {
        arch: "v1model".into(),
        tables: vec![
            table(
                0x0200_0001,
                "Ingress.forward",
                vec![key(1, "dst", 48, MatchType::Exact)],
                false,
            ),
            table(
                0x0200_0002,
                "Ingress.acl",
                vec![key(1, "src", 48, MatchType::Ternary)],
                false,
            ),
            table(
                0x0200_0003,
                "Ingress.fixed",
                vec![key(1, "dst", 48, MatchType::Exact)],
                true,
            ),
        ],
        actions: vec![
            Action {
                preamble: preamble(0x0100_0001, "Ingress.send"),
                params: vec![param],
            },
            Action {
                preamble: preamble(0x0100_0002, "Ingress.drop"),
                params: vec![],
            },
        ],
        counters: vec![Counter {
            preamble: preamble(0x1200_0001, "Ingress.fired"),
            unit: Unit::Both,
            size: 4,
            index_type: None,
        }],
        registers: vec![Register {
            preamble: preamble(0x1600_0001, "Ingress.cells"),
            element: vec![field("sum", 32), field("bitmap", 8)],
            struct_name: Some("cell_t".into()),
            size: 4,
            data_type: None,
            index_type: None,
        }],
        controller_packet_metadata: vec![
            header(0x0400_0001, "packet_in", "ingress_port"),
            header(0x0400_0002, "packet_out", "egress_port"),
        ],
        ..P4Info::default()
    }
}

pub struct FakeLoader;

impl Loader for FakeLoader {
    fn load(&self, device_config: &[u8]) -> Result<Program, LoadError> {
        match device_config == PROGRAM {
            true => Ok(program()),
            false => Err(LoadError("error: expected a program".into())),
        }
    }
}

pub fn program() -> Program {
    Program {
        p4info: p4info(),
        dataplane: Box::new(Fake::default()),
    }
}

#[derive(Clone, Default)]
struct Fake {
    before: Option<Box<Fake>>,
    entries: Vec<TableEntry>,
    defaults: BTreeMap<String, ActionCall>,
    groups: BTreeMap<u32, MulticastGroup>,
    sessions: BTreeMap<u32, CloneSession>,
    cells: BTreeMap<u64, Vec<u128>>,
    counters: BTreeMap<u64, CounterValue>,
    transmits: VecDeque<Transmit>,
    dropped: u64,
}

impl Fake {
    fn position(&self, entry: &TableEntry) -> Option<usize> {
        let id = |entry: &TableEntry| (entry.table.clone(), entry.key.clone(), entry.priority);
        self.entries.iter().position(|other| id(other) == id(entry))
    }

    fn found(&self, entry: &TableEntry) -> Result<usize, UpdateError> {
        self.position(entry)
            .ok_or_else(|| UpdateError::new(Code::NotFound, "no such entry"))
    }
}

fn drop_action() -> ActionCall {
    ActionCall {
        name: "Ingress.drop".into(),
        params: vec![],
    }
}

impl Dataplane for Fake {
    fn handle_packet(&mut self, _: u64, port: u32, frame: &[u8]) {
        if port == CPU_PORT {
            let egress = u32::from(frame[0]) << 1 | u32::from(frame[1] >> 7);
            self.transmits.push_back(Transmit {
                port: egress,
                frame: frame[2..].to_vec(),
            });
            return;
        }
        let Some(dst) = frame.get(..6) else {
            self.dropped += 1;
            return;
        };
        let dst = dst
            .iter()
            .fold(0u128, |value, &byte| value << 8 | u128::from(byte));
        if dst == 0xffff_ffff_ffff {
            let copies = self
                .groups
                .get(&1)
                .into_iter()
                .flat_map(|group| &group.replicas);
            self.transmits.extend(copies.map(|copy| Transmit {
                port: copy.port,
                frame: frame.to_vec(),
            }));
            return;
        }
        let matches = |entry: &&TableEntry| {
            entry.table == "Ingress.forward" && entry.key[0].value == Match::Exact(dst)
        };
        let action = self.entries.iter().find(matches).map(|entry| &entry.action);
        match action
            .or(self.defaults.get("Ingress.forward"))
            .and_then(|action| action.params.first())
        {
            Some((_, to)) if *to == u128::from(CPU_PORT) => {
                let mut packet = vec![(port >> 1) as u8, ((port & 1) << 7) as u8];
                packet.extend_from_slice(frame);
                self.transmits.push_back(Transmit {
                    port: CPU_PORT,
                    frame: packet,
                });
            }
            Some((_, to)) => self.transmits.push_back(Transmit {
                port: *to as u32,
                frame: frame.to_vec(),
            }),
            None => self.dropped += 1,
        }
    }
    fn handle_timeout(&mut self, _: u64) {}
    fn poll_timeout(&self) -> Option<u64> {
        None
    }
    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }
    fn drops(&self) -> Vec<(String, u64)> {
        vec![("program".into(), self.dropped)]
    }
    fn begin(&mut self) {
        self.before = Some(Box::new(self.clone()));
    }
    fn commit(&mut self) {
        self.before = None;
    }
    fn rollback(&mut self) {
        *self = *self.before.take().expect("begun");
    }
    fn insert_entry(&mut self, entry: &TableEntry) -> UpdateResult {
        if self.position(entry).is_some() {
            return Err(UpdateError::new(
                Code::AlreadyExists,
                "there is such an entry",
            ));
        }
        if self
            .entries
            .iter()
            .filter(|other| other.table == entry.table)
            .count()
            >= TABLE_SIZE as usize
        {
            return Err(UpdateError::new(
                Code::ResourceExhausted,
                "the table is full",
            ));
        }
        self.entries.push(entry.clone());
        Ok(())
    }
    fn modify_entry(&mut self, entry: &TableEntry) -> UpdateResult {
        let position = self.found(entry)?;
        self.entries[position] = entry.clone();
        Ok(())
    }
    fn delete_entry(&mut self, entry: &TableEntry) -> UpdateResult {
        let position = self.found(entry)?;
        self.entries.remove(position);
        Ok(())
    }
    fn entries(&self, table: &str) -> Vec<TableEntry> {
        self.entries
            .iter()
            .filter(|entry| entry.table == table)
            .cloned()
            .collect()
    }
    fn entry(&self, entry: &TableEntry) -> Option<TableEntry> {
        self.position(entry)
            .map(|position| self.entries[position].clone())
    }
    fn set_default_action(&mut self, table: &str, action: Option<&ActionCall>) -> UpdateResult {
        match action {
            Some(action) => self.defaults.insert(table.into(), action.clone()),
            None => self.defaults.remove(table),
        };
        Ok(())
    }
    fn default_action(&self, table: &str) -> Option<ActionCall> {
        Some(
            self.defaults
                .get(table)
                .cloned()
                .unwrap_or_else(drop_action),
        )
    }
    fn set_multicast_group(&mut self, group: &MulticastGroup) -> UpdateResult {
        self.groups.insert(group.id, group.clone());
        Ok(())
    }
    fn remove_multicast_group(&mut self, id: u32) -> UpdateResult {
        self.groups.remove(&id);
        Ok(())
    }
    fn multicast_group(&self, id: u32) -> Option<MulticastGroup> {
        self.groups.get(&id).cloned()
    }
    fn multicast_groups(&self) -> Vec<MulticastGroup> {
        self.groups.values().cloned().collect()
    }
    fn set_clone_session(&mut self, session: &CloneSession) -> UpdateResult {
        self.sessions.insert(session.id, session.clone());
        Ok(())
    }
    fn remove_clone_session(&mut self, id: u32) -> UpdateResult {
        self.sessions.remove(&id);
        Ok(())
    }
    fn clone_session(&self, id: u32) -> Option<CloneSession> {
        self.sessions.get(&id).cloned()
    }
    fn clone_sessions(&self) -> Vec<CloneSession> {
        self.sessions.values().cloned().collect()
    }
    fn read_register(&self, _: &str, index: u64) -> Result<Vec<u128>, UpdateError> {
        Ok(self
            .cells
            .get(&index)
            .cloned()
            .unwrap_or_else(|| vec![0, 0]))
    }
    fn write_register(&mut self, _: &str, index: u64, fields: &[u128]) -> UpdateResult {
        self.cells.insert(index, fields.to_vec());
        Ok(())
    }
    fn read_counter(&self, _: &str, index: u64) -> Result<CounterValue, UpdateError> {
        Ok(self.counters.get(&index).copied().unwrap_or_default())
    }
    fn write_counter(&mut self, _: &str, index: u64, value: CounterValue) -> UpdateResult {
        self.counters.insert(index, value);
        Ok(())
    }
}

/// A switch with two in-memory ports, 1 and 2, and their other ends.
pub fn switch(program: Option<Program>) -> (Instance, MemoryLink, MemoryLink) {
    let (port1, link1) = link("one").unwrap();
    let (port2, link2) = link("two").unwrap();
    let ports: Vec<(u32, Box<dyn PortIo>)> = vec![(1, Box::new(port1)), (2, Box::new(port2))];
    let config = Config {
        device_id: DEVICE,
        cpu_port: CPU_PORT,
        ports,
        loader: Arc::new(FakeLoader),
        program: program.map(|program| (program, PROGRAM.to_vec())),
        grpc: "127.0.0.1:0".parse().unwrap(),
    };
    (start(config).unwrap(), link1, link2)
}
