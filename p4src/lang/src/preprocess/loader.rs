//! Where the text of files comes from.

use std::collections::BTreeMap;

/// Gives the text of a file, or `None` if there is none of this name. Paths are `/`-separated and normalised.
pub trait Loader {
    /// The file's text.
    fn load(&self, path: &str) -> Option<String>;
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
