//! Stores by which ranks exchange texts: each text has a name, and is written once.
//!
//! | file | store |
//! |---|---|
//! | `folder.rs` | a folder that all ranks can access |
//! | `tcp.rs` | memory of rank 0, over TCP |
//! | `torch.rs` | torch's `TCPStore` |

mod folder;
mod tcp;
mod torch;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use folder::FolderStore;
pub use tcp::TcpStore;
pub use torch::TorchStore;

/// Maximum length of a text in bytes: enough for lines of 120 bytes, several for each of 4,096 ranks.
const MOST: usize = 1 << 22;

/// A store of named texts that all ranks of a group can access.
pub trait Store {
    /// Publishes a text under a name, atomically.
    ///
    /// # Errors
    /// [`StoreError`], if the name has a text already, or the store cannot be reached.
    fn publish(&mut self, name: &str, text: &str) -> Result<(), StoreError>;

    /// Reads the text with a name; `None` if no rank has published it yet.
    ///
    /// # Errors
    /// [`StoreError`], if the store cannot be reached.
    fn read(&mut self, name: &str) -> Result<Option<String>, StoreError>;

    /// Name and location of a text in this store, for error messages.
    fn place(&self, name: &str) -> String;
}

/// Reason why a store could not publish or read a text.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file of the store cannot be written or read.
    #[error("cannot read or write {}", .path.display())]
    File {
        /// Path of the file in the store's folder.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// A text with this name has already been published.
    #[error("{0} already exists")]
    Taken(String),
    /// The text with this name exceeds the maximum length.
    #[error("{0} is longer than the text of a rank")]
    TooLong(String),
    /// Rank 0 cannot listen at the store's address, which is in use or not local.
    #[error("cannot listen on {address}")]
    Listen {
        /// The store's address.
        address: SocketAddr,
        /// Error of the system call.
        source: io::Error,
    },
    /// The server of the store cannot be reached.
    #[error("cannot reach the store at {address}")]
    Gone {
        /// Address of the server.
        address: SocketAddr,
        /// Error of the system call.
        source: io::Error,
    },
    /// The server at this address does not speak the store's protocol.
    #[error("the server at {0} is not a store")]
    Strange(SocketAddr),
}
