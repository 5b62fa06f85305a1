//! The user as whom a user's program runs: the calling user, not the root of the sandbox.
//!
//! Inside the sandbox the caller is root, so that networks can be created. Many servers refuse to run as root (PostgreSQL,
//! memcached) or try to change to another user (nginx), which does not exist in a namespace with a single user. A program
//! therefore gets its own user namespace inside, in which the same user has another number: the caller's, or that of nobody if
//! root calls. Access rights to files are the same everywhere.

use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::AsFd;

use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, unshare};
use nix::sys::stat::Mode;
use nix::unistd::{getegid, geteuid, write};

use crate::host::Host;

/// User id that Linux gives to unknown users.
const NOBODY: u32 = 65_534;

/// User id and group id that a program sees as its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// The user who called this process, which may be in a sandbox.
    pub fn caller() -> User {
        let outside = |path: &str, own: u32| {
            let map = fs::read_to_string(path).unwrap_or_default();
            let number = outer(&map, own).unwrap_or(own);
            // The program must not be root.
            if number == 0 { NOBODY } else { number }
        };
        User {
            uid: outside("/proc/self/uid_map", geteuid().as_raw()),
            gid: outside("/proc/self/gid_map", getegid().as_raw()),
        }
    }

    /// The uid and gid maps of the user namespace in which a child process becomes this user.
    pub(super) fn map(self) -> Map {
        let line = |inside: u32, own: u32| format!("{inside} {own} 1").into_bytes();
        Map {
            uid: line(self.uid, geteuid().as_raw()),
            gid: line(self.gid, getegid().as_raw()),
        }
    }
}

/// The id outside of a user namespace for the id `own` inside; `map` is the content of its uid_map or gid_map.
fn outer(map: &str, own: u32) -> Option<u32> {
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(|word| word.parse::<u32>().ok());
        let (inside, outside, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
        let offset = own.checked_sub(inside).filter(|offset| *offset < count)?;
        outside.checked_add(offset)
    })
}

/// The uid and gid maps of a user namespace, made before fork(2).
pub(super) struct Map {
    uid: Vec<u8>,
    gid: Vec<u8>,
}

impl Map {
    /// Moves the calling process, which has one thread, into a user namespace with these maps. Async-signal-safe.
    pub(super) fn enter(&self) -> io::Result<()> {
        unshare(CloneFlags::CLONE_NEWUSER)?;
        let put = |path: &CStr, text: &[u8]| -> io::Result<()> {
            let file = open(path, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty())?;
            write(file.as_fd(), text)?;
            Ok(())
        };
        put(c"/proc/self/setgroups", b"deny")?;
        put(c"/proc/self/uid_map", &self.uid)?;
        put(c"/proc/self/gid_map", &self.gid)
    }
}

/// Allows all users in a host two harmless operations that need privileges: binding ports below 1024, and ping.
pub fn open_host(host: &Host) -> io::Result<()> {
    host.namespace().run(|| {
        // These files belong to the calling thread's network namespace.
        fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")?;
        fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_translates_numbers_to_those_outside() {
        assert_eq!(outer("         0       1000          1\n", 0), Some(1000));
        assert_eq!(outer("         0          0 4294967295\n", 0), Some(0));
        assert_eq!(outer("0 1000 1\n1 100000 65536\n", 5), Some(100_004));
        assert_eq!(outer("0 1000 1\n", 5), None);
        assert_eq!(outer("", 0), None);
    }
}
