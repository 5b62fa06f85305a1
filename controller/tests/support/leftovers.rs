//! Runs `weir` to its end, and requires that nothing of it is left: no process, namespace, interface or file.
//!
//! It runs in network and mount namespaces of its own, in which all that is new is its own, whatever others do on the machine
//! meanwhile.
#![allow(dead_code)]

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Finished, Running, skip, weir};

/// Name of the variable by which the processes of a run are told from all others: they inherit it.
const MARK: &str = "WEIR_TEST_RUN";
/// The kernel ends the processes of a PID namespace, and removes the interfaces of a network namespace, after the run's own
/// process has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// A run of `weir`, and what is there before it.
pub struct Watched {
    mark: String,
    command: Command,
    temporary: tempfile::TempDir,
    namespaces: Option<Namespaces>,
}

impl Watched {
    /// `weir` with arguments, in a folder.
    pub fn weir(folder: &Path, args: &[&str]) -> Watched {
        Watched::command(weir(folder, args))
    }

    /// Some other command that ends up as `weir`. Its standard input is empty, whatever it was.
    pub fn command(command: Command) -> Watched {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let temporary = tempfile::tempdir().unwrap();
        let namespaces = Namespaces::create();
        if namespaces.is_none() {
            skip(
                "interfaces and namespaces that are left",
                "unshare, nsenter, ip, mount or unprivileged namespaces",
            );
        }
        let mut command = match &namespaces {
            Some(namespaces) => namespaces.enter(&command),
            None => command,
        };
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .env(MARK, &mark)
            .env("TMPDIR", temporary.path())
            .env("RUST_BACKTRACE", "1");
        Watched {
            mark,
            command,
            temporary,
            namespaces,
        }
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Watched {
        self.command.env(name, value);
        self
    }

    /// Sets the standard input.
    pub fn stdin(mut self, input: impl Into<Stdio>) -> Watched {
        self.command.stdin(input);
        self
    }

    /// Runs it to its end; nothing is left then, and nothing panicked.
    #[track_caller]
    pub fn run(self) -> Finished {
        self.run_while(|_| {})
    }

    /// The same, while something is done to it.
    #[track_caller]
    pub fn run_while(mut self, during: impl FnOnce(&mut Child)) -> Finished {
        let mut child = self.command.spawn().expect("it starts");
        // Read meanwhile: a program whose pipe is full waits.
        let stdout = read(child.stdout.take().expect("a pipe"));
        let stderr = read(child.stderr.take().expect("a pipe"));
        during(&mut child);
        let finished = Finished {
            code: child.wait().expect("it ends").code(),
            stdout: stdout.join().expect("its output"),
            stderr: stderr.join().expect("its output"),
        };
        for trace in ["panicked", "backtrace", "RUST_BACKTRACE"] {
            assert!(
                !finished.stderr.contains(trace) && !finished.stdout.contains(trace),
                "{finished:?}"
            );
        }
        let deadline = Instant::now() + PATIENCE;
        while !self.left().is_empty() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        let left = self.left();
        for (pid, _) in processes(&self.mark) {
            let _ = Command::new("kill").arg("-KILL").arg(pid).status();
        }
        assert!(left.is_empty(), "left behind: {left:#?}");
        finished
    }

    /// All that was not there before the run.
    fn left(&self) -> Vec<String> {
        let processes = processes(&self.mark).into_iter();
        let mut left: Vec<_> = processes
            .map(|(pid, line)| format!("process {pid}: {line}"))
            .collect();
        left.extend(self.namespaces.iter().flat_map(Namespaces::left));
        let files = files(self.temporary.path()).into_iter();
        left.extend(files.map(|name| format!("file {name} in TMPDIR")));
        left
    }
}

/// Reads a pipe to its end, in a thread.
fn read(mut pipe: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Network and mount namespaces with nothing but a loopback device and an empty `/run`. A process holds them.
struct Namespaces {
    holder: Running,
    nsenter: PathBuf,
    before: BTreeSet<String>,
}

/// Prepares the namespaces, reports that, and holds them until its standard input ends.
const HOLD: &str = "mount -t tmpfs tmpfs /run && ip link set lo up && echo ready && exec cat";

impl Namespaces {
    /// `None` if this machine has no such namespaces, or not the programs that make them.
    fn create() -> Option<Namespaces> {
        let mut command = Command::new("unshare");
        if !is_root() {
            // The holder needs capabilities to prepare them; what enters has none, as outside.
            command.args(["--user", "--map-current-user", "--keep-caps"]);
        }
        command.args(["--net", "--mount", "sh", "-c", HOLD]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = Running(command.stderr(Stdio::null()).spawn().ok()?);
        let mut ready = [0; 6];
        holder.0.stdout.as_mut()?.read_exact(&mut ready).ok()?;
        let mut namespaces = Namespaces {
            holder,
            nsenter: on_path("nsenter")?,
            before: BTreeSet::new(),
        };
        // Where namespaces can be made and not entered, this fails.
        let mut probe = namespaces.enter(&Command::new("true"));
        let status = probe.stderr(Stdio::null()).status();
        namespaces.before = namespaces.contents();
        status
            .is_ok_and(|status| status.success())
            .then_some(namespaces)
    }

    /// The same command, inside. The process becomes the command: its id, its signals and its status are the command's.
    fn enter(&self, command: &Command) -> Command {
        // Found now: the command may have a PATH of its own.
        let mut inside = Command::new(&self.nsenter);
        inside.args([
            "--target",
            &self.holder.0.id().to_string(),
            "--net",
            "--mount",
        ]);
        if !is_root() {
            inside.args(["--user", "--preserve-credentials"]);
        }
        // A process that changes its mount namespace loses its working directory.
        inside.args(["--", "/bin/sh", "-c", "cd \"$0\" && exec \"$@\""]);
        let folder = command.get_current_dir().map(Path::to_owned);
        inside.arg(folder.unwrap_or_else(|| std::env::current_dir().unwrap()));
        inside.arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(name, value),
                None => inside.env_remove(name),
            };
        }
        inside
    }

    fn left(&self) -> BTreeSet<String> {
        &self.contents() - &self.before
    }

    /// Interfaces, and what is in `/run`: named network namespaces among it.
    fn contents(&self) -> BTreeSet<String> {
        let process = Path::new("/proc").join(self.holder.0.id().to_string());
        let interfaces = fs::read_to_string(process.join("net/dev")).unwrap();
        let names = interfaces.lines().filter_map(|line| line.split_once(':'));
        let mut contents: BTreeSet<_> = names
            .map(|(name, _)| format!("interface {}", name.trim()))
            .collect();
        let mut folders = vec![process.join("root/run")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let inside = path.strip_prefix(process.join("root")).unwrap();
                contents.insert(format!("file /{}", inside.display()));
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                }
            }
        }
        contents
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|folder| folder.join(program));
    found.find(|file| file.is_file())
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Numbers and command lines of the processes that carry the mark.
fn processes(mark: &str) -> Vec<(String, String)> {
    let wanted = format!("{MARK}={mark}");
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let marked = pids.filter(|pid| {
        let environment = fs::read(pid.path().join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == wanted.as_bytes())
    });
    marked
        .map(|pid| {
            let line = fs::read_to_string(pid.path().join("cmdline")).unwrap_or_default();
            (
                pid.file_name().to_string_lossy().into_owned(),
                line.replace('\0', " "),
            )
        })
        .collect()
}

/// Names of the files in a folder, in order.
pub fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
