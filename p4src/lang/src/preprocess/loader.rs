//! Loads source files: from memory, from the compiler's built-in files, or by a caller's [`Loader`].

use std::collections::BTreeMap;

/// Loads P4 source files. Paths are `/`-separated and normalized.
pub trait Loader {
    /// The text of the file; `None` if there is no file of this name, or it cannot be read.
    fn load(&self, path: &str) -> Option<String>;

    /// The reason why a file that [`Self::load`] did not return cannot be read (`it is a folder`); `None` if it does not exist.
    fn why_not(&self, path: &str) -> Option<String> {
        let _ = path;
        None
    }
}

/// Decodes a source file's bytes to text; the error says what the bytes are instead of text.
pub fn source_text(bytes: Vec<u8>) -> Result<String, String> {
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    if utf16 {
        return Err("it is encoded in UTF-16; P4 source must be UTF-8".to_owned());
    }
    match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => {
            Err("it is a binary file: it contains zero bytes".to_owned())
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

/// Source files in memory, by path.
#[derive(Debug, Clone, Default)]
pub struct Files {
    files: BTreeMap<String, String>,
}

impl Files {
    /// Creates an empty set of files.
    pub fn new() -> Files {
        Files::default()
    }

    /// Adds a file to the set and returns the set.
    #[must_use]
    pub fn with(mut self, path: &str, text: impl Into<String>) -> Files {
        self.insert(path, text);
        self
    }

    /// Adds a file to the set.
    pub fn insert(&mut self, path: &str, text: impl Into<String>) {
        self.files.insert(normalised(path), text.into());
    }
}

impl Loader for Files {
    fn load(&self, path: &str) -> Option<String> {
        self.files.get(path).cloned()
    }
}

/// Prefix of the names of the compiler's built-in files, in positions and messages.
pub const BUILTIN_DIR: &str = "<built-in>";

/// The text of a declaration file that comes with the compiler, by its name in `#include <…>`; `None` if there is none.
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

/// Normalizes a path: `a/./b/../c` → `a/c`.
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

/// The folder of a path, `dir/` of `dir/file`, with its slash; empty if there is none.
pub(super) fn directory(path: &str) -> &str {
    path.rfind('/').map_or("", |slash| &path[..=slash])
}
