//! External programs that tests use: their purpose, and how they are found and installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::limited;

/// Time limit of installing packages with their dependencies, in seconds.
const APT_S: u32 = 420;

/// A program that some tests need, and the Debian package that has it.
pub struct Wanted {
    /// Name of the executable, which is looked up on PATH.
    pub program: &'static str,
    /// Name of the Debian package that has the program.
    pub package: &'static str,
    /// Feature that is not tested without the program.
    pub purpose: &'static str,
}

const fn wanted(program: &'static str, package: &'static str, purpose: &'static str) -> Wanted {
    Wanted {
        program,
        package,
        purpose,
    }
}

/// Programs from Debian packages that tests need.
pub const WANTED: &[Wanted] = &[
    wanted("redis-server", "redis-server", "faults on a real Redis"),
    wanted("nginx", "nginx", "faults on nginx"),
    wanted("curl", "curl", "faults on nginx"),
    wanted("ab", "apache2-utils", "faults on nginx under load"),
    wanted("dig", "bind9-dnsutils", "faults on a name server"),
    wanted("dnsmasq", "dnsmasq-base", "faults on a name server"),
    wanted("haproxy", "haproxy", "faults on a load balancer"),
    wanted("iperf3", "iperf3", "faults on bulk TCP"),
    wanted("memcached", "memcached", "faults on memcached"),
    wanted("memcslap", "libmemcached-tools", "faults on memcached"),
    wanted("pgbench", "postgresql", "faults on PostgreSQL"),
    wanted("ping", "iputils-ping", "faults on ping"),
    wanted("redis-sentinel", "redis-sentinel", "Redis that fails over"),
    wanted(
        "tshark",
        "tshark",
        "the Lua dissector of the aggregation header",
    ),
    wanted(
        "python3",
        "python3-venv",
        "p4runtime-shell against our P4Runtime server",
    ),
    wanted("java", "openjdk-17-jre-headless", "faults on Kafka"),
    wanted("kcat", "kcat", "faults on Kafka"),
    wanted("npm", "npm", "faults on Kafka, from a package of npm"),
    // Unpacks the virtual machines' kernel; without it they boot in three times the time.
    wanted("xz", "xz-utils", "virtual machines that boot fast"),
    wanted("mn", "mininet", "the Mininet topologies"),
];

/// P4 programs that no package registry has: tests use these programs if they are on PATH; nothing installs them.
pub const OPTIONAL: &[Wanted] = &[
    wanted("p4c-bm2-psa", "p4c", "p4c's verdict on the PSA program"),
    wanted("p4c-bm2-ss", "p4c", "p4c's verdict on the v1model program"),
    wanted("p4test", "p4c", "p4c's verdict on the TNA program"),
    wanted(
        "simple_switch_grpc",
        "BMv2",
        "the packet vectors on BMv2's v1model",
    ),
    wanted("psa_switch", "BMv2", "the packet vectors on BMv2's PSA"),
];

/// Whether a program is on PATH.
pub fn found(program: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| {
        std::env::split_paths(&path).any(|dir| is_executable(&dir.join(program)))
    })
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Installs missing packages if this process is root and the system has apt. The services of these packages
/// do not start. Failure is not an error: tests that need the packages are then skipped by name.
pub fn install_missing() {
    let missing: Vec<&str> = WANTED
        .iter()
        .filter(|w| !found(w.program))
        .map(|w| w.package)
        .collect();
    if missing.is_empty() {
        return;
    }
    if !has_apt() {
        println!("not installed (needs root and apt): {}", missing.join(", "));
        return;
    }
    println!("installing {}", missing.join(", "));
    let policy = ServicePolicy::forbid();
    apt(&["update"]);
    if !install(&missing) {
        // One by one, so that an unavailable package does not prevent the others.
        for package in missing {
            if !install(&[package]) {
                println!("could not install {package}");
            }
        }
    }
    drop(policy);
}

/// Installs these Debian packages if necessary; returns whether all are installed. `what` names their purpose in messages.
pub fn install_for(what: &str, packages: &[&str]) -> bool {
    let is_installed = |package: &&&str| {
        let mut query = Command::new("dpkg-query");
        query.args(["-W", "-f=${db:Status-Status}", package]);
        query
            .stderr(Stdio::null())
            .output()
            .is_ok_and(|output| output.stdout == b"installed")
    };
    let missing = packages.iter().filter(|package| !is_installed(package));
    let missing: Vec<&str> = missing.copied().collect();
    if missing.is_empty() {
        return true;
    }
    if !has_apt() {
        let missing = missing.join(", ");
        println!("not installed for {what} (needs root and apt): {missing}");
        return false;
    }
    println!("installing for {what}: {}", missing.join(", "));
    let policy = ServicePolicy::forbid();
    apt(&["update"]);
    let is_done = install(&missing);
    drop(policy);
    if !is_done {
        println!("could not install {}", missing.join(", "));
    }
    is_done
}

/// Updates apt's package lists if this process may.
pub fn update() {
    if has_apt() {
        apt(&["update"]);
    }
}

fn has_apt() -> bool {
    is_root() && found("apt-get")
}

fn install(packages: &[&str]) -> bool {
    apt(&[&["install", "-y", "--no-install-recommends"], packages].concat())
}

/// Runs `apt-get`, which waits up to a minute for other apt processes; returns whether it succeeded.
fn apt(args: &[&str]) -> bool {
    limited(APT_S, "apt-get")
        .args([
            "-qq",
            "-o",
            "Dpkg::Use-Pty=0",
            "-o",
            "DPkg::Lock::Timeout=60",
        ])
        .args(args)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|out| out.stdout.trim_ascii() == b"0")
}

/// Hook by which Debian asks whether a package may start its service: exit code 101 means no. An existing hook stays.
struct ServicePolicy {
    ours: Option<PathBuf>,
}

impl ServicePolicy {
    fn forbid() -> Self {
        use std::os::unix::fs::PermissionsExt;
        let path = PathBuf::from("/usr/sbin/policy-rc.d");
        if path.exists() || std::fs::write(&path, "#!/bin/sh\nexit 101\n").is_err() {
            return Self { ours: None };
        }
        let _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755));
        Self { ours: Some(path) }
    }
}

impl Drop for ServicePolicy {
    fn drop(&mut self) {
        if let Some(path) = &self.ours {
            let _ = std::fs::remove_file(path);
        }
    }
}
