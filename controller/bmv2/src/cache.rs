//! Caches p4c's output between runs: to compile a sum of 256 values, p4c takes seconds, or minutes if built unoptimized.
//!
//! The name of a file is the SHA-256 of all inputs of its text ([`Key`]), so no file is ever wrong, only unused. A cache that
//! cannot be read or written behaves as an empty one.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

/// Maximum number of JSON files that the cache keeps; a file has some megabytes.
const KEPT: usize = 32;

/// A cache of p4c's output: a folder of JSON files, named by the hash of their inputs.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

/// Key of a cached file: the hash of all inputs of a compilation by p4c.
#[derive(Debug)]
pub struct Key(Sha256);

impl Key {
    /// Begins a key with p4c's version text, size and modification time: builds of one version may differ.
    #[must_use]
    pub fn of_compiler(tool: &Path) -> Key {
        let mut key = Key(Sha256::new());
        key.add(tool.as_os_str().as_encoded_bytes());
        let version = Command::new(tool)
            .arg("--version")
            .stdin(Stdio::null())
            .output();
        key.add(&version.map(|output| output.stdout).unwrap_or_default());
        if let Ok(meta) = tool.metadata() {
            let modified = meta.modified().unwrap_or(UNIX_EPOCH);
            let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            key.add(&meta.len().to_be_bytes());
            key.add(&since.as_nanos().to_be_bytes());
        }
        key
    }

    /// Adds an input of p4c (option, path or text) with its length to the hash: `ab`, `c` and `a`, `bc` give different keys.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    fn name(self) -> String {
        let digits = self
            .0
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>();
        format!("{digits}.json")
    }
}

impl Cache {
    /// Creates a cache in this folder, which need not exist.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Cache {
        Cache {
            folder: folder.to_owned(),
        }
    }

    /// The user's cache: `weir/p4c` in XDG_CACHE_HOME, else in `~/.cache` (XDG Base Directory Specification, which ignores
    /// relative paths). `None` if neither variable (XDG_CACHE_HOME, HOME) gives a folder.
    #[must_use]
    pub fn of_user() -> Option<Cache> {
        let absolute = |name| std::env::var_os(name).map(PathBuf::from);
        let absolute = |name| absolute(name).filter(|path| path.is_absolute());
        let folder = absolute("XDG_CACHE_HOME")
            .or_else(|| absolute("HOME").map(|home| home.join(".cache")))?;
        Some(Cache::in_folder(&folder.join("weir/p4c")))
    }

    /// Path of the cached JSON file for a key, whether or not the file exists.
    #[must_use]
    pub fn slot(&self, key: Key) -> Slot {
        Slot {
            file: self.folder.join(key.name()),
        }
    }
}

/// Path of one JSON file in the cache; the file may not exist yet.
#[derive(Debug)]
pub struct Slot {
    file: PathBuf,
}

impl Slot {
    /// Copies the cached file to the path `json`; returns false if the cache does not have the file.
    #[must_use]
    pub fn fetch(&self, json: &Path) -> bool {
        let copied = std::fs::copy(&self.file, json).is_ok();
        if copied && let Ok(file) = std::fs::File::open(&self.file) {
            // Marks the file as used, since the least recently used files are removed first.
            let _ = file.set_modified(SystemTime::now());
        }
        copied
    }

    /// Copies the file `json` into the cache. A simultaneous reader sees the whole file or no file.
    pub fn keep(&self, json: &Path) {
        let Some(folder) = self.file.parent() else {
            return;
        };
        let unfinished = self.file.with_extension(std::process::id().to_string());
        let kept = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::copy(json, &unfinished))
            .and_then(|_| std::fs::rename(&unfinished, &self.file));
        if kept.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
        prune(folder);
    }
}

/// Removes the least recently used files until at most [`KEPT`] are left.
fn prune(folder: &Path) {
    let files = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| file.path());
    let used = |file: &PathBuf| file.metadata().and_then(|meta| meta.modified()).ok();
    let mut files: Vec<_> = files
        .filter(|file| {
            file.extension()
                .is_some_and(|extension| extension == "json")
        })
        .map(|file| (used(&file), file))
        .collect();
    files.sort();
    let surplus = files.len().saturating_sub(KEPT);
    for (_, file) in &files[..surplus] {
        let _ = std::fs::remove_file(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: &[&str]) -> Key {
        let mut key = Key(Sha256::new());
        for part in parts {
            key.add(part.as_bytes());
        }
        key
    }

    #[test]
    fn keys_tell_apart_what_is_joined_differently() {
        assert_eq!(key(&["ab", "c"]).name(), key(&["ab", "c"]).name());
        assert_ne!(key(&["ab", "c"]).name(), key(&["a", "bc"]).name());
        assert_ne!(key(&["ab"]).name(), key(&["ab", ""]).name());
    }

    #[test]
    fn what_was_kept_is_fetched_and_the_number_of_files_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("out.json");
        let cache = Cache::in_folder(&folder.path().join("cache"));
        assert!(!cache.slot(key(&["0"])).fetch(&json));
        for number in 0..KEPT + 3 {
            std::fs::write(&json, number.to_string()).unwrap();
            cache.slot(key(&[&number.to_string()])).keep(&json);
        }
        let kept = std::fs::read_dir(folder.path().join("cache")).unwrap();
        assert_eq!(kept.count(), KEPT);
        let last = (KEPT + 2).to_string();
        std::fs::remove_file(&json).unwrap();
        assert!(cache.slot(key(&[&last])).fetch(&json));
        assert_eq!(std::fs::read_to_string(&json).unwrap(), last);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let slot = Cache::in_folder(&file.join("below")).slot(key(&["a"]));
        slot.keep(&file);
        assert!(!slot.fetch(&folder.path().join("out")));
    }
}
