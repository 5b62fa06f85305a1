//! Creates the network of the ranks: a namespace for each rank with a cable to an embedded switch
//! or a kernel bridge, or one namespace for all ranks.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use controller::experiment::fleet::Fleet;
use controller::experiment::{Planned, Switches};
use controller::target::Kind;
use scenario::Scenario;
use scenario::model::job::Transport;
use testbeds::host::{Host, Output, Process};
use testbeds::net::{Interface, LinkEnd, Netlink, Rate};

use super::AllReduceSetting;
use crate::measure::hosts::{Segments, configure};
use crate::measure::veth::ip;

const PREFIX: u8 = 16;
const PATIENCE: Duration = Duration::from_secs(60);
const SWITCH: &str = "sw";

/// Network that connects the ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fabric {
    /// The embedded switch connects the ranks, and also sums.
    Switch,
    /// A kernel bridge connects the ranks.
    Bridge,
    /// The loopback interface of one namespace connects all ranks.
    Loopback,
}

/// Network with its hosts; dropping this value removes the network.
pub struct RankNetwork {
    pub scenario: Scenario,
    pub hosts: Vec<Host>,
    /// Session that configures the switch. It is dropped before the switch, so that it can close its connection.
    _fleet: Option<Fleet>,
    switch: Option<Process>,
    _links: Vec<Netlink>,
}

impl RankNetwork {
    /// Creates the network of a setting. The caller is in a private network namespace.
    pub fn create(setting: &AllReduceSetting, weir: &Path) -> Result<RankNetwork> {
        let loaded = scenario::load("bench.yaml", &scenario_text(setting));
        let scenario = loaded.map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
        let mut network = RankNetwork {
            hosts: Vec::new(),
            _fleet: None,
            switch: None,
            _links: Vec::new(),
            scenario,
        };
        if setting.through == Fabric::Loopback {
            let host = Host::new("all")?;
            network.hosts = vec![host; setting.ranks];
            return Ok(network);
        }
        let ports = network.lay_cables(setting)?;
        match setting.through {
            Fabric::Switch => network.start_switch(weir, &ports)?,
            _ => bridge(&ports)?,
        }
        Ok(network)
    }

    /// Creates a cable for each host; returns the names of the interfaces at the switch, in the order of hosts.
    fn lay_cables(&mut self, setting: &AllReduceSetting) -> Result<Vec<String>> {
        let ours = Netlink::open()?;
        ours.set_up("lo", true)?;
        let topology = self.scenario.topology.clone();
        let mut ports = Vec::new();
        for (number, host) in topology.hosts.iter().enumerate() {
            let port = format!("port{number}");
            let inside = Host::new(&host.name)?;
            let netlink = Netlink::open_in(inside.namespace())?;
            let end = |name, namespace| LinkEnd { name, namespace };
            ours.connect([end(&port, None), end("eth0", Some(inside.namespace()))], 0)?;
            let ends = [
                (&netlink, "eth0", host.mac.0, Some((host.ip, PREFIX))),
                (&ours, port.as_str(), [2, 0, 0, 0, 1, number as u8], None),
            ];
            for (netlink, name, mac, address) in ends {
                let interface = Interface {
                    name: name.to_owned(),
                    mac,
                    mtu: setting.mtu,
                    address,
                    arp: false,
                    bundles: None,
                };
                // The ranks' scripts finish Gloo's segments (offloads.py).
                configure(netlink, &interface, Segments::Unfinished)?;
                if let Some(rate_bps) = setting.rate_bps {
                    netlink.limit_rate(
                        name,
                        Rate {
                            rate_bps,
                            burst_bytes: setting.burst_bytes,
                            limit_bytes: setting.queue_bytes,
                        },
                    )?;
                }
            }
            let others = topology
                .hosts
                .iter()
                .filter(|other| other.name != host.name);
            let others = others.map(|other| (other.ip, other.mac.0));
            netlink.add_neighbours("eth0", others)?;
            self.hosts.push(inside);
            self._links.push(netlink);
            ports.push(port);
        }
        self._links.push(ours);
        Ok(ports)
    }

    /// Starts the `weir` binary as a switch, with the configuration that `weir run` would give it. No capture
    /// proves the losses, since sums leave the switch instead of updates; the sums themselves are verified.
    fn start_switch(&mut self, weir: &Path, ports: &[String]) -> Result<()> {
        let mut command = Command::new(weir);
        command.args(["switch", "--no-p4", "--device-id", "1"]);
        command.args(["--grpc-server-addr", "127.0.0.1:0"]);
        for (host, port) in self.scenario.topology.hosts.iter().zip(ports) {
            let at = self.scenario.topology.next_hop(SWITCH, &host.name);
            let number = at.context("a port")?.number;

            command.args(["-i", &format!("{number}@{port}")]);
        }
        let mut switch = Process::spawn("switch", command)?;
        let line = wait_for_line(&mut switch, PATIENCE, |line| line.contains("P4Runtime at "))?;
        let address = line.split_once("P4Runtime at ").context("an address")?.1;
        let address = address.split(',').next().unwrap_or_default().trim();
        let scenario = self.scenario.clone();
        let plan = scenario::plan(&scenario, &Kind::Embedded.model())
            .map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
        let planned = Planned { scenario, plan };
        let addresses = BTreeMap::from([(SWITCH.to_owned(), address.to_owned())]);
        let mut fleet = Fleet::attach(&planned, &addresses, &Switches::default(), None)?;
        if let Some(begins) = planned.plan.timeline.first() {
            fleet.set_epoch(begins.epoch)?;
        }
        self._fleet = Some(fleet);
        self.switch = Some(switch);
        Ok(())
    }

    /// Process id of the switch; `None` for a network without an embedded switch.
    pub fn switch_id(&self) -> Option<u32> {
        self.switch.as_ref().map(Process::id)
    }
}

/// Scenario of a star of ranks whose values the switch sums, with the losses of the setting.
fn scenario_text(setting: &AllReduceSetting) -> String {
    let ranks = (0..setting.jobs * setting.ranks).map(|rank| format!("r{rank}"));
    let ranks: Vec<String> = ranks.collect();
    let servers = (0..setting.servers).map(|server| format!("s{server}"));
    let hosts: Vec<String> = ranks.iter().cloned().chain(servers).collect();
    let mut text = format!(
        "weir: 1\nname: bench\nseed: 7\ntopology: {{star: {{hosts: [{}], switch: {SWITCH}, mtu: {}}}}}\njobs:\n",
        hosts.join(", "),
        setting.mtu
    );
    for (job, ranks) in ranks.chunks(setting.ranks).enumerate() {
        let (ranks, window) = (ranks.join(", "), setting.window);
        let transport = setting.transport.name();
        text += &format!(
            "  bench{job}: {{ranks: [{ranks}], window: {window}, transport: {transport}}}\n"
        );
    }
    if let Some(loss) = setting.loss {
        let [updates, sums] = match setting.transport {
            Transport::Udp => ["agg.kind == 1".to_owned(), "agg.kind == 2".to_owned()],
            // A RETH packet from a rank is an update; one to a rank is a sum.
            Transport::Rdma => {
                ["from", "to"].map(|way| format!("{{{way}: [{}], filter: reth}}", ranks.join(", ")))
            }
        };
        text += &format!(
            "lease: off\nflows: {{updates: {updates}, sums: {sums}}}\nfaults:\n  \
             - {{id: there, flows: updates, where: {{ingress: {SWITCH}}}, effect: drop, select: {{probability: {loss}}}}}\n  \
             - {{id: back, flows: sums, where: {{egress: {SWITCH}}}, effect: drop, select: {{probability: {loss}}}}}\n"
        );
    }
    text
}

/// Creates a kernel bridge, and attaches the ports to it.
fn bridge(ports: &[String]) -> Result<()> {
    ip("link add bridge0 type bridge")?;
    for port in ports {
        ip(&format!("link set {port} master bridge0"))?;
    }
    ip("link set bridge0 up")
}

/// Waits for the first output line of a process that `wanted` accepts.
pub fn wait_for_line(
    process: &mut Process,
    patience: Duration,
    wanted: impl Fn(&str) -> bool,
) -> Result<String> {
    let deadline = Instant::now() + patience;
    loop {
        match process.next_line(deadline.saturating_duration_since(Instant::now())) {
            Output::Line(line) if wanted(&line) => return Ok(line),
            Output::Line(_) => {}
            Output::TimedOut | Output::End => {
                process.kill();
                bail!(
                    "the process never printed the expected line: {}",
                    process.stderr().trim()
                )
            }
        }
    }
}

/// Copies the ranks' scripts and our Python package into `folder`, so that nothing is written to the sources.
pub fn copy_package(folder: &Path, native: &Path) -> Result<()> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../host-agent/python");
    let package = folder.join("weir");
    std::fs::create_dir_all(&package)?;
    for file in std::fs::read_dir(sources.join("weir"))? {
        let path = file?.path();
        if let Some(name) = path
            .file_name()
            .filter(|_| path.extension().is_some_and(|end| end == "py"))
        {
            std::fs::copy(&path, package.join(name))?;
        }
    }
    std::fs::copy(native, package.join("_native.abi3.so"))
        .with_context(|| format!("cannot copy {}", native.display()))?;
    for script in [
        "bench/allreduce.py",
        "bench/stream.py",
        "bench/ddp.py",
        "bench/offloads.py",
        "examples/fashion.py",
    ] {
        let name = Path::new(script).file_name().context("a name")?;
        std::fs::copy(sources.join(script), folder.join(name))?;
    }
    Ok(())
}
