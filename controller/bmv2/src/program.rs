//! BMv2's JSON, as p4c writes it: the parts that entries need.
//!
//! Reads only the parts on which the run-time interface depends: order and width of keys and parameters, and sizes.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Why a text is not a program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The text is not JSON, or has another form.
    #[error("this is not BMv2's JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A key's field belongs to a header that is not declared.
    #[error("the JSON's table {table} matches {field}, which no header declares")]
    Field {
        /// Name of the table.
        table: String,
        /// The field, `header.field`.
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
    /// Name of the field in P4Info.
    pub name: String,
    /// Match kind of the field.
    pub kind: MatchKind,
    /// Width in bits.
    pub width: u32,
    /// The part of the field that is the key, such as `mixed[15:8]`. `p4c-bm2-psa` then writes a mask over the whole field, and
    /// the switch requires keys of the field's width, with the part at its position.
    pub part: Option<Part>,
}

/// A part of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Lowest bit of the part.
    pub low: u32,
    /// Width of the part in bits.
    pub width: u32,
}

impl Part {
    /// Parses a mask as p4c writes it, `0x0000ff00`; `None` if it is not one contiguous part, or has more than 128 bits.
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
    /// Fields of the key, in the order in which keys are sent.
    pub key: Vec<KeyField>,
    /// Names of the table's actions.
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
    /// Name of the parameter.
    pub name: String,
    /// Width in bits.
    #[serde(rename = "bitwidth")]
    pub width: u32,
}

/// A register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Register {
    /// Width of a cell in bits.
    pub width: u32,
    /// Number of cells.
    pub size: u32,
}

/// A program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Program {
    /// Tables by name.
    pub tables: BTreeMap<String, Table>,
    /// Parameters of each action, by the action's name. Actions of the same name have the same parameters: p4c writes one for
    /// each table that has it.
    pub actions: BTreeMap<String, Vec<Parameter>>,
    /// Registers by name.
    pub registers: BTreeMap<String, Register>,
    /// Number of cells of each indirect counter, by name. PSA counters are among the extern instances.
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
    /// Name, width (`*` if it varies) and signedness of each field.
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

/// `["header", "field"]`; only the header to match its validity.
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

/// Value of `n_counters`: a number or a hexadecimal string.
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
