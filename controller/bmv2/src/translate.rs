//! Translates writes of table entries, multicast groups, clone sessions and register cells into calls to `psa_switch`.
//!
//! Requests that the switch does not support are refused here, with the names that the caller used.

mod keys;

use p4lang::runtime::{
    ActionCall, CloneSession, FieldMatch, Match, MulticastGroup, Replica, TableEntry, Value,
};
use p4rt::client::UpdateType;
use p4rt::translate::Item;

use crate::program::{MatchKind, Parameter, Program, Table};
use crate::thrift::{ActionEntry, Counts, KeyPart, Mirror, RawEntry};
use keys::{encode, field_match, key, priority};

/// Highest port of a multicast copy in BMv2: its multicast engine has 512 ports, whatever the width of PSA's `PortId_t`.
pub const LAST_MULTICAST_PORT: u32 = 511;
/// Number of the first multicast group that weir reserves for clone sessions with several copies; BMv2 has 4,096 groups.
pub const FIRST_MIRROR_GROUP: u32 = 2048;
/// Highest number of a clone session: number n uses the multicast group `FIRST_MIRROR_GROUP` + n if it has several copies.
pub const LAST_MIRROR_SESSION: u32 = 2047;

/// Why a request cannot be translated to calls for `psa_switch`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranslateError {
    /// The program has no table, action, register or counter of the requested name.
    #[error("the program has no {kind} `{name}`")]
    Unknown {
        /// Kind of the requested P4 object: `table`, `action` …
        kind: &'static str,
        /// Name of the requested P4 object.
        name: String,
    },
    /// The request has a key field that the table does not have.
    #[error("table {table} has no key field `{field}`; it has {}", .fields.join(", "))]
    Field {
        /// Name of the table.
        table: String,
        /// Name of the requested key field.
        field: String,
        /// Names of the table's key fields.
        fields: Vec<String>,
    },
    /// The request matches a key field by another kind than the table does.
    #[error("table {table}: {field} is matched {expected:?}, not by {given:?}")]
    Kind {
        /// Name of the table.
        table: String,
        /// Name of the key field.
        field: String,
        /// Match kind of the field in the program.
        expected: MatchKind,
        /// The match in the request.
        given: Match,
    },
    /// The request has no value for a key field with an exact match.
    #[error("table {table}: {field} is matched exactly, so an entry has to say its value")]
    Missing {
        /// Name of the table.
        table: String,
        /// Name of the key field.
        field: String,
    },
    /// The request gives other parameters than the action has.
    #[error("action {action} takes ({}), not ({})", .expected.join(", "), .given.join(", "))]
    Parameters {
        /// Name of the action.
        action: String,
        /// Names of the action's parameters in the program.
        expected: Vec<String>,
        /// Names of the parameters in the request.
        given: Vec<String>,
    },
    /// The request has a value that is too wide for its field or parameter.
    #[error("{what}: {value:#x} does not fit into {width} bits")]
    Width {
        /// Name of the key field or action parameter.
        what: String,
        /// The value in the request.
        value: Value,
        /// Width of the key field or action parameter in bits.
        width: u32,
    },
    /// The request has a multicast copy to a port above [`LAST_MULTICAST_PORT`].
    #[error("{what}: psa_switch makes multicast copies to the ports 0 to {LAST_MULTICAST_PORT} only, not to {port:#x}{}",
        if *port == RECIRCULATE { " (recirculation): duplicates need another target" } else { "" })]
    Port {
        /// Name of the multicast group or clone session.
        what: String,
        /// The port to which the copy would go.
        port: u32,
    },
    /// `psa_switch` does not support the request; the text says which feature it lacks.
    #[error("psa_switch has no {0}")]
    Unsupported(String),
    /// The switch returned a table entry that contradicts its program.
    #[error("table {table}: the switch has an entry that the program does not explain: {what}")]
    Answer {
        /// Name of the table.
        table: String,
        /// How the entry contradicts the program.
        what: String,
    },
}

const RECIRCULATE: u32 = 0xFFFF_FFFA;

/// A node of a multicast group: one copy to each of its ports, all with the same instance number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Instance number of the copies, which the egress pipeline can read.
    pub instance: u16,
    /// Ports that receive a copy.
    pub ports: Vec<u32>,
}

/// A Thrift call to the switch, with the keys of table entries and the numbers of multicast groups. [`crate::device`] replaces
/// keys and numbers by BMv2's handles.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // The fields are those of the calls in `thrift::Runtime`.
pub enum Call {
    AddEntry {
        table: String,
        key: Vec<KeyPart>,
        priority: Option<i32>,
        action: String,
        data: Vec<Vec<u8>>,
    },
    ModifyEntry {
        table: String,
        key: Vec<KeyPart>,
        priority: Option<i32>,
        action: String,
        data: Vec<Vec<u8>>,
    },
    DeleteEntry {
        table: String,
        key: Vec<KeyPart>,
        priority: Option<i32>,
    },
    SetDefault {
        table: String,
        action: String,
        data: Vec<Vec<u8>>,
    },
    ResetDefault {
        table: String,
    },
    CreateGroup {
        group: u32,
        nodes: Vec<Node>,
    },
    DeleteGroup {
        group: u32,
    },
    SetMirror {
        session: u32,
        to: Mirror,
    },
    DeleteMirror {
        session: u32,
    },
    WriteRegister {
        register: String,
        index: u64,
        value: i64,
    },
    FillRegister {
        register: String,
        size: u32,
        value: i64,
    },
    WriteCounter {
        counter: String,
        index: u64,
        value: Counts,
    },
}

type Result<T> = std::result::Result<T, TranslateError>;

/// Translates the update of one P4 object into calls to the switch; their order matters.
pub fn calls(program: &Program, update: UpdateType, item: &Item) -> Result<Vec<Call>> {
    match item {
        Item::TableEntry(entry) => Ok(vec![table_entry(program, update, entry)?]),
        Item::DefaultAction { table, action } => {
            find_table(program, table)?;
            let table = table.clone();
            Ok(vec![match action {
                None => Call::ResetDefault { table },
                Some(call) => {
                    let (action, data) = action_data(program, call)?;
                    Call::SetDefault {
                        table,
                        action,
                        data,
                    }
                }
            }])
        }
        Item::MulticastGroup(group) => multicast(update, group),
        Item::CloneSession(session) => clone_session(update, session),
        Item::Register {
            name,
            index,
            fields,
        } => Ok(vec![register(program, name, *index, fields)?]),
        Item::Counter { name, index, value } => {
            let size = *program
                .counters
                .get(name)
                .ok_or_else(|| unknown("counter", name))?;
            let value = value.unwrap_or_default();
            let value = Counts {
                bytes: value.bytes.cast_signed(),
                packets: value.packets.cast_signed(),
            };
            let cells = index.map_or(0..u64::from(size), |index| index..index + 1);
            let call = |index| Call::WriteCounter {
                counter: name.clone(),
                index,
                value,
            };
            Ok(cells.map(call).collect())
        }
        Item::IndirectEntry { .. } | Item::Member { .. } | Item::Group { .. } => {
            unsupported("action profiles")
        }
        Item::NotedEntry { .. } => unsupported("entries with notes"),
        Item::Meter { .. } | Item::DirectMeter { .. } => unsupported("meters"),
        Item::DirectCounter { .. } => unsupported("direct counters"),
        Item::ValueSet { .. } => unsupported("value sets"),
        Item::Digest { .. } => unsupported("digests"),
    }
}

fn unsupported(kind: &str) -> Result<Vec<Call>> {
    let what = format!("way to write {kind} that weir uses");
    Err(TranslateError::Unsupported(what))
}

fn unknown(kind: &'static str, name: &str) -> TranslateError {
    TranslateError::Unknown {
        kind,
        name: name.to_owned(),
    }
}

pub(crate) fn find_table<'a>(program: &'a Program, name: &str) -> Result<&'a Table> {
    program
        .tables
        .get(name)
        .ok_or_else(|| unknown("table", name))
}

fn table_entry(program: &Program, update: UpdateType, entry: &TableEntry) -> Result<Call> {
    let declared = find_table(program, &entry.table)?;
    if declared.indirect {
        let what = format!(
            "way to write an action into table {}: its entries name members of an action profile",
            entry.table
        );
        return Err(TranslateError::Unsupported(what));
    }
    let table = entry.table.clone();
    let key = key(&table, declared, &entry.key)?;
    let priority = declared.has_priority().then(|| priority(entry.priority));
    if update == UpdateType::Delete {
        return Ok(Call::DeleteEntry {
            table,
            key,
            priority,
        });
    }
    let (action, data) = action_data(program, &entry.action)?;
    Ok(if update == UpdateType::Modify {
        Call::ModifyEntry {
            table,
            key,
            priority,
            action,
            data,
        }
    } else {
        Call::AddEntry {
            table,
            key,
            priority,
            action,
            data,
        }
    })
}

fn action_data(program: &Program, call: &ActionCall) -> Result<(String, Vec<Vec<u8>>)> {
    let declared = program
        .actions
        .get(&call.name)
        .ok_or_else(|| unknown("action", &call.name))?;
    let value = |parameter: &Parameter| {
        let given = call.params.iter().find(|(name, _)| *name == parameter.name);
        given.map(|(_, value)| encode(&parameter.name, value, parameter.width))
    };
    let data: Option<Vec<_>> = declared.iter().map(value).collect();
    match data {
        Some(data) if call.params.len() == declared.len() => {
            Ok((call.name.clone(), data.into_iter().collect::<Result<_>>()?))
        }
        _ => Err(TranslateError::Parameters {
            action: call.name.clone(),
            expected: declared.iter().map(|own| own.name.clone()).collect(),
            given: call.params.iter().map(|(name, _)| name.clone()).collect(),
        }),
    }
}

fn nodes(what: &str, replicas: &[Replica]) -> Result<Vec<Node>> {
    let mut nodes: Vec<Node> = Vec::new();
    for replica in replicas {
        if replica.port > LAST_MULTICAST_PORT {
            return Err(TranslateError::Port {
                what: what.to_owned(),
                port: replica.port,
            });
        }
        // A node makes one copy at each of its ports.
        let fitting = nodes
            .iter_mut()
            .find(|node| node.instance == replica.instance && !node.ports.contains(&replica.port));
        match fitting {
            Some(node) => node.ports.push(replica.port),
            None => nodes.push(Node {
                instance: replica.instance,
                ports: vec![replica.port],
            }),
        }
    }
    Ok(nodes)
}

fn multicast(update: UpdateType, group: &MulticastGroup) -> Result<Vec<Call>> {
    let id = group.id;
    if id >= FIRST_MIRROR_GROUP {
        let what = format!(
            "multicast group {id}: weir uses those from {FIRST_MIRROR_GROUP} on for clone sessions"
        );
        return Err(TranslateError::Unsupported(what));
    }
    replace_group(
        &format!("multicast group {id}"),
        update,
        id,
        &group.replicas,
    )
}

fn replace_group(
    what: &str,
    update: UpdateType,
    group: u32,
    replicas: &[Replica],
) -> Result<Vec<Call>> {
    let mut calls = Vec::new();
    if update != UpdateType::Insert {
        calls.push(Call::DeleteGroup { group });
    }
    if update != UpdateType::Delete {
        let nodes = nodes(what, replicas)?;
        calls.push(Call::CreateGroup { group, nodes });
    }
    Ok(calls)
}

fn clone_session(update: UpdateType, session: &CloneSession) -> Result<Vec<Call>> {
    let id = session.id;
    if id > LAST_MIRROR_SESSION {
        let what = format!("clone session {id}: the last is {LAST_MIRROR_SESSION}");
        return Err(TranslateError::Unsupported(what));
    }
    if update == UpdateType::Delete {
        return Ok(vec![Call::DeleteMirror { session: id }]);
    }
    if session.packet_length_bytes != 0 {
        let what = format!("truncation (clone session {id})");
        return Err(TranslateError::Unsupported(what));
    }
    if session.class_of_service != 0 {
        let what = format!("class of service but 0 for copies (clone session {id})");
        return Err(TranslateError::Unsupported(what));
    }
    if let [Replica { port, instance: 0 }] = session.replicas[..] {
        let to = Mirror {
            port: Some(port.cast_signed()),
            group: None,
        };
        return Ok(vec![Call::SetMirror { session: id, to }]);
    }
    let group = FIRST_MIRROR_GROUP + id;
    let what = format!("clone session {id}");
    let mut calls = replace_group(&what, update, group, &session.replicas)?;
    calls.push(Call::SetMirror {
        session: id,
        to: Mirror {
            port: None,
            group: Some(group.cast_signed()),
        },
    });
    Ok(calls)
}

fn register(program: &Program, name: &str, index: Option<u64>, fields: &[Value]) -> Result<Call> {
    let declared = find_register(program, name)?;
    let [value] = fields else {
        let what = format!("register cells of {} fields ({name})", fields.len());
        return Err(TranslateError::Unsupported(what));
    };
    encode(name, value, declared.width)?;
    // The bits are passed regardless of the sign: BMv2 transfers cells as 64-bit integers.
    let value = value.limb(0).cast_signed();
    let register = name.to_owned();
    Ok(match index {
        Some(index) => Call::WriteRegister {
            register,
            index,
            value,
        },
        None => Call::FillRegister {
            register,
            size: declared.size,
            value,
        },
    })
}

pub(crate) fn find_register(program: &Program, name: &str) -> Result<crate::program::Register> {
    let declared = *program
        .registers
        .get(name)
        .ok_or_else(|| unknown("register", name))?;
    if declared.width > 64 {
        let what = format!("way to reach register cells of more than 64 bits ({name})");
        return Err(TranslateError::Unsupported(what));
    }
    Ok(declared)
}

/// Translates a table entry, as the switch returns it, to the names of its program.
pub fn entry(program: &Program, table: &str, raw: &RawEntry) -> Result<TableEntry> {
    let declared = find_table(program, table)?;
    let odd = |what: &str| TranslateError::Answer {
        table: table.to_owned(),
        what: what.to_owned(),
    };
    if raw.key.len() != declared.key.len() {
        return Err(odd("its key has another number of fields"));
    }
    let mut key = Vec::new();
    for (field, part) in declared.key.iter().zip(&raw.key) {
        let value = field_match(field, part).ok_or_else(|| odd("a field's value"))?;
        // A don't-care is left out.
        if let Some(value) = value {
            let field = field.name.clone();
            key.push(FieldMatch { field, value });
        }
    }
    let ActionEntry::Action(name, data) = &raw.action else {
        return Err(odd("it names a member of an action profile"));
    };
    let action = action_call(program, name, data).ok_or_else(|| odd("its action"))?;
    Ok(TableEntry {
        table: table.to_owned(),
        key,
        priority: if declared.has_priority() {
            raw.priority.map_or(0, priority)
        } else {
            0
        },
        action,
    })
}

pub(crate) fn action_call(program: &Program, name: &str, data: &[Vec<u8>]) -> Option<ActionCall> {
    let declared = program.actions.get(name)?;
    if declared.len() != data.len() {
        return None;
    }
    let params = declared.iter().zip(data);
    let params = params.map(|(own, bytes)| (own.name.clone(), Value::from_be_bytes(bytes)));
    Some(ActionCall {
        name: name.to_owned(),
        params: params.collect(),
    })
}
