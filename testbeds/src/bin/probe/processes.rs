//! Experiments with processes in hosts, with what a killed weir leaves, and with refused sandboxes.

use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;

use testbeds::host::{Host, Output, Process};

use super::hosts::{Outcome, two_hosts};

/// Tests a process in a host: its output, its standard input, its death.
pub fn processes() -> Outcome {
    let host = Host::new("a")?;
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "echo ready; read line; echo \"got $line\"; echo trouble >&2; exit 3",
    ]);
    let mut process = host.spawn(shell)?;
    println!("{:?}", process.next_line(Duration::from_secs(5)));
    process.write_line("go")?;
    println!("{:?}", process.next_line(Duration::from_secs(5)));
    println!("{:?}", process.next_line(Duration::from_secs(5)));
    let status = process.wait(Duration::from_secs(5))?.ok_or("it runs on")?;
    println!("{:?} {:?}", status.code(), process.stderr());
    let mut sleeper = Command::new("sh");
    sleeper.args(["-c", "echo up; sleep 1000 & wait"]);
    let mut sleeper = host.spawn(sleeper)?;
    assert_eq!(
        sleeper.next_line(Duration::from_secs(5)),
        Output::Line("up".into())
    );
    drop(sleeper);
    println!("sleepers {}", count_processes("sleep"));
    let mut here = Command::new("readlink");
    here.arg("/proc/self/ns/net");
    let spawn = || Process::spawn("a", here).map_err(io::Error::other);
    let line = host
        .namespace()
        .run(spawn)?
        .next_line(Duration::from_secs(5));
    let namespace = || std::fs::read_link("/proc/thread-self/ns/net");
    let expected = host.namespace().run(namespace)?.display().to_string();
    println!(
        "in its starter's namespace {}",
        line == Output::Line(expected)
    );
    Ok(())
}

fn count_processes(name: &str) -> usize {
    let Ok(folders) = std::fs::read_dir("/proc") else {
        return usize::MAX;
    };
    folders
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok())
        .filter(|comm| comm.trim() == name)
        .count()
}

/// Tests that root enters a sandbox without a user namespace where only user namespaces are forbidden.
pub fn root_without_user_namespace() -> Outcome {
    std::fs::write("/proc/sys/user/max_user_namespaces", "0")?;
    let output = Command::new(std::env::current_exe()?)
        .arg("exchange")
        .output()?;
    print!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

/// Waits in a sandbox, with an interface and a process, until this program is killed.
pub fn stay() -> Outcome {
    let _hosts = two_hosts(true)?;
    let mut sleeper = Command::new("sleep");
    sleeper.arg("1000");
    let _sleeper = Process::spawn("here", sleeper)?;
    println!("staying");
    std::io::stdout().flush()?;
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}

/// Waits without a sandbox, with a process that was started by an ended thread, until this program is killed.
pub fn stay_without_sandbox() -> Outcome {
    let starter = std::thread::spawn(|| {
        let mut sleeper = Command::new("sleep");
        sleeper.arg("1000");
        Process::spawn("here", sleeper)
    });
    let mut sleeper = starter.join().map_err(|_| "the thread panicked")??;
    if let Some(status) = sleeper.wait(Duration::from_millis(100))? {
        return Err(format!("it ended with its thread: {status}").into());
    }
    println!("staying");
    std::io::stdout().flush()?;
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}

/// Forbids user namespaces in a sandbox, if permitted, and tries to enter another sandbox from a process that is not root.
pub fn refused() -> Outcome {
    std::fs::write("/proc/sys/user/max_user_namespaces", "0")?;
    // Without its capabilities even root is an ordinary user.
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-all", "--inh-caps=-all"])
        .arg(std::env::current_exe()?)
        .arg("exchange");
    let output = command.output()?;
    println!("{:?}", output.status.code());
    print!("{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}
