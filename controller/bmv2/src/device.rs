//! Controls a `psa_switch`: translates writes and reads of P4 objects by name into Thrift calls, and sends them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use p4rt::client::{Query, UpdateType};
use p4rt::translate::{CounterValue, Item};

use crate::program::Program;
use crate::thrift::{ActionEntry, KeyPart, Runtime, ThriftError};
use crate::translate::{self, Call, TranslateError};

/// Why a request to a `psa_switch` failed.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The switch refused the request, or did not answer.
    #[error(transparent)]
    Thrift(#[from] ThriftError),
    /// The request cannot be translated to Thrift calls, as `psa_switch` or its P4 program does not support it.
    #[error(transparent)]
    Translate(Box<TranslateError>),
    /// The table entry, multicast group or clone session was not written through this device, so its BMv2 handle is unknown.
    #[error("nothing was written that could be changed: {0}")]
    NotWritten(String),
    /// The switch runs another program, and cannot load a new one.
    #[error(
        "the switch at {address} was started with another program; start psa_switch with the JSON that p4c-bm2-psa made of \
         this one, or with `-- --enable-swap` behind its options"
    )]
    OtherProgram {
        /// Address of the switch, `host:port`.
        address: SocketAddr,
    },
}

impl From<TranslateError> for DeviceError {
    fn from(error: TranslateError) -> DeviceError {
        DeviceError::Translate(Box::new(error))
    }
}

type Result<T> = std::result::Result<T, DeviceError>;
type EntryId = (String, Vec<KeyPart>, Option<i32>);

/// A connection to a `psa_switch`, with the P4 program that runs there.
pub struct Device {
    runtime: Runtime,
    program: Program,
    /// Handle (BMv2's own number) of each table entry that was written through this device.
    entries: BTreeMap<EntryId, i32>,
    /// By number of the multicast group: BMv2's handle of the group, and the handles of its nodes.
    groups: BTreeMap<u32, (i32, Vec<i32>)>,
}

impl Device {
    /// Connects to a switch that already runs `program`; `timeout` limits the wait for the switch and for each of its answers.
    pub fn connect(address: SocketAddr, timeout: Duration, program: Program) -> Result<Device> {
        Ok(Device {
            runtime: Runtime::connect(address, timeout)?,
            program,
            entries: BTreeMap::new(),
            groups: BTreeMap::new(),
        })
    }

    /// Address of the switch's Thrift server, `host:port`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.runtime.address()
    }

    /// The P4 program that runs on the switch.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Makes sure that the switch runs this program: if it runs another one, loads `json` in its place, or fails if the switch
    /// does not allow that.
    pub fn load(&mut self, json: &str, program: Program) -> Result<()> {
        let same = normalized(&self.runtime.config()?) == normalized(json);
        if !same {
            match self
                .runtime
                .load_config(json)
                .and_then(|()| self.runtime.swap())
            {
                Ok(()) => {}
                Err(ThriftError::Refused { address, .. }) => {
                    return Err(DeviceError::OtherProgram { address });
                }
                Err(error) => return Err(error.into()),
            }
            self.entries.clear();
            self.groups.clear();
        }
        self.program = program;
        Ok(())
    }

    /// Applies updates in order, and stops at the first error; returns the index of the failed update, from 0, with the error.
    pub fn write(
        &mut self,
        updates: &[(UpdateType, Item)],
    ) -> std::result::Result<(), (usize, DeviceError)> {
        for (position, (update, item)) in updates.iter().enumerate() {
            self.update(*update, item)
                .map_err(|error| (position, error))?;
        }
        Ok(())
    }

    /// Time on the clock by which the switch stamps packets, in microseconds since the switch started.
    pub fn elapsed_us(&mut self) -> Result<u64> {
        Ok(self.runtime.elapsed_us()?)
    }

    fn update(&mut self, update: UpdateType, item: &Item) -> Result<()> {
        for call in translate::calls(&self.program, update, item)? {
            self.carry_out(call)?;
        }
        Ok(())
    }

    fn carry_out(&mut self, call: Call) -> Result<()> {
        let runtime = &mut self.runtime;
        match call {
            Call::AddEntry {
                table,
                key,
                priority,
                action,
                data,
            } => {
                let handle = runtime.add_entry(&table, &key, &action, &data, priority)?;
                self.entries.insert((table, key, priority), handle);
            }
            Call::ModifyEntry {
                table,
                key,
                priority,
                action,
                data,
            } => {
                let handle = handle(&self.entries, &table, &key, priority)?;
                runtime.modify_entry(&table, handle, &action, &data)?;
            }
            Call::DeleteEntry {
                table,
                key,
                priority,
            } => {
                let handle = handle(&self.entries, &table, &key, priority)?;
                runtime.delete_entry(&table, handle)?;
                self.entries.remove(&(table, key, priority));
            }
            Call::SetDefault {
                table,
                action,
                data,
            } => runtime.set_default(&table, &action, &data)?,
            Call::ResetDefault { table } => runtime.reset_default(&table)?,
            Call::CreateGroup { group, nodes } => {
                let id = runtime.create_multicast_group(group.cast_signed())?;
                let (_, own) = self.groups.entry(group).or_insert((id, Vec::new()));
                for node in nodes {
                    let instance = i32::from(node.instance);
                    let node = runtime.create_multicast_node(instance, &node.ports)?;
                    own.push(node);
                    runtime.associate_multicast_node(id, node)?;
                }
            }
            Call::DeleteGroup { group } => {
                let Some((id, nodes)) = self.groups.remove(&group) else {
                    return Err(DeviceError::NotWritten(format!("group {group}")));
                };
                for node in nodes {
                    runtime.dissociate_multicast_node(id, node)?;
                    runtime.destroy_multicast_node(node)?;
                }
                runtime.destroy_multicast_group(id)?;
            }
            Call::SetMirror { session, to } => runtime.set_mirror(session.cast_signed(), to)?,
            Call::DeleteMirror { session } => {
                runtime.delete_mirror(session.cast_signed())?;
                let group = translate::FIRST_MIRROR_GROUP + session;
                if self.groups.contains_key(&group) {
                    self.carry_out(Call::DeleteGroup { group })?;
                }
            }
            Call::WriteRegister {
                register,
                index,
                value,
            } => runtime.write_register(&register, cell(index), value)?,
            Call::FillRegister {
                register,
                size,
                value,
            } => runtime.write_register_range(&register, 0, cell(size.into()), value)?,
            Call::WriteCounter {
                counter,
                index,
                value,
            } => runtime.write_counter(&counter, cell(index), value)?,
        }
        Ok(())
    }

    /// Reads the table entries, register cells and other P4 objects that match the queries.
    pub fn read(&mut self, queries: &[Query]) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for query in queries {
            self.answer(query, &mut items)?;
        }
        Ok(items)
    }

    fn answer(&mut self, query: &Query, items: &mut Vec<Item>) -> Result<()> {
        match query {
            Query::Entries { table } => {
                let tables: Vec<String> = match table {
                    Some(table) => vec![table.clone()],
                    None => self.program.tables.keys().cloned().collect(),
                };
                for table in tables {
                    translate::find_table(&self.program, &table)?;
                    for raw in self.runtime.entries(&table)? {
                        let entry = translate::entry(&self.program, &table, &raw)?;
                        items.push(Item::TableEntry(entry));
                    }
                }
            }
            Query::DefaultAction { table } => {
                translate::find_table(&self.program, table)?;
                let action = match self.runtime.default_entry(table)? {
                    ActionEntry::Action(name, data) => {
                        translate::action_call(&self.program, &name, &data)
                    }
                    _ => None,
                };
                let table = table.clone();
                items.push(Item::DefaultAction { table, action });
            }
            Query::Register { name, index } => {
                let declared = translate::find_register(&self.program, name)?;
                let bits = u64::MAX >> (64 - declared.width.clamp(1, 64));
                let (first, values) = match index {
                    Some(index) => (
                        *index,
                        vec![self.runtime.read_register(name, cell(*index))?],
                    ),
                    None => (0, self.runtime.read_register_whole(name)?),
                };
                for (index, value) in (first..).zip(values) {
                    items.push(Item::Register {
                        name: name.clone(),
                        index: Some(index),
                        fields: vec![u128::from(value.cast_unsigned() & bits).into()],
                    });
                }
            }
            Query::Counter { name, index } => {
                let Some(size) = self.program.counters.get(name) else {
                    let (kind, name) = ("counter", name.clone());
                    return Err(TranslateError::Unknown { kind, name }.into());
                };
                let cells = index.map_or(0..u64::from(*size), |index| index..index + 1);
                for index in cells {
                    let counts = self.runtime.read_counter(name, cell(index))?;
                    items.push(Item::Counter {
                        name: name.clone(),
                        index: Some(index),
                        value: Some(CounterValue {
                            packets: counts.packets.cast_unsigned(),
                            bytes: counts.bytes.cast_unsigned(),
                        }),
                    });
                }
            }
            Query::MulticastGroups { .. } | Query::CloneSessions { .. } => {
                let what = "way to read groups and sessions back by number";
                return Err(TranslateError::Unsupported(what.to_owned()).into());
            }
            Query::Meter { .. }
            | Query::DirectCounters { .. }
            | Query::DirectMeters { .. }
            | Query::Members { .. }
            | Query::Groups { .. }
            | Query::ValueSet { .. }
            | Query::Digest { .. } => {
                let what = "way to read meters, direct counters, action profiles, value sets and digests that weir uses";
                return Err(TranslateError::Unsupported(what.to_owned()).into());
            }
        }
        Ok(())
    }
}

/// Converts a cell's index to Thrift's `i32`. A larger index becomes the maximum, which the switch refuses.
fn cell(index: u64) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}

fn handle(
    entries: &BTreeMap<EntryId, i32>,
    table: &str,
    key: &[KeyPart],
    priority: Option<i32>,
) -> Result<i32> {
    let id = (table.to_owned(), key.to_vec(), priority);
    let missing =
        || DeviceError::NotWritten(format!("an entry of {table} with the key {key:02x?}"));
    entries.get(&id).copied().ok_or_else(missing)
}

/// Parses a program's JSON, to compare two programs: the switch may reformat the text. `None` if it is not JSON.
fn normalized(json: &str) -> Option<serde_json::Value> {
    serde_json::from_str(json).ok()
}
