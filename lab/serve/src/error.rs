//! Why the service does not start.

use core::net::SocketAddr;
use std::io;
use std::path::PathBuf;

use brickyard_host::HostError;
use thiserror::Error;

/// Why the service does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {why}; give another address with --listen")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        why: io::Error,
    },
    /// There is no such user.
    #[error("there is no user {name}; create it, or name another one with --user")]
    NoUser {
        /// Its name.
        name: String,
    },
    /// Root could not be given up.
    #[error("cannot give up root: {0}; --user root keeps it")]
    Privileges(io::Error),
    /// The folder of the history cannot be used.
    #[error("cannot write the history to {}: {why}; the user that the service becomes (--user) must be able to write there", folder.display())]
    History {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The host cannot be read at all.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A thread cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
