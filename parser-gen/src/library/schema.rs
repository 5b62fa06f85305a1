//! Format of a YAML protocol file. Unknown keys are errors.

use serde::Deserialize;

use super::error::{LibraryError, misshapen};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProtocolFile {
    pub name: String,
    pub filter: String,
    pub about: String,
    #[serde(default)]
    pub root: bool,
    pub metadata: Option<String>,
    pub header: Option<HeaderFile>,
    pub message: Option<Vec<ElementFile>>,
    #[serde(default)]
    pub carried_by: Vec<CarrierFile>,
    #[serde(default)]
    pub fields: Vec<FieldFile>,
    pub options: Option<OptionsFile>,
    pub payload: Option<PayloadFile>,
    #[serde(default)]
    pub notes: Vec<String>,
    #[serde(default)]
    pub select: Vec<String>,
    #[serde(default)]
    pub next: Vec<EdgeFile>,
    /// Protocol whose payload holds this message of payload slices that filters name. Not a key of a file.
    #[serde(skip)]
    pub payload_of: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeaderFile {
    #[serde(rename = "type")]
    pub type_name: String,
    #[serde(default)]
    pub declared: Declared,
    #[serde(default)]
    pub values: bool,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Declared {
    /// p4src/common/headers.p4 declares the header's P4 type.
    Common,
    /// The generated P4 text declares the header's type.
    #[default]
    Generated,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FieldFile {
    pub name: String,
    pub bits: u32,
    pub filter: Option<String>,
    #[serde(default, rename = "type")]
    pub ty: TypeFile,
    #[serde(default)]
    pub about: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TypeFile {
    #[default]
    Unsigned,
    Flag,
    Ipv4,
    Ipv6,
    Mac,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OptionsFile {
    pub length: String,
    pub first_word: u32,
    pub max: u32,
    pub malformed: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PayloadFile {
    pub total: Option<String>,
    pub after_header: Option<String>,
}

/// Element of a message: one of the keys `literal`, `number`, `decimal`, `varint` and `text`, and the keys that belong to it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ElementFile {
    pub literal: Option<String>,
    pub number: Option<String>,
    pub decimal: Option<String>,
    pub varint: Option<String>,
    pub text: Option<String>,
    pub bits: Option<u32>,
    pub bytes: Option<usize>,
    pub max: Option<usize>,
    pub until: Option<Vec<String>>,
    pub until_last: Option<Vec<String>>,
    pub length: Option<String>,
    #[serde(default)]
    pub signed: bool,
    #[serde(default)]
    pub less: u32,
    #[serde(default)]
    pub ignore_case: bool,
    #[serde(default)]
    pub labels: bool,
    pub filter: Option<String>,
    #[serde(default)]
    pub about: String,
}

/// Protocol that may carry this protocol, and the values of the carrier's select fields with which it does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CarrierFile {
    pub by: String,
    pub when: Vec<WhenFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EdgeFile {
    pub when: Vec<WhenFile>,
    pub to: Option<String>,
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged, expecting = "each of `when` is a number from 0 on, or `any`")]
pub(super) enum WhenFile {
    Value(u64),
    Word(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoteFile {
    pub code: u8,
    pub name: String,
    pub about: String,
}

/// Parses the YAML text of a protocol file.
pub(super) fn parse(file: &str, text: &str) -> Result<ProtocolFile, LibraryError> {
    serde_yaml::from_str(text).map_err(|error| misshapen(file, &error))
}
