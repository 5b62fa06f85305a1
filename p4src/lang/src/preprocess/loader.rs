//! Where the text of files comes from.

use std::collections::BTreeMap;

/// Gives the text of a file, or `None` if there is none of this name. Paths are `/`-separated and normalised.
pub trait Loader {
    /// The file's text.
    fn load(&self, path: &str) -> Option<String>;

    /// Why a file that [`Self::load`] did not give cannot be read, though it is there: `it is a folder`. `None`: it is not
    /// there.
    fn why_not(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }
}

/// The text in a file's bytes, or what they are instead.
pub fn source_text(bytes: Vec<u8>) -> Result<String, String> {
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if utf16 {
        return Err("it is UTF-16, and P4 is written in UTF-8".to_owned());
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => {
            Err("it is not text: there are zero bytes in it".to_owned())
        }
        Ok(text) => Ok(text),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..valid]
                .iter()
                .filter(|b| **b == b'\n')
                .count()
                + 1;
            Err(format!(
                "it is not text in UTF-8: byte {valid}, on line {line}, is 0x{:02x}",
                error.as_bytes().get(valid).copied().unwrap_or_default()
            ))
        }
    }
}

impl<F: Fn(&str) -> Option<String>> Loader for F {
    fn load(&self, path: &str) -> Option<String> {
        self(path)
    }
}

/// Files in memory.
#[derive(Debug, Clone, Default)]
pub struct Files {
    files: BTreeMap<String, String>,
}

impl Files {
    /// None.
    pub fn new() -> Files {
        Files::default()
    }

    /// With one more file.
    #[must_use]
    pub fn with(mut self, path: &str, text: impl Into<String>) -> Files {
        self.insert(path, text);
        self
    }

    /// One more file.
    pub fn insert(&mut self, path: &str, text: impl Into<String>) {
        self.files.insert(normalised(path), text.into());
    }
}

impl Loader for Files {
    fn load(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }
}

/// In front of the names of built-in files, in places and messages.
pub const BUILTIN_DIR: &str = "<built-in>";

/// The declarations that come with the compiler, by the name in `#include <…>`.
pub fn builtin(name: &str) -> Option<&'static str> {
    Some(match name {
        "core.p4" => include_str!("../../../include/core.p4"),
        "psa.p4" | "bmv2/psa.p4" => include_str!("../../../include/psa.p4"),
        "v1model.p4" => include_str!("../../../include/v1model.p4"),
        "tna.p4" => include_str!("../../../include/tna.p4"),
        "t2na.p4" => include_str!("../../../include/t2na.p4"),
        "tofino.p4" => include_str!("../../../include/tofino.p4"),
        _ => return None,
    })
}

/// `a/./b/../c` → `a/c`.
pub(super) fn normalised(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|p| !matches!(*p, ".." | "")) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// `dir` of `dir/file`, with the slash; empty if there is none.
pub(super) fn directory(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..=slash])
}
