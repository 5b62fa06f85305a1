//! Stores for the ranks' texts: each text has a name, and is written once.
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

/// Maximum length of a text: a line of 120 bytes for each of several queue pairs of 4,096 ranks.
const MOST: usize = 1 << 22;

/// A store of named texts.
pub trait Store {
    /// Publishes a text under a name, atomically.
    ///
    /// # Errors
    /// [`StoreError`], if there is one already or the store cannot be reached.
    fn publish(&mut self, name: &str, text: &str) -> Result<(), StoreError>;

    /// Reads the text with a name; `None` if it is not published yet.
    ///
    /// # Errors
    /// [`StoreError`], if the store cannot be reached.
    fn read(&mut self, name: &str) -> Result<Option<String>, StoreError>;

    /// Location of a text, for error messages.
    fn place(&self, name: &str) -> String;
}

/// Reason why a store refused an operation.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be written or read.
    #[error("cannot read or write {}", .path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The text has already been published.
    #[error("{0} already exists")]
    Taken(String),
    /// A text exceeds the maximum length.
    #[error("{0} is longer than the text of a rank")]
    TooLong(String),
    /// The address is in use or not local.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The server of the store cannot be reached.
    #[error("cannot reach the store at {address}")]
    Gone {
        /// Its address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// The server does not speak the store's protocol.
    #[error("the server at {0} is not a store")]
    Strange(SocketAddr),
}
