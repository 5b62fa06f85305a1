//! BMv2's JSON, as p4c writes it: what entries need of it.
//!
//! Only what the run-time interface depends on is read: the order and width of keys and parameters, and sizes.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Why a text is no program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// It is no JSON, or has another form.
    #[error("this is not BMv2's JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A key's field is of a header that is declared nowhere.
    #[error("the JSON's table {table} matches {field}, which no header declares")]
    Field {
        /// The table.
        table: String,
        /// `header.field`.
        field: String,
    },
}

/// How a field is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatchKind {
    /// `exact`
    Exact,
    /// `lpm`
    Lpm,
    /// `ternary`
    Ternary,
    /// `range`
    Range,
    /// `optional`: ternary, with all bits or none
    Optional,
    /// The validity of a header.
    Valid,
}

/// A field of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyField {
    /// Its name in P4Info.
    pub name: String,
    /// How it is matched.
    pub kind: MatchKind,
    /// In bits.
    pub width: u32,
    /// Where the key is a part of the field, `mixed[15:8]`: which. `p4c-bm2-psa` writes a mask over the whole field then, and
    /// the switch wants keys of the field's width, with the part in its place.
    pub part: Option<Part>,
}

/// A part of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its lowest bit.
    pub low: u32,
    /// How many bits it has.
    pub width: u32,
}

impl Part {
    /// Of a mask as p4c writes it, `0x0000ff00`; `None` if that is no one part, or wider than anybody looks at.
    fn of_mask(mask: &str) -> Option<Part> {
        let bits = u128::from_str_radix(mask.strip_prefix("0x")?, 16).ok()?;
        let (low, width) = (bits.trailing_zeros(), bits.count_ones());
        let ones = u128::MAX.checked_shr(128 - width)?;
        (ones.checked_shl(low) == Some(bits)).then_some(Part { low, width })
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// In the order in which keys are sent.
    pub key: Vec<KeyField>,
    /// Names of its actions.
    pub actions: Vec<String>,
    /// Whether entries name members or groups of an action profile.
    pub indirect: bool,
}

impl Table {
    /// Whether entries need a priority.
    #[must_use]
    pub fn has_priority(&self) -> bool {
        let kinds = [MatchKind::Ternary, MatchKind::Range, MatchKind::Optional];
        self.key.iter().any(|field| kinds.contains(&field.kind))
    }
}

/// A parameter of an action.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// In bits.
    #[serde(rename = "bitwidth")]
    pub width: u32,
}

/// A register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    /// Of a cell, in bits.
    pub width: u32,
    /// Cells.
    pub size: u32,
}

/// A program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// By name.
    pub tables: BTreeMap<String, Table>,
    /// The parameters of each action, by its name. Actions of one name have the same parameters: p4c writes one for
    /// each table that has it.
    pub actions: BTreeMap<String, Vec<Parameter>>,
    /// By name.
    pub registers: BTreeMap<String, Register>,
    /// Cells of each indirect counter, by name. PSA's are among the extern instances.
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
    /// Name, width (`*` if it varies), signedness.
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

/// `["header", "field"]`; a header alone for its validity.
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
    /// Reads a program.
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

/// `n_counters`, a number or a hexadecimal string.
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
