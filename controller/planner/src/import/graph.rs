//! The graph that a GraphML or node-link file contains: nodes and edges with attributes, each with its position in the text.

use std::collections::BTreeMap;

use super::quantity::{Bad, Dimension};
use super::{ImportError, ImportErrorKind};

/// A parsed network file, before its attributes are interpreted.
#[derive(Debug)]
pub struct Graph<'t> {
    /// Text of the file; positions are byte offsets in it.
    pub text: &'t str,
    /// Attributes of the graph as a whole.
    pub attributes: Attributes,
    /// Nodes in the order of the file.
    pub nodes: Vec<Node>,
    /// Edges in the order of the file.
    pub edges: Vec<Edge>,
}

#[derive(Debug)]
pub struct Node {
    pub id: String,
    pub label: Option<String>,
    pub attributes: Attributes,
    pub at: usize,
}

#[derive(Debug)]
pub struct Edge {
    /// Identifiers of the nodes at the edge's two ends, each with its byte offset in the text.
    pub ends: [(String, usize); 2],
    /// Whether the edge leads only from its first end to its second.
    pub is_directed: bool,
    pub attributes: Attributes,
    pub at: usize,
}

/// Attributes of a graph, node or edge, by name.
#[derive(Debug, Default)]
pub struct Attributes(BTreeMap<String, Attribute>);

/// Value of an attribute, as text; numbers and Boolean values are kept as the file writes them.
#[derive(Debug, Clone)]
pub struct Attribute {
    pub value: String,
    pub at: usize,
}

impl Attribute {
    /// Error that the attribute's value is not `wanted`, a description of valid values.
    pub fn wanted(&self, text: &str, name: &str, wanted: &str) -> ImportError {
        let kind = ImportErrorKind::Value {
            attribute: name.to_owned(),
            value: self.value.clone(),
            wanted: wanted.to_owned(),
        };
        kind.at(text, self.at)
    }
}

impl Attributes {
    pub fn insert(&mut self, name: String, attribute: Attribute) {
        self.0.insert(name, attribute);
    }

    pub fn find(&self, name: &str) -> Option<&Attribute> {
        self.0.get(name)
    }

    /// Reads the attribute `name` as a count; `None` if it is absent.
    pub fn integer(&self, text: &str, name: &str) -> Result<Option<u32>, ImportError> {
        let Some(attribute) = self.find(name) else {
            return Ok(None);
        };
        let number = attribute.value.trim().parse::<f64>().ok();
        let whole = number.filter(|n| n.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(n));
        match whole {
            Some(whole) => Ok(Some(whole as u32)),
            None => Err(attribute.wanted(text, name, "a whole number")),
        }
    }

    /// Reads the attribute `name` as a Boolean value; `None` if it is absent.
    pub fn truth(&self, text: &str, name: &str) -> Result<Option<bool>, ImportError> {
        let Some(attribute) = self.find(name) else {
            return Ok(None);
        };
        match attribute.value.trim().to_ascii_lowercase().as_str() {
            "true" | "1" => Ok(Some(true)),
            "false" | "0" => Ok(Some(false)),
            _ => Err(attribute.wanted(text, name, "`true` or `false`")),
        }
    }

    /// Reads the attribute `name` as a share such as `0.01` or `1%`; `None` if it is absent.
    pub fn share(&self, text: &str, name: &str) -> Result<Option<f64>, ImportError> {
        let Some(attribute) = self.find(name) else {
            return Ok(None);
        };
        let value = attribute.value.trim();
        let number = match value.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|number| number / 100.0),
            None => value.parse(),
        };
        let inside = number.ok().filter(|number| (0.0..=1.0).contains(number));
        match inside {
            Some(share) => Ok(Some(share)),
            None => Err(attribute.wanted(text, name, "a share between 0 and 1")),
        }
    }

    /// Reads a quantity from the first attribute of these names that is present. A name may end with a unit: `rate_gbps`.
    pub fn quantity(
        &self,
        text: &str,
        names: &[&str],
        dimension: Dimension,
        unit_of_numbers: Option<u64>,
    ) -> Result<Option<u64>, ImportError> {
        for name in names {
            let alone = (String::from(*name), unit_of_numbers);
            let suffixes = dimension.suffixes().iter();
            let suffixed = suffixes.map(|(suffix, unit)| (format!("{name}_{suffix}"), Some(*unit)));
            for (name, unit) in std::iter::once(alone).chain(suffixed) {
                if let Some(attribute) = self.find(&name) {
                    let read = dimension.read(&attribute.value, unit);
                    return read.map(Some).map_err(|bad| match bad {
                        Bad::Value => attribute.wanted(text, &name, dimension.wanted()),
                        Bad::NoUnit => ImportErrorKind::NoUnit {
                            attribute: name,
                            value: attribute.value.clone(),
                            dimension,
                        }
                        .at(text, attribute.at),
                    });
                }
            }
        }
        Ok(None)
    }
}
