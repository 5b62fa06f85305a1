//! Network namespace with two virtual Ethernet cables, and the programs that run at their ends.

use super::super::bmv2::Rival;
use super::super::files::{read, write};
use super::rings::Sender;
use anyhow::{Context, Result, bail, ensure};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Environment variable with the role of this program in the network namespace.
const ROLE: &str = "WEIR_BENCH_ROLE";
/// Role of the plain forwarder, which only copies frames between rings.
pub const FORWARDER: &str = "forwarder";
/// Destination MAC address that the switch's program forwards to port 2.
const FRAME_DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Runs this program in a private user and network namespace, as `role` of `subject`, with this
/// environment variable if any; returns the process's output. If the namespace cannot be created or
/// the measurement fails, the error has the last line that the process wrote to stderr.
pub fn in_namespace(
    subject: &str,
    role: &str,
    variables: Option<(&str, OsString)>,
) -> Result<String> {
    let mut child = Command::new("unshare")
        .envs(variables)
        .args(["-rn", "--"])
        .arg(std::env::current_exe()?)
        .args(["bench", subject])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run unshare")?;
    let errors = BufReader::new(child.stderr.take().context("no error output")?);
    let reader = std::thread::spawn(move || {
        let mut last = String::new();
        for line in errors.lines().map_while(Result::ok) {
            eprintln!("{line}");
            last = line;
        }
        last
    });
    let output = child.wait_with_output()?;
    let last = reader.join().map_err(|_| anyhow::anyhow!("a panic"))?;
    ensure!(output.status.success(), "{role} in a namespace: {last}");
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs a role in a namespace as [`in_namespace`] does; returns the `N` numbers that it prints.
pub fn numbers_in_namespace<const N: usize>(subject: &str, role: &str) -> Result<[f64; N]> {
    let text = in_namespace(subject, role, None)?;
    let numbers: Result<Vec<f64>, _> = text.split_whitespace().map(str::parse).collect();
    let numbers = numbers.ok().and_then(|numbers| numbers.try_into().ok());
    numbers.with_context(|| format!("the measurement printed {text:?}"))
}

/// Role of this process, if it runs in the network namespace; otherwise `None`.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Creates two virtual Ethernet cables, with the interfaces s1 and h1, s2 and h2.
pub fn lay_cables() -> Result<()> {
    for (switch, host) in [("s1", "h1"), ("s2", "h2")] {
        ip(&format!("link add {switch} type veth peer name {host}"))?;
        for name in [switch, host] {
            // Without IPv6, only the benchmark sends frames.
            write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1")?;
            ip(&format!("link set {name} up"))?;
        }
    }
    Ok(())
}

/// Runs the command `ip` with these arguments, separated by spaces.
pub fn ip(arguments: &str) -> Result<()> {
    let mut ip = Command::new("ip");
    let status = ip.args(arguments.split(' ')).status();
    ensure!(
        status.context("cannot run ip")?.success(),
        "ip {arguments} failed"
    );
    Ok(())
}

/// Number of frames that an interface has received.
pub fn received(interface: &str) -> Result<u64> {
    let table = read("/proc/self/net/dev")?;
    let counters = table
        .lines()
        .find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'));
    let frames = counters.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    frames.with_context(|| format!("no counters of {interface}"))
}

/// A process that is killed when this value is dropped.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a switch with an L2 program between the interfaces s1 and s2, on processor `cpu` if given.
pub fn switch(weir: &Path, cpu: Option<usize>) -> Result<Running> {
    switch_with_program(weir, cpu, include_str!("../p4/l2.p4"))
}

/// Starts a switch with the P4 program `text` between the interfaces s1 and s2, on processor `cpu` if given.
pub fn switch_with_program(weir: &Path, cpu: Option<usize>, text: &str) -> Result<Running> {
    let program = std::env::temp_dir().join(format!("weir-bench-{}.p4", std::process::id()));
    write(&program, text)?;
    let mut command = on_cpu(weir, cpu);
    command.arg("switch").arg(&program);
    command.args(["-i", "1@s1", "-i", "2@s2"]);
    command.args(["--grpc-server-addr", "127.0.0.1:0"]);
    command.stdout(Stdio::null());
    Ok(Running(command.spawn().context("cannot run weir")?))
}

/// Starts the plain forwarder between the interfaces s1 and s2, on processor `cpu`.
pub fn forwarder(cpu: usize) -> Result<Running> {
    let mut command = on_cpu(&std::env::current_exe()?, Some(cpu));
    command.args(["bench", "switch"]).env(ROLE, FORWARDER);
    Ok(Running(command.spawn()?))
}

/// Starts BMv2 between the interfaces s1 and s2, on processor `cpu`.
pub fn rival(rival: &Rival, cpu: usize) -> Result<Running> {
    let command = rival.command(&[(1, "s1"), (2, "s2")])?;
    let mut pinned = on_cpu(rival.program(), Some(cpu));
    pinned.args(command.get_args());
    pinned.stdout(Stdio::null()).stderr(Stdio::null());
    let name = rival.program().display();
    Ok(Running(
        pinned
            .spawn()
            .with_context(|| format!("cannot run {name}"))?,
    ))
}

fn on_cpu(program: &Path, cpu: Option<usize>) -> Command {
    match cpu {
        Some(cpu) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &cpu.to_string()]).arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// Process id of the kernel's thread for deferred softirqs on this processor.
pub fn ksoftirqd(cpu: usize) -> Option<u32> {
    let name = format!("ksoftirqd/{cpu}\n");
    std::fs::read_dir("/proc")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let comm = std::fs::read_to_string(entry.path().join("comm")).ok()?;
            (comm == name).then(|| entry.file_name().to_str()?.parse().ok())?
        })
}

/// A frame of 60 bytes: 64 bytes with its FCS.
pub fn frame() -> Vec<u8> {
    let mut frame = vec![0; 60];
    frame[..6].copy_from_slice(&FRAME_DESTINATION);
    frame[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame
}

/// Time since `since` when a frame from h1 arrives at h2; a frame is sent every 200 µs.
pub fn until_forwarded(since: Instant) -> Result<Duration> {
    let mut sender = Sender::open("h1")?;
    let (before, frame) = (received("h2")?, frame());
    while since.elapsed() < Duration::from_secs(20) {
        sender.send(&frame);
        sender.flush();
        std::thread::sleep(Duration::from_micros(200));
        if received("h2")? > before {
            return Ok(since.elapsed());
        }
    }
    bail!("no frame is forwarded")
}

/// Waits until no more frames arrive at the interface h2.
pub fn wait_until_quiet() -> Result<()> {
    let mut before = None;
    loop {
        let now = Some(received("h2")?);
        if now == before {
            return Ok(());
        }
        before = now;
        std::thread::sleep(Duration::from_millis(50));
    }
}
