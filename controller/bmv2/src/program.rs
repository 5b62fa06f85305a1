//! Parses BMv2's JSON, as p4c writes it.
//!
//! Reads only what run-time calls depend on: order and width of key fields and parameters, and sizes of registers and counters.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Why a JSON text is not a BMv2 program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The text is not JSON, or its JSON does not have the form of a BMv2 program.
    #[error("this is not BMv2's JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A table's key has a field of a header that the program does not declare.
    #[error("the JSON's table {table} matches {field}, which no header declares")]
    Field {
        /// Name of the table.
        table: String,
        /// The key field, `header.field`.
        field: String,
    },
}

/// How a field of a table's key is matched (P4's match kinds).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchKind {
    /// `exact`: the field equals a value
    Exact,
    /// `lpm`: the longest prefix of the field wins
    Lpm,
    /// `ternary`: the field equals a value in the bits of a mask
    Ternary,
    /// `range`: the field lies between two values
    Range,
    /// `optional`: a ternary match whose mask has all bits set or none
    Optional,
    /// The key is the validity of a header, not the value of a field.
    Valid,
}

/// A field of a table's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyField {
    /// Name of the key field in P4Info.
    pub name: String,
    /// Match kind of the key field.
    pub kind: MatchKind,
    /// Width of the whole field in bits.
    pub width: u32,
    /// The bits of the field that the key matches, if it matches a slice such as `mixed[15:8]`; `None` for the whole field.
    /// Even then the switch requires a key of the field's width, with the slice's value at its position.
    pub part: Option<Part>,
}

/// A slice of contiguous bits of a header field, such as `mixed[15:8]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Index of the slice's lowest bit; 0 is the field's least significant bit.
    pub low: u32,
    /// Width of the slice in bits.
    pub width: u32,
}

impl Part {
    /// Parses a field's mask in p4c's form, `0x0000ff00`; `None` if its bits are not contiguous, or it is wider than 128 bits.
    fn of_mask(mask: &str) -> Option<Part> {
        let bits = u128::from_str_radix(mask.strip_prefix("0x")?, 16).ok()?;
        let (low, width) = (bits.trailing_zeros(), bits.count_ones());
        let ones = u128::MAX.checked_shr(128 - width)?;
        (ones.checked_shl(low) == Some(bits)).then_some(Part { low, width })
    }
}

/// A table of a BMv2 program: its key and its actions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Fields of the key, in the order in which BMv2's calls expect them.
    pub key: Vec<KeyField>,
    /// Names of the actions that the table's entries may use.
    pub actions: Vec<String>,
    /// Whether the table's entries refer to members or groups of an action profile (shared actions) instead of actions.
    pub indirect: bool,
}

impl Table {
    /// Whether the table's entries need a priority, because several may match one packet.
    #[must_use]
    pub fn has_priority(&self) -> bool {
        let kinds = [MatchKind::Ternary, MatchKind::Range, MatchKind::Optional];
        self.key.iter().any(|field| kinds.contains(&field.kind))
    }
}

/// A run-time parameter of a P4 action.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Parameter {
    /// Name of the action's parameter.
    pub name: String,
    /// Width of the parameter in bits.
    #[serde(rename = "bitwidth")]
    pub width: u32,
}

/// A register array of a P4 program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    /// Width of a register cell in bits.
    pub width: u32,
    /// Number of cells of the register.
    pub size: u32,
}

/// Objects of a BMv2 program that run-time calls name: tables, actions, registers and counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Tables of the program, by name.
    pub tables: BTreeMap<String, Table>,
    /// Parameters of each action, by the action's name. Actions of the same name have the same parameters: p4c repeats an
    /// action for each table that uses it.
    pub actions: BTreeMap<String, Vec<Parameter>>,
    /// Registers of the program, by name.
    pub registers: BTreeMap<String, Register>,
    /// Number of cells of each indirect counter (the program updates its cells by index), by the counter's name. The JSON lists
    /// PSA's counters as extern instances.
    pub counters: BTreeMap<String, u32>,
}

#[derive(Deserialize)]
struct Json {
    #[serde(default)]
    header_types: Vec<HeaderType>,
    #[serde(default)]
    headers: Vec<Header>,
    #[serde(default)]
    actions: Vec<Action>,
    pipelines: Vec<Pipeline>,
    #[serde(default)]
    register_arrays: Vec<RegisterArray>,
    #[serde(default)]
    counter_arrays: Vec<CounterArray>,
    #[serde(default)]
    extern_instances: Vec<Extern>,
}

#[derive(Deserialize)]
struct HeaderType {
    name: String,
    /// Each field of the header type: name, width in bits (`*` if it varies), and whether it is signed.
    fields: Vec<Vec<serde_json::Value>>,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    header_type: String,
}

#[derive(Deserialize)]
struct Action {
    name: String,
    runtime_data: Vec<Parameter>,
}

#[derive(Deserialize)]
struct Pipeline {
    tables: Vec<JsonTable>,
}

#[derive(Deserialize)]
struct JsonTable {
    name: String,
    key: Vec<JsonKey>,
    actions: Vec<String>,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct JsonKey {
    name: Option<String>,
    match_type: MatchKind,
    target: Target,
    mask: Option<String>,
}

/// A key's match target in BMv2's JSON: a field, as `["header", "field"]`, or only a header, of which the key matches the
/// validity.
#[derive(Deserialize)]
#[serde(untagged)]
enum Target {
    Field(String, String),
    Header(String),
}

#[derive(Deserialize)]
struct RegisterArray {
    name: String,
    bitwidth: u32,
    size: u32,
}

#[derive(Deserialize)]
struct CounterArray {
    name: String,
    #[serde(default)]
    is_direct: bool,
    size: Option<u32>,
}

#[derive(Deserialize)]
struct Extern {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    attribute_values: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Attribute {
    name: String,
    value: serde_json::Value,
}

impl Program {
    /// Reads the tables, actions, registers and counters from BMv2's JSON.
    pub fn parse(json: &str) -> Result<Program, ProgramError> {
        let json: Json = serde_json::from_str(json)?;
        let widths = widths(&json);
        let mut program = Program::default();
        for table in json.pipelines.into_iter().flat_map(|pipe| pipe.tables) {
            let mut key = Vec::new();
            for field in table.key {
                let (path, validity) = match field.target {
                    Target::Header(header) => (header, true),
                    Target::Field(header, name) if name == "$valid$" => (header, true),
                    Target::Field(header, name) => (format!("{header}.{name}"), false),
                };
                let width = match (validity, widths.get(&path)) {
                    (true, _) => 1,
                    (false, Some(width)) => *width,
                    (false, None) => {
                        let table = table.name;
                        return Err(ProgramError::Field { table, field: path });
                    }
                };
                key.push(KeyField {
                    name: field.name.unwrap_or(path),
                    kind: field.match_type,
                    width,
                    part: field.mask.as_deref().and_then(Part::of_mask),
                });
            }
            let (actions, indirect) = (table.actions, table.kind.starts_with("indirect"));
            let table_ = Table {
                key,
                actions,
                indirect,
            };
            program.tables.insert(table.name, table_);
        }
        for action in json.actions {
            program.actions.insert(action.name, action.runtime_data);
        }
        for register in json.register_arrays {
            let (width, size) = (register.bitwidth, register.size);
            program
                .registers
                .insert(register.name, Register { width, size });
        }
        for counter in json
            .counter_arrays
            .into_iter()
            .filter(|counter| !counter.is_direct)
        {
            program
                .counters
                .insert(counter.name, counter.size.unwrap_or(0));
        }
        for counter in json.extern_instances {
            if counter.kind == "Counter" {
                program
                    .counters
                    .insert(counter.name, cells(&counter.attribute_values));
            }
        }
        Ok(program)
    }
}

fn widths(json: &Json) -> BTreeMap<String, u32> {
    let mut widths = BTreeMap::new();
    for header in &json.headers {
        let mut types = json.header_types.iter();
        let Some(declared) = types.find(|declared| declared.name == header.header_type) else {
            continue;
        };
        for field in &declared.fields {
            let (name, width) = (field.first(), field.get(1));
            if let (Some(name), Some(width)) = (
                name.and_then(|n| n.as_str()),
                width.and_then(|w| w.as_u64()),
            ) {
                let width = u32::try_from(width).unwrap_or(u32::MAX);
                widths.insert(format!("{}.{name}", header.name), width);
            }
        }
    }
    widths
}

/// Number of cells of a PSA counter: its attribute `n_counters`, a number or a hexadecimal string; 0 if it has none.
fn cells(attributes: &[Attribute]) -> u32 {
    let value = attributes
        .iter()
        .find(|attribute| attribute.name == "n_counters")
        .map(|attribute| &attribute.value);
    let number = match value {
        Some(serde_json::Value::String(text)) => {
            u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
        }
        Some(other) => other.as_u64(),
        None => None,
    };
    number
        .and_then(|number| u32::try_from(number).ok())
        .unwrap_or(0)
}
