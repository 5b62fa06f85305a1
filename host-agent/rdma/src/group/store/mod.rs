//! Where ranks leave what the others have to know: texts under names, each written once.
//!
//! | file | what |
//! |---|---|
//! | `folder.rs` | a folder that all see |
//! | `tcp.rs` | rank 0's memory, over TCP |
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

/// The longest text: a line of 120 bytes for each of several queue pairs of 4,096 ranks.
const MOST: usize = 1 << 22;

/// See the module.
pub trait Store {
    /// Leaves a text under a name, all of it at once.
    ///
    /// # Errors
    /// [`StoreError`]: one is there already, or the store is not to be reached.
    fn publish(&mut self, name: &str, text: &str) -> Result<(), StoreError>;

    /// What is under a name, once it is there.
    ///
    /// # Errors
    /// [`StoreError`]: the store is not to be reached.
    fn look(&mut self, name: &str) -> Result<Option<String>, StoreError>;

    /// For people: where that is.
    fn place(&self, name: &str) -> String;
}

/// Why a store does not do what it is asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file cannot be written or read.
    #[error("cannot read or write {}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Somebody has left a text there.
    #[error("{0} is there already")]
    Taken(String),
    /// A text is longer than any that ranks leave.
    #[error("{0} is longer than what ranks leave")]
    TooLong(String),
    /// The address is somebody's, or not here.
    #[error("cannot listen on {address}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// Who keeps the store is not there, or not any more.
    #[error("who keeps what ranks leave is not to be reached at {address}")]
    Gone {
        /// Where it should be.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// Somebody else is there.
    #[error("who answers at {0} keeps nothing for ranks")]
    Strange(SocketAddr),
}
