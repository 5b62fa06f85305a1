//! Folders for the user's programs, which are removed at the end of the run.
//!
//! The folders are in memory, mounted where only the sandbox sees them: the kernel removes them when the sandbox ends.
//! If the mount is refused, they are in an ordinary temporary folder, which is removed when this value is dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use tempfile::TempDir;

/// Folders in which the programs' folder may be mounted: every Linux has them, mostly empty, so a mount hides nothing,
/// and a killed run leaves no folder of ours.
const POINTS: [&str; 3] = ["/mnt", "/media", "/srv"];

/// A folder that contains a folder for each program of a run.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// The ordinary temporary folder; `None` if the folder is mounted in memory.
    temporary: Option<TempDir>,
}

impl Scratch {
    /// Creates an empty folder in memory, or an ordinary temporary one if the mount is refused.
    pub fn new() -> io::Result<Scratch> {
        let is_empty = |point: &&&str| {
            let entries = fs::read_dir(point);
            entries.is_ok_and(|mut entries| entries.next().is_none())
        };
        if crate::sandbox::is_inside()
            && let Some(point) = POINTS.iter().find(is_empty)
        {
            let none: Option<&str> = None;
            let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
            if mount(Some("weir"), *point, Some("tmpfs"), flags, none).is_ok() {
                return Ok(Scratch {
                    path: point.into(),
                    temporary: None,
                });
            }
        }
        let temporary = tempfile::Builder::new().prefix("weir-").tempdir()?;
        Ok(Scratch {
            path: temporary.path().to_owned(),
            temporary: Some(temporary),
        })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a folder with this name for a program.
    pub fn folder(&self, name: &str) -> io::Result<PathBuf> {
        use std::os::unix::fs::DirBuilderExt;
        let path = self.path().join(name);
        // Servers refuse to keep their data where others may read it.
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.temporary.is_none() {
            // A process that still has a file open keeps that file.
            let _ = umount2(&self.path, MntFlags::MNT_DETACH);
        }
    }
}
