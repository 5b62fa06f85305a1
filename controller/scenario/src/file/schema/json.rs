//! Writes a JSON Schema (draft 2020-12) of the files that users write, for editors. It is generated from the same tables by
//! which weir's readers check the files.
//!
//! The JSON Schema accepts more than the readers: it does not know whether names are declared or sizes fit together. But
//! whatever it refuses, the readers refuse too.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::shape::{Alternative, Key, Literal, Object, Shape};
use super::{SCENARIO, workload};
use crate::units::Dimension;

/// The JSON Schema of scenario files.
#[must_use]
pub fn json_schema() -> Value {
    Writer::default().document("weir scenario", &SCENARIO)
}

/// The JSON Schema of workload files, in which texts with parameters may replace other values.
#[must_use]
pub fn workload_json_schema() -> Value {
    let writer = Writer {
        has_parameters: true,
        ..Writer::default()
    };
    writer.document("weir workload", &workload::WORKLOAD_FILE)
}

/// Writes a JSON Schema. A mapping to which several keys refer is written once, as a definition.
#[derive(Default)]
struct Writer {
    written: BTreeMap<String, Value>,
    has_parameters: bool,
}

impl Writer {
    fn document(mut self, title: &str, root: &Object) -> Value {
        let mut root = self.object(root);
        let mut all = Map::new();
        let dialect = "https://json-schema.org/draft/2020-12/schema";
        all.insert("$schema".into(), dialect.into());
        all.insert("title".into(), title.into());
        all.append(&mut root);
        let definitions: Map<String, Value> = self.written.into_iter().collect();
        all.insert("$defs".into(), Value::Object(definitions));
        Value::Object(all)
    }

    fn object(&mut self, object: &Object) -> Map<String, Value> {
        let mut properties = Map::new();
        for key in object.keys {
            let mut of_key = self.shape(&key.shape);
            if let Value::Object(of_key) = &mut of_key {
                of_key.insert("description".into(), key.about.into());
                if let Some(default) = default(key) {
                    of_key.insert("default".into(), default);
                }
            }
            properties.insert(key.name.into(), of_key);
        }
        let needed = object.keys.iter().filter(|key| key.is_needed);
        let needed: Vec<Value> = needed.map(|key| key.name.into()).collect();
        let mut written = Map::new();
        written.insert("type".into(), "object".into());
        written.insert("properties".into(), Value::Object(properties));
        if !needed.is_empty() {
            written.insert("required".into(), Value::Array(needed));
        }
        written.insert("additionalProperties".into(), false.into());
        written
    }

    fn shape(&mut self, shape: &Shape) -> Value {
        let written = self.plain(shape);
        let may_be_text = matches!(
            shape,
            Shape::Name(_)
                | Shape::Integer(..)
                | Shape::Quantity(..)
                | Shape::Probability
                | Shape::Number(..)
                | Shape::Word(_)
        );
        match self.has_parameters && may_be_text {
            true => json!({"anyOf": [written, {"type": "string", "pattern": r"\{.+\}"}]}),
            false => written,
        }
    }

    fn plain(&mut self, shape: &Shape) -> Value {
        match shape {
            Shape::Text => json!({"type": "string"}),
            Shape::Name(_) => json!({"type": "string", "pattern": NAME}),
            Shape::Names(_) => {
                let one = json!({"type": "string", "pattern": NAME});
                json!({"anyOf": [one, {"type": "array", "items": one}]})
            }
            Shape::Bool => json!({"type": "boolean"}),
            Shape::Integer(low, high) => {
                json!({"type": "integer", "minimum": low, "maximum": high})
            }
            Shape::Quantity(dimension, ..) => quantity(*dimension),
            Shape::Probability => json!({"anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {"type": "string", "pattern": r"^\s*\+?[0-9.][0-9.eE+-]*\s*%$"},
            ]}),
            Shape::Number(f64::MIN, f64::MAX) => json!({"type": "number"}),
            Shape::Number(low, f64::MAX) => json!({"type": "number", "minimum": low}),
            Shape::Number(low, high) => json!({"type": "number", "minimum": low, "maximum": high}),
            Shape::Value => json!({"type": ["number", "string"]}),
            Shape::Word(words) => json!({"enum": words}),
            Shape::Object(object) => {
                let name = definition(object);
                if !self.written.contains_key(&name) {
                    let written = self.object(object);
                    self.written.insert(name.clone(), Value::Object(written));
                }
                json!({"$ref": format!("#/$defs/{name}")})
            }
            Shape::At(shape) => self.shape(shape),
            Shape::List(item) => json!({"type": "array", "items": self.shape(item)}),
            Shape::Map(value) => {
                json!({"type": "object", "additionalProperties": self.shape(value)})
            }
            Shape::Either(shapes) => {
                let shapes: Vec<Value> = shapes.iter().map(|shape| self.shape(shape)).collect();
                json!({"anyOf": shapes})
            }
            Shape::Variant(ways) => self.variant(&ways()),
        }
    }

    /// The schema of alternatives: each is a word alone, a mapping `{word: …}`, or both.
    fn variant(&mut self, ways: &[Alternative]) -> Value {
        let mut shapes: Vec<Value> = Vec::new();
        for way in ways {
            if way.may_be_alone {
                shapes.push(json!({"const": way.word, "description": way.about}));
            }
            if let Some(payload) = &way.payload {
                let payload = self.shape(payload);
                shapes.push(json!({
                    "type": "object",
                    "description": way.about,
                    "properties": {way.word: payload},
                    "required": [way.word],
                    "additionalProperties": false,
                }));
            }
        }
        json!({"anyOf": shapes})
    }
}

/// The default of a key, as a JSON value of the key's type; `None` if the key has no default.
fn default(key: &Key) -> Option<Value> {
    Some(match (key.default?, key.shape.first()) {
        (Literal::Number(number), Shape::Integer(..)) => number.into(),
        (Literal::Probability(probability), _) => probability.into(),
        (Literal::Flag(flag), _) => flag.into(),
        _ => key.written_default()?.into(),
    })
}

/// Name of a mapping's definition in the JSON Schema: `a star as a topology` becomes `a-star-as-a-topology`.
fn definition(object: &Object) -> String {
    object.what.replace('`', "").replace(' ', "-")
}

const NAME: &str = "^[A-Za-z][A-Za-z0-9_-]{0,39}$";

fn quantity(dimension: Dimension) -> Value {
    let units = dimension.unit_names().replace(", ", "|");
    let units = match dimension {
        Dimension::Duration => format!("{units}|µs"),
        Dimension::Rate | Dimension::Size => units,
    };
    let pattern = format!(r"^\s*[0-9_.]+\s*({units})\s*$");
    json!({"type": "string", "pattern": pattern, "examples": [dimension.example()]})
}
