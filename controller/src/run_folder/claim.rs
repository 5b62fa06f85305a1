//! Prepares the folder in which a run is kept: a new folder, an empty one, or that of an earlier run, whose files are deleted.
//!
//! weir never deletes files that it has not written. So a folder counts as that of a run only if it contains `evidence.json` or
//! the mark of an unfinished run, and no files but those that a run writes.

use std::fs::{self, DirEntry, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use scenario::Scenario;
use serde_json::Value;

use super::{
    EVENTS, EVIDENCE, EVIDENCE_WRITTEN, PAGE, PLAN, PROTOCOLS, REPORT, SCENARIO, TOPOLOGIES,
    WORKLOAD, read_file,
};
use crate::experiment::observe::minute_log::MINUTES;

/// Name of the file that marks the folder of an unfinished run.
pub(super) const MARK: &str = "unfinished";
const MARKED: &str = "weir: a run that has not come to its end\n";

/// Names of the files that a run may write into its folder.
const FILES: [&str; 12] = [
    EVIDENCE,
    EVIDENCE_WRITTEN,
    MARK,
    EVENTS,
    MINUTES,
    SCENARIO,
    WORKLOAD,
    TOPOLOGIES[0],
    TOPOLOGIES[1],
    PAGE,
    REPORT,
    PLAN,
];
/// Endings of the names of further files: captures of switches, and outputs of commands.
const ENDINGS: [&str; 3] = [".pcapng", ".stdout", ".stderr"];

/// Why a run cannot be kept in a folder.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The folder contains files that no run has written.
    #[error(
        "{} is not empty, and {why}: name a new folder, or empty this one", folder.display()
    )]
    Taken {
        /// Path of the folder that contains other files.
        folder: PathBuf,
        /// Which file does not belong to a run, or is missing.
        why: String,
    },
    /// The folder contains a file that the run reads, and would be deleted.
    #[error(
        "{} is in {}, whose files the run would replace: name another folder", file.display(), folder.display()
    )]
    Reads {
        /// Path of the folder whose files the run would replace.
        folder: PathBuf,
        /// Path of the file that the run reads.
        file: PathBuf,
    },
    /// Another run is writing into the folder.
    #[error("another run is being written into {}", .0.display())]
    Busy(PathBuf),
    /// The system could not create, read or delete a file or folder.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// A folder that is locked for one run as long as this value lives.
#[derive(Debug)]
pub struct ClaimedFolder {
    _mark: File,
}

/// Prepares the folder of a run that is about to begin: deletes the files of an earlier run.
///
/// # Errors
///
/// Returns an error, and changes nothing, if the folder has other content or a file that the run reads; also for system errors.
pub fn begin(folder: &Path, scenario: &Scenario) -> Result<ClaimedFolder, ClaimError> {
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source| ClaimError::Io { path, source }
    };
    fs::create_dir_all(folder).map_err(io(folder))?;
    let before = entries(folder).map_err(io(folder))?;
    if !before.is_empty() {
        is_of_run(folder, &before).map_err(|why| ClaimError::Taken {
            folder: folder.to_owned(),
            why,
        })?;
        spares(folder, scenario)?;
    }
    // The mark is written before anything is deleted, so that a half-emptied folder is still recognized.
    let path = folder.join(MARK);
    let mut options = File::options();
    let mark = options.create(true).write(true).truncate(false);
    let mark = mark.open(&path).map_err(io(&path))?;
    match mark.try_lock() {
        Ok(()) => {}
        // A file system without locks does not detect two simultaneous runs.
        Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(source)) => return Err(io(&path)(source)),
        Err(TryLockError::WouldBlock) => return Err(ClaimError::Busy(folder.to_owned())),
    }
    io::Write::write_all(&mut &mark, MARKED.as_bytes()).map_err(io(&path))?;
    for entry in before {
        let path = entry.path();
        let is_folder = entry.file_type().map_err(io(&path))?.is_dir();
        let removed = match is_folder {
            _ if entry.file_name() == MARK => continue,
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.map_err(io(&path))?;
    }
    Ok(ClaimedFolder { _mark: mark })
}

/// Directory entries of a folder, sorted by name.
fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// Checks that a folder holds only files of a run; otherwise the error says which file does not belong to one.
fn is_of_run(folder: &Path, entries: &[DirEntry]) -> Result<(), String> {
    for entry in entries {
        let name = entry.file_name();
        let shown = name.to_string_lossy().escape_debug().to_string();
        // For a link, this is the link's own type, which no file of a run has.
        let kind = entry.file_type().map_err(|error| error.to_string())?;
        let name = name.to_str().unwrap_or_default();
        let is_file = FILES.contains(&name) || ENDINGS.iter().any(|ending| name.ends_with(ending));
        let is_written = kind.is_file() && is_file
            || kind.is_dir() && name == PROTOCOLS && holds_protocols(&entry.path());
        if !is_written {
            return Err(format!("it contains `{shown}`, which no run writes"));
        }
    }
    let is_finished = read_file(&folder.join(EVIDENCE)).is_ok_and(|text| {
        let value = serde_json::from_str::<Value>(&text).unwrap_or_default();
        value["schema"].is_u64() && value["plan_sha256"].is_string()
    });
    let is_marked = read_file(&folder.join(MARK)).is_ok_and(|text| text == MARKED);
    match is_finished || is_marked {
        true => Ok(()),
        false => Err(format!("it has no `{EVIDENCE}` of a run")),
    }
}

/// Whether a folder contains only protocol files that a run has copied: `0.yaml`, `1.yaml` …
fn holds_protocols(folder: &Path) -> bool {
    let is_kept = |entry: &DirEntry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".yaml"));
        let is_number = number.is_some_and(|number| number.parse::<usize>().is_ok());
        is_number && entry.file_type().is_ok_and(|kind| kind.is_file())
    };
    entries(folder).is_ok_and(|entries| entries.iter().all(is_kept))
}

/// Returns an error if the scenario's file, or a file that it names, is in the folder.
fn spares(folder: &Path, scenario: &Scenario) -> Result<(), ClaimError> {
    let Ok(place) = folder.canonicalize() else {
        return Ok(());
    };
    let workload = scenario.workload_file.iter().map(|source| &source.file);
    let topology = scenario.topology_file.iter().map(|source| &source.file);
    let protocols = scenario.protocols.own().iter().map(|source| &source.file);
    for file in [&scenario.file]
        .into_iter()
        .chain(workload)
        .chain(topology)
        .chain(protocols)
    {
        let file = Path::new(file);
        // The standard input has no path.
        let is_inside = file
            .canonicalize()
            .is_ok_and(|file| file.starts_with(&place));
        if is_inside {
            return Err(ClaimError::Reads {
                folder: folder.to_owned(),
                file: file.to_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "weir: 1\nname: s\ntopology: {star: {hosts: [a, b]}}\n";

    fn scenario(file: &Path) -> Scenario {
        scenario::load(&file.display().to_string(), TEXT).unwrap()
    }

    fn names(folder: &Path) -> Vec<String> {
        let names = entries(folder).unwrap().into_iter();
        names
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    }

    /// Creates a folder with these files: name and content of each.
    fn holding(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    const FINISHED: (&str, &str) = (EVIDENCE, "{\"schema\": 1, \"plan_sha256\": \"00\"}");
    const REST: [(&str, &str); 5] = [
        (EVENTS, ""),
        ("sw.pcapng", "frames"),
        ("get.stdout", "said"),
        ("protocols/0.yaml", "name: memo"),
        (SCENARIO, TEXT),
    ];

    #[test]
    fn an_earlier_run_goes_entirely() {
        let finished = [&[FINISHED][..], &REST].concat();
        let broken_off = [&[(MARK, MARKED)][..], &REST].concat();
        for files in [finished, broken_off] {
            let folder = holding(&files);
            begin(folder.path(), &scenario(Path::new("s.yaml"))).unwrap();
            assert_eq!(names(folder.path()), [MARK]);
        }
        let new = tempfile::tempdir().unwrap();
        let path = new.path().join("a/b");
        begin(&path, &scenario(Path::new("s.yaml"))).unwrap();
        assert_eq!(names(&path), [MARK]);
    }

    #[test]
    fn what_is_not_all_of_a_runs_stays() {
        let cases: &[(&str, &[(&str, &str)])] = &[
            (
                "it contains `notes.txt`",
                &[FINISHED, ("notes.txt", "mine")],
            ),
            (
                "it contains `\\u{1b}`, which no run writes",
                &[FINISHED, ("\u{1b}", "mine")],
            ),
            (
                "it contains `protocols`",
                &[FINISHED, ("protocols/memo.yaml", "mine")],
            ),
            ("it contains `logs`", &[FINISHED, ("logs/x.stdout", "mine")]),
            // The names belong to a run, but no run has finished.
            ("it has no `evidence.json` of a run", &REST),
            (
                "it has no `evidence.json` of a run",
                &[(EVIDENCE, "{\"schema\": 1}")],
            ),
            ("it has no `evidence.json` of a run", &[(EVIDENCE, "mine")]),
            ("it has no `evidence.json` of a run", &[(MARK, "mine")]),
        ];
        for (why, files) in cases {
            let folder = holding(files);
            let before = names(folder.path());
            let error = begin(folder.path(), &scenario(Path::new("s.yaml"))).unwrap_err();
            assert!(matches!(error, ClaimError::Taken { .. }), "{error}");
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(names(folder.path()), before, "{why}");
        }
    }

    #[test]
    fn a_link_is_none_of_a_runs_files() {
        let elsewhere = holding(&[("mine", "mine")]);
        let folder = holding(&[FINISHED]);
        for (name, to) in [("protocols", ""), ("x.stdout", "mine")] {
            let link = folder.path().join(name);
            std::os::unix::fs::symlink(elsewhere.path().join(to), &link).unwrap();
            let error = begin(folder.path(), &scenario(Path::new("s.yaml"))).unwrap_err();
            assert!(matches!(error, ClaimError::Taken { .. }), "{error}");
            fs::remove_file(link).unwrap();
        }
        assert_eq!(names(elsewhere.path()), ["mine"]);
    }

    #[test]
    fn what_the_run_reads_is_not_taken_away() {
        let folder = holding(&[FINISHED, (SCENARIO, TEXT)]);
        let file = folder.path().join(SCENARIO);
        let error = begin(folder.path(), &scenario(&file)).unwrap_err();
        assert!(matches!(error, ClaimError::Reads { .. }), "{error}");
        assert_eq!(names(folder.path()), [EVIDENCE, SCENARIO]);
    }

    #[test]
    fn two_runs_do_not_share_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = scenario(Path::new("s.yaml"));
        let first = begin(folder.path(), &scenario).unwrap();
        fs::write(folder.path().join("get.stdout"), "said").unwrap();
        let error = begin(folder.path(), &scenario).unwrap_err();
        assert!(matches!(error, ClaimError::Busy(_)), "{error}");
        assert_eq!(names(folder.path()), ["get.stdout", MARK]);
        drop(first);
        begin(folder.path(), &scenario).unwrap();
        assert_eq!(names(folder.path()), [MARK]);
    }
}
