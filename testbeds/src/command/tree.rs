//! Finds, suspends, continues and kills the processes of a program: its process group, and all descendants, in any group.
//!
//! Servers leave their group (PostgreSQL's backends each lead a session), so a signal to the group does not reach all processes.
//! This module reads /proc, repeatedly until the result stays the same, since processes start others meanwhile.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

/// Maximum number of times that the processes are read while new ones keep appearing.
const MAX_POLLS: usize = 64;
/// Time that the kernel may take to deliver a signal: a process that waits for a disk does not receive it.
const PATIENCE: Duration = Duration::from_millis(500);
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Result of a signal to all processes of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Census {
    /// Number of processes that the program has.
    pub processes: u32,
    /// Processes that did not reach the wanted state: process id, and state letter of proc(5).
    pub others: Vec<(i32, char)>,
}

/// A process that is not dead, as read from /proc.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// Process id in this namespace, for signals.
    pid: i32,
    /// Process id by which the process's children name it as their parent.
    known_as: i32,
    parent: i32,
    group: i32,
    state: char,
    /// Start time in clock ticks since the machine's boot: with the process id, it identifies a process uniquely.
    started: u64,
}

/// All processes of the program whose first process is `leader`, which no other thread may reap meanwhile.
#[derive(Debug)]
pub(super) struct Tree {
    leader: Pid,
    found: Vec<Entry>,
}

impl Tree {
    pub fn new(leader: Pid) -> io::Result<Tree> {
        let mut tree = Tree {
            leader,
            found: Vec::new(),
        };
        tree.refresh()?;
        Ok(tree)
    }

    /// Sends a signal to all processes of the program until no new one appears. The signal has to stop or end processes
    /// that start others, or the loop may not end.
    fn signal(&mut self, signal: Signal) -> io::Result<()> {
        let mut signaled: BTreeSet<(i32, u64)> = BTreeSet::new();
        for _ in 0..MAX_POLLS {
            let mut is_new = false;
            for entry in &self.found {
                if signaled.insert((entry.pid, entry.started)) {
                    is_new = true;
                    match kill(Pid::from_raw(entry.pid), signal) {
                        Ok(()) | Err(Errno::ESRCH) => {}
                        Err(errno) => return Err(errno.into()),
                    }
                }
            }
            if !is_new {
                return Ok(());
            }
            self.refresh()?;
        }
        Ok(())
    }

    /// Suspends all processes of the program, and checks that they are stopped.
    ///
    /// A process that has called vfork(2) receives no signal until its child executes another program, and would wait for as long
    /// as the child is stopped. The child is therefore continued for a moment.
    pub fn stop(&mut self) -> io::Result<Census> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.signal(Signal::SIGSTOP)?;
            self.refresh()?;
            let is_stopped = |entry: &&Entry| matches!(entry.state, 'T' | 't');
            let others = self.found.iter().filter(|entry| !is_stopped(entry));
            let others: Vec<&Entry> = others.collect();
            if others.is_empty() || Instant::now() >= deadline {
                return Ok(Census {
                    processes: self.count(),
                    others: others.iter().map(|of| (of.pid, of.state)).collect(),
                });
            }
            let waiting = others.iter().filter(|entry| entry.state == 'D');
            let waiting: BTreeSet<i32> = waiting.map(|entry| entry.known_as).collect();
            let children = self.found.iter().filter(is_stopped);
            for child in children.filter(|child| waiting.contains(&child.parent)) {
                let _ = kill(Pid::from_raw(child.pid), Signal::SIGCONT);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Continues all processes of the program, and checks that they run.
    pub fn go_on(&mut self) -> io::Result<Census> {
        self.signal(Signal::SIGCONT)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let stopped = self.found.iter();
            let stopped = stopped.filter(|entry| matches!(entry.state, 'T' | 't'));
            let others: Vec<_> = stopped.map(|entry| (entry.pid, entry.state)).collect();
            if others.is_empty() || Instant::now() >= deadline {
                let processes = self.count();
                return Ok(Census { processes, others });
            }
            thread::sleep(POLL_INTERVAL);
            self.refresh()?;
        }
    }

    /// Kills all processes of the program, and checks that they are gone; stops them first, so that none can start another.
    pub fn kill(&mut self) -> io::Result<Census> {
        self.signal(Signal::SIGSTOP)?;
        let processes = self.found.len() as u32;
        self.kill_found()?;
        Ok(Census {
            processes,
            others: self.survivors()?,
        })
    }

    /// Kills those of the processes found so far that still exist.
    pub fn kill_found(&mut self) -> io::Result<()> {
        let living = living()?;
        for entry in &self.found {
            if is_there(&living, entry) {
                let _ = kill(Pid::from_raw(entry.pid), Signal::SIGKILL);
            }
        }
        Ok(())
    }

    /// Processes that still exist after a timeout: process id, and state letter of proc(5).
    pub fn survivors(&self) -> io::Result<Vec<(i32, char)>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let living = living()?;
            let left = living.iter().filter(|entry| {
                entry.group == self.leader.as_raw()
                    || self.found.iter().any(|was| is_same(was, entry))
            });
            let left: Vec<_> = left.map(|entry| (entry.pid, entry.state)).collect();
            if left.is_empty() || Instant::now() >= deadline {
                return Ok(left);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Number of the program's processes that were found.
    pub fn count(&self) -> u32 {
        self.found.len() as u32
    }

    /// Reads the processes again: those of the group, those found before, and their children.
    fn refresh(&mut self) -> io::Result<()> {
        let living = living()?;
        let group = self.leader.as_raw();
        let mut is_ours: Vec<bool> = living
            .iter()
            .map(|entry| entry.group == group || self.found.iter().any(|was| is_same(was, entry)))
            .collect();
        loop {
            let parents: BTreeSet<i32> = living
                .iter()
                .zip(&is_ours)
                .filter(|(_, ours)| **ours)
                .map(|(entry, _)| entry.known_as)
                .collect();
            let mut grew = false;
            for (entry, ours) in living.iter().zip(&mut is_ours) {
                if !*ours && parents.contains(&entry.parent) {
                    (*ours, grew) = (true, true);
                }
            }
            if !grew {
                break;
            }
        }
        let ours = living.into_iter().zip(is_ours).filter(|(_, ours)| *ours);
        self.found = ours.map(|(entry, _)| entry).collect();
        Ok(())
    }
}

fn is_same(a: &Entry, b: &Entry) -> bool {
    a.pid == b.pid && a.started == b.started
}

fn is_there(living: &[Entry], entry: &Entry) -> bool {
    living.iter().any(|other| is_same(other, entry))
}

/// All processes of the machine, as far as visible here, that are not dead.
fn living() -> io::Result<Vec<Entry>> {
    let itself = fs::read_link("/proc/self").ok();
    let itself = itself.and_then(|link| link.to_str()?.parse::<i32>().ok());
    // A sandbox may have the /proc of the namespace that it was started from, which has other process ids.
    let is_own = itself == Some(getpid().as_raw());
    let space = |path: &str| fs::metadata(path).ok().map(|of| (of.dev(), of.ino()));
    let own_space = space("/proc/self/ns/pid");
    let mut living = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let name = entry.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        // The process may have ended meanwhile, which is no error.
        let Ok(stat) = fs::read_to_string(format!("/proc/{number}/stat")) else {
            continue;
        };
        let Some(mut entry) = parse(number, &stat) else {
            continue;
        };
        if !is_own {
            if space(&format!("/proc/{number}/ns/pid")) != own_space {
                continue;
            }
            let status = fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
            let inner = |key| innermost(&status, key);
            let (Some(pid), Some(group)) = (inner("NSpid:"), inner("NSpgid:")) else {
                continue;
            };
            (entry.pid, entry.group) = (pid, group);
        }
        if !matches!(entry.state, 'Z' | 'X' | 'x') {
            living.push(entry);
        }
    }
    Ok(living)
}

/// Parses a line of /proc/PID/stat (proc(5)). The process name in it may contain anything, even a parenthesis.
fn parse(number: i32, stat: &str) -> Option<Entry> {
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // From the sixth field on to the twenty-second.
    let started = fields.nth(16)?.parse().ok()?;
    Some(Entry {
        pid: number,
        known_as: number,
        parent,
        group,
        state,
        started,
    })
}

/// Last number of the line `key` of /proc/PID/status: the id in the innermost namespace.
fn innermost(status: &str, key: &str) -> Option<i32> {
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn a_line_of_proc_is_read_whatever_the_program_is_called() {
        let stat = "42 (a) b) T 7 40 40 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2";
        let expected = Entry {
            pid: 42,
            known_as: 42,
            parent: 7,
            group: 40,
            state: 'T',
            started: 987_654,
        };
        assert_eq!(parse(42, stat), Some(expected));
        assert_eq!(parse(1, "1 (x"), None);
        assert_eq!(innermost("Pid:\t9\nNSpid:\t9\t3\n", "NSpid:"), Some(3));
    }

    /// A shell in a group of its own, with a child beside it, and a grandchild in a session of its own.
    fn family() -> Child {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "sleep 61 & setsid sleep 62 & wait"]);
        shell.stdin(Stdio::null()).process_group(0);
        shell.spawn().expect("a shell")
    }

    fn tree_of(child: &Child) -> Tree {
        let leader = Pid::from_raw(child.id() as i32);
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let tree = Tree::new(leader).expect("/proc");
            // The child that runs setsid(1) is in the group until it has exec'd.
            let beside = tree.found.iter().filter(|of| of.group != leader.as_raw());
            if tree.count() == 3 && beside.count() == 1 {
                return tree;
            }
            assert!(Instant::now() < deadline, "{tree:?}");
            thread::sleep(Duration::from_millis(2));
        }
    }

    #[test]
    fn all_of_a_program_stop_go_on_and_die_those_that_left_its_group_too() {
        let mut child = family();
        let mut tree = tree_of(&child);
        let all = Census {
            processes: 3,
            others: Vec::new(),
        };
        assert_eq!(tree.stop().expect("/proc"), all);
        let states = |tree: &mut Tree| -> Vec<char> {
            tree.refresh().expect("/proc");
            tree.found.iter().map(|entry| entry.state).collect()
        };
        assert_eq!(states(&mut tree), ['T'; 3]);
        assert_eq!(tree.go_on().expect("/proc"), all);
        assert!(!states(&mut tree).contains(&'T'));
        // Stopped processes die as well.
        tree.stop().expect("/proc");
        assert_eq!(tree.kill().expect("/proc"), all);
        child.wait().expect("it ends");
        assert_eq!(tree.survivors().expect("/proc"), []);
    }

    /// Shells start programs by vfork(2), and no signal stops them while they wait.
    #[test]
    fn a_shell_that_starts_programs_all_the_time_stands_still_each_time() {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "while :; do /bin/true; done"]);
        shell.stdin(Stdio::null()).process_group(0);
        let mut child = shell.spawn().expect("a shell");
        let leader = Pid::from_raw(child.id() as i32);
        let rounds: Vec<Census> = (0..200)
            .flat_map(|_| {
                let mut tree = Tree::new(leader).expect("/proc");
                let stopped = tree.stop().expect("/proc");
                [stopped, tree.go_on().expect("/proc")]
            })
            .collect();
        Tree::new(leader).expect("/proc").kill().expect("/proc");
        child.wait().expect("it ends");
        for (round, census) in rounds.iter().enumerate() {
            assert_eq!(census.others, [], "{round}: {census:?}");
        }
    }
}
