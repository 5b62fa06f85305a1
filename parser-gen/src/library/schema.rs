//! The shape of a protocol file. Unknown keys are refused.

use serde::Deserialize;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProtocolFile {
    pub name: String,
    pub filter: String,
    pub about: String,
    #[serde(default)]
    pub root: bool,
    pub metadata: Option<String>,
    pub header: Option<HeaderFile>,
    pub resp: Option<RespFile>,
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
    /// In p4src/common/headers.p4.
    Common,
    /// In the generated text.
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RespFile {
    pub command: RespFieldFile,
    pub key: RespFieldFile,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RespFieldFile {
    pub filter: String,
    pub about: String,
    pub max: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EdgeFile {
    pub when: Vec<WhenFile>,
    pub to: Option<String>,
    pub note: Option<String>,
    #[serde(default)]
    pub needs_payload: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
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
    #[serde(default)]
    pub pipelined: bool,
}
