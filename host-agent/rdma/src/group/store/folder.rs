//! Store of the ranks' texts in a folder that all ranks can access: each text is a file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{MOST, Store, StoreError};

/// Store of the ranks' texts, in this folder.
pub struct FolderStore(PathBuf);

impl FolderStore {
    /// Creates a store in this folder; the first published text creates the folder.
    pub fn new(folder: &Path) -> Self {
        Self(folder.to_owned())
    }
}

fn file_error(path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::File {
        path: path.clone(),
        source,
    }
}

impl Store for FolderStore {
    fn publish(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
        let path = self.0.join(name);
        // A name that no other process or thread uses, whatever its rank.
        let own = (std::process::id(), std::thread::current().id());
        let part = self.0.join(format!(".{name}-{own:?}"));
        fs::create_dir_all(&self.0).map_err(file_error(&self.0))?;
        fs::write(&part, text).map_err(file_error(&part))?;
        // A hard link instead of a rename, which fails if the file already exists.
        let linked = fs::hard_link(&part, &path);
        let _ = fs::remove_file(&part);
        linked.map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => StoreError::Taken(self.place(name)),
            _ => file_error(&path)(source),
        })
    }

    fn read(&mut self, name: &str) -> Result<Option<String>, StoreError> {
        let path = self.0.join(name);
        match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(metadata) if metadata.len() > MOST as u64 => {
                return Err(StoreError::TooLong(self.place(name)));
            }
            _ => {}
        }
        fs::read_to_string(&path)
            .map(Some)
            .map_err(file_error(&path))
    }

    fn place(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}
