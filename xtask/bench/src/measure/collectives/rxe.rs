//! `rxe`: WRITEs of 64 KiB between RDMA in user space and the kernel's rxe, in both roles, relative
//! to WRITEs between two rxes, through one embedded switch.
//!
//! The switch has three ports: two virtual machines and a virtual Ethernet cable. Each round runs
//! all subjects in turn, so that all have the same machine load.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use machines::{Image, Machine, MachineOptions, PORT, neighbour, switch_program};
use testbeds::net::Netlink;

use super::super::files;
use super::super::programs::{AGENT, WEIR};
use super::super::row::{Goal, Row};
use super::super::veth::{self, Running, ip};
use super::figures;

/// Name of the row, and of the role in which this program measures in the network namespace.
pub const ROLE: &str = "rxe";
const ROUNDS: usize = 5;
const MESSAGES: &str = "1000";

const A: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
const B: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const HERE: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 3);
const HERE_MAC: [u8; 6] = [2, 0, 0, 0, 0, 3];

/// Measures the row in a network namespace of its own.
pub fn row() -> Result<Row> {
    if let Err(error) = machines::image() {
        return Ok(Row {
            name: ROLE,
            value: None,
            unit: "times",
            goal: Goal::AtLeast(1.0),
            floor: None,
            note: format!("{error}; `cargo run -p machines --example image` makes it"),
        });
    }
    let text = veth::in_namespace("collectives", ROLE, None)?;
    let figures = figures::read(&text)?;
    let of = |name: &str| {
        let found = figures.iter().find(|figure| figure.name == name);
        found.map(|figure| figure.median).context("a figure")
    };
    let both = of("roce to rxe")?.min(of("rxe to roce")?);
    let notes: Vec<String> = figures.iter().map(|of| of.note(1)).collect();
    Ok(Row {
        name: ROLE,
        value: Some(both / of("rxe to rxe")?),
        unit: "times",
        goal: Goal::AtLeast(1.0),
        floor: None,
        note: format!(
            "ib_write_bw of 64 KiB through the embedded switch, MTU 4,096, the slower direction over rxe to rxe, in MiB/s: {}",
            notes.join(", ")
        ),
    })
}

/// Measures in the network namespace; returns a line of figures for each subject.
pub fn measure() -> Result<String> {
    let agent = AGENT.path()?;
    let links = Netlink::open()?;
    // The switch's P4Runtime server listens there.
    links.set_up("lo", true)?;
    let image = machines::image()?;
    let pair = MachinePair::new(&image, &links)?;
    let subjects: [(&str, RateMeasurement); 3] = [
        ("rxe to rxe", MachinePair::machine_to_machine),
        ("roce to rxe", MachinePair::user_space_to_machine),
        ("rxe to roce", MachinePair::machine_to_user_space),
    ];
    let mut all = vec![Vec::new(); subjects.len()];
    // The first round warms up pages and queues, and does not count.
    for round in 0..=ROUNDS {
        for ((name, run), rates) in subjects.iter().zip(&mut all) {
            let rate = run(&pair, &agent).with_context(|| format!("{name}, round {round}"))?;
            if round > 0 {
                rates.push(rate);
            }
        }
    }
    let lines = subjects.iter().zip(all).map(|((name, _), mut rates)| {
        rates.sort_by(f64::total_cmp);
        let (least, most) = (rates[0], rates[ROUNDS - 1]);
        format!("{name}: {} {least} {most}\n", rates[ROUNDS / 2])
    });
    Ok(lines.collect())
}

type RateMeasurement = fn(&MachinePair, &Path) -> Result<f64>;

/// Two virtual machines and the interface `near`, which are connected by a switch.
struct MachinePair {
    machines: [Machine; 2],
    _switch: Running,
    _folder: tempfile::TempDir,
}

impl MachinePair {
    fn new(image: &Image, links: &Netlink) -> Result<Self> {
        let options = [("a", A), ("b", B)]
            .map(|(name, address)| MachineOptions::new(name, &format!("tap-{name}"), address));
        let machines = Machine::boot_all(image, &options)?;
        for machine in &machines {
            eprintln!("a machine runs by {:?}", machine.accelerator());
        }
        let macs = [options[0].mac, options[1].mac, HERE_MAC];
        lay_cable(links)?;
        for (address, mac) in [A, B].into_iter().zip(macs) {
            ip(&neighbour(address, mac, "near"))?;
        }
        for machine in &machines {
            for (address, mac) in [A, B, HERE].into_iter().zip(macs) {
                if address != machine.address() {
                    machine.introduce(address, mac)?;
                }
            }
        }
        let folder = tempfile::tempdir()?;
        let program = folder.path().join("lan.p4");
        files::write(&program, switch_program(&macs))?;
        let mut switch = Command::new(WEIR.path()?);
        switch.arg("switch").arg(&program);
        switch.args(["-i", "1@tap-a", "-i", "2@tap-b", "-i", "3@far"]);
        switch.args(["--grpc-server-addr", "127.0.0.1:0"]);
        let switch = Running(switch.stdout(Stdio::null()).spawn()?);
        // Wait until the switch forwards.
        for address in [B, HERE] {
            machines[0].succeed(&format!("until ping -c 1 -W 1 {address}; do :; done"))?;
        }
        Ok(Self {
            machines,
            _switch: switch,
            _folder: folder,
        })
    }

    fn machine_to_machine(&self, _: &Path) -> Result<f64> {
        let [client, server] = &self.machines;
        rate(&machines::between(server, client, &perftest_command())?)
    }

    fn user_space_to_machine(&self, agent: &Path) -> Result<f64> {
        let [_, server] = &self.machines;
        let serving = server.spawn(&perftest_command())?;
        server.await_listening(PORT)?;
        let ours = agent_command(agent, Some(B)).spawn()?;
        let report = output_of(ours)?;
        serving.succeed(std::time::Duration::from_secs(60))?;
        let report: serde_json::Value = serde_json::from_slice(&report)?;
        report["average_mib_per_s"].as_f64().context("a rate")
    }

    fn machine_to_user_space(&self, agent: &Path) -> Result<f64> {
        let [client, _] = &self.machines;
        let ours = Running(agent_command(agent, None).spawn()?);
        let theirs = perftest_command();
        // The client does not wait for a server, so it retries.
        let report = client.succeed(&format!("until {theirs} {HERE}; do usleep 100000; done"))?;
        drop(ours);
        rate(&report)
    }
}

fn perftest_command() -> String {
    format!("ib_write_bw -s 65536 -n {MESSAGES}")
}

fn agent_command(agent: &Path, host: Option<Ipv4Addr>) -> Command {
    let mut command = Command::new(agent);
    command.args([
        "rdma-perf",
        "write",
        "-d",
        "near",
        "--way",
        "rings",
        "--json",
    ]);
    command.args(["-s", "65536", "-n", MESSAGES]);
    command.args(host.map(|host| host.to_string()));
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

fn output_of(child: Child) -> Result<Vec<u8>> {
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "weir-agent failed");
    Ok(output.stdout)
}

/// Average rate in perftest's report, whose columns are size, iterations, peak, average, messages.
/// An average of 0 is an error: perftest could not calibrate its clock.
fn rate(report: &str) -> Result<f64> {
    let figures = report.lines().rfind(|line| line.starts_with(" 65536 "));
    let average = figures.and_then(|line| line.split_whitespace().nth(3));
    let average = average.context("perftest printed no figures")?.parse()?;
    ensure!(average > 0.0, "perftest could not calibrate its clock");
    Ok(average)
}

/// Creates a virtual Ethernet cable: `near`, an interface like a host's, and the cable's other end, `far`.
fn lay_cable(links: &Netlink) -> Result<()> {
    ip("link add near mtu 4200 type veth peer name far mtu 4200")?;
    for end in ["near", "far"] {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{end}/disable_ipv6"), "1");
        ip(&format!("link set {end} up"))?;
    }
    let mac = HERE_MAC.map(|byte| format!("{byte:02x}")).join(":");
    ip(&format!("link set near address {mac}"))?;
    ip(&format!("address add {HERE}/24 dev near"))?;
    // Checksums must be complete, as on a cable: no hardware fills them in.
    links.set_sending("near", None)?;
    Ok(())
}
