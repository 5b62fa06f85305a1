//! External programs that tests use: their purpose, and how they are found and installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::limited;

/// Seconds that installing a package with its dependencies may take.
const APT_S: u32 = 420;

/// A program that some tests need.
pub struct Wanted {
    /// Executable looked up on PATH.
    pub program: &'static str,
    /// Debian package.
    pub package: &'static str,
    /// Feature that is not tested without the program.
    pub purpose: &'static str,
}

/// Debian packages that tests need.
pub const WANTED: &[Wanted] = &[
    Wanted {
        program: "redis-server",
        package: "redis-server",
        purpose: "faults on a real Redis",
    },
    Wanted {
        program: "nginx",
        package: "nginx",
        purpose: "faults on nginx",
    },
    Wanted {
        program: "curl",
        package: "curl",
        purpose: "faults on nginx",
    },
    Wanted {
        program: "ab",
        package: "apache2-utils",
        purpose: "faults on nginx under load",
    },
    Wanted {
        program: "dig",
        package: "bind9-dnsutils",
        purpose: "faults on a name server",
    },
    Wanted {
        program: "dnsmasq",
        package: "dnsmasq-base",
        purpose: "faults on a name server",
    },
    Wanted {
        program: "haproxy",
        package: "haproxy",
        purpose: "faults on a load balancer",
    },
    Wanted {
        program: "iperf3",
        package: "iperf3",
        purpose: "faults on bulk TCP",
    },
    Wanted {
        program: "memcached",
        package: "memcached",
        purpose: "faults on memcached",
    },
    Wanted {
        program: "memcslap",
        package: "libmemcached-tools",
        purpose: "faults on memcached",
    },
    Wanted {
        program: "pgbench",
        package: "postgresql",
        purpose: "faults on PostgreSQL",
    },
    Wanted {
        program: "ping",
        package: "iputils-ping",
        purpose: "faults on ping",
    },
    Wanted {
        program: "redis-sentinel",
        package: "redis-sentinel",
        purpose: "Redis that fails over",
    },
    Wanted {
        program: "tshark",
        package: "tshark",
        purpose: "the Lua dissector of the aggregation header",
    },
    Wanted {
        program: "python3",
        package: "python3-venv",
        purpose: "p4runtime-shell against our P4Runtime server",
    },
    Wanted {
        program: "java",
        package: "openjdk-17-jre-headless",
        purpose: "faults on Kafka",
    },
    Wanted {
        program: "kcat",
        package: "kcat",
        purpose: "faults on Kafka",
    },
    Wanted {
        program: "npm",
        package: "npm",
        purpose: "faults on Kafka, which a package of npm's carries",
    },
    // Unpacks the kernel of the virtual machines: they also boot without it, three times as slowly.
    Wanted {
        program: "xz",
        package: "xz-utils",
        purpose: "virtual machines that boot fast",
    },
    Wanted {
        program: "mn",
        package: "mininet",
        purpose: "the Mininet topologies",
    },
];

/// P4 programs that no registry has: used if found, never installed.
pub const OPTIONAL: &[Wanted] = &[
    Wanted {
        program: "p4c-bm2-psa",
        package: "p4c",
        purpose: "p4c's verdict on the PSA program",
    },
    Wanted {
        program: "p4c-bm2-ss",
        package: "p4c",
        purpose: "p4c's verdict on the v1model program",
    },
    Wanted {
        program: "p4test",
        package: "p4c",
        purpose: "p4c's verdict on the TNA program",
    },
    Wanted {
        program: "simple_switch_grpc",
        package: "BMv2",
        purpose: "the packet vectors on BMv2's v1model",
    },
    Wanted {
        program: "psa_switch",
        package: "BMv2",
        purpose: "the packet vectors on BMv2's PSA",
    },
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

/// Installs missing packages where possible: as root, on a system with apt. Services are kept from starting.
/// Failure is no error: the tests that need the packages are then skipped by name.
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
    let install = ["install", "-y", "--no-install-recommends"];
    if !apt(&[&install[..], &missing].concat()) {
        // One by one, so that an unavailable package does not prevent the others.
        for package in missing {
            if !apt(&[&install[..], &[package]].concat()) {
                println!("could not install {package}");
            }
        }
    }
    drop(policy);
}

/// Installs these packages if necessary; returns whether all are installed.
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
    let install = ["install", "-y", "--no-install-recommends"];
    let is_done = apt(&[&install[..], &missing].concat());
    drop(policy);
    if !is_done {
        println!("could not install {}", missing.join(", "));
    }
    is_done
}

/// Updates apt's package lists, where possible.
pub fn update() {
    if has_apt() {
        apt(&["update"]);
    }
}

fn has_apt() -> bool {
    is_root() && found("apt-get")
}

/// Runs `apt-get`, which waits a minute for other apt processes.
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

/// Debian's hook that decides whether a package may start its service: 101 means no. An existing policy is left alone.
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
