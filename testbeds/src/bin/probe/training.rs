//! Experiments with trainings by real agents.

use std::error::Error;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use host_agent::agent::{AgentCommand, Line, Report};
use host_agent::frames::{Endpoint, Frames, Io, Mac, open_interface, receive_within};
use host_agent::train::{Recipe, reference_run};
use testbeds::capture::{Capture, Direction, Filter, Limits, aggregation_key, match_frames};
use testbeds::host::{Host, Output, Process, inherit};
use testbeds::link::HubBuilder;
use testbeds::net::{Interface, Netlink};

use super::hosts::Outcome;

/// Addresses of a host in a training; `last` is the last byte of its IP address: workers from 1, the server last.
fn training_endpoint(last: u8) -> Endpoint {
    Endpoint {
        mac: Mac([2, 0, 0, 0, 1, last]),
        ip: Ipv4Addr::new(10, 0, 1, last),
    }
}

/// The command lines of the agents in a training whose parameter server sums; the server's is the first.
fn training_commands(workers: u8, window: &str, rounds: &str) -> std::io::Result<Vec<Command>> {
    let server = training_endpoint(workers + 1);
    let program = std::env::current_exe()?;
    let agent = |role: &str, last: u8| {
        let me = training_endpoint(last);
        let mut command = Command::new(&program);
        command.args([
            "agent",
            role,
            "--workers",
            &workers.to_string(),
            "--rounds",
            rounds,
            "--batch",
            "8",
        ]);
        command.args([
            "--window",
            window,
            "--mac",
            &me.mac.to_string(),
            "--ip",
            &me.ip.to_string(),
            "--wait",
        ]);
        command
    };
    let mut commands = vec![agent("server", workers + 1)];
    commands[0].args(["--mode", "direct"]);
    for rank in 0..workers {
        commands[0].args(["--peer", &training_endpoint(rank + 1).to_string()]);
        let mut worker = agent("worker", rank + 1);
        worker.args([
            "--rank",
            &rank.to_string(),
            "--server-mac",
            &server.mac.to_string(),
        ]);
        worker.args(["--server-ip", &server.ip.to_string()]);
        commands.push(worker);
    }
    Ok(commands)
}

/// Starts the training on all agents, waits for their reports, and prints whether their weights are the reference run's.
fn finish_training(mut agents: Vec<Process>, rounds: u64) -> Outcome {
    let report_of = |agent: &mut Process, wanted: fn(&Line) -> bool| loop {
        match agent.next_line(Duration::from_secs(60)) {
            Output::Line(line) => {
                let line: Line = serde_json::from_str(&line).map_err(|error| error.to_string())?;
                if wanted(&line) {
                    return Ok(line);
                }
            }
            other => {
                agent
                    .wait(Duration::from_secs(1))
                    .map_err(|error| error.to_string())?;
                return Err(format!("{other:?} {}", agent.stderr()));
            }
        }
    };
    for agent in &mut agents {
        report_of(agent, |line| *line == Line::Ready)?;
    }
    for agent in &mut agents {
        agent.write_line("go")?;
    }
    let recipe = Recipe {
        seed: 1,
        rounds,
        batch: 8,
        learning_rate: 0.1,
        momentum: 0.9,
    };
    let expected = reference_run(&recipe, (agents.len() - 1) as u16)?.weights_sha256;
    let mut equal = true;
    let mut worst = 0.0;
    for agent in &mut agents {
        let line = report_of(agent, |line| matches!(line, Line::Report(_)))?;
        let (hash, sent) = match line {
            Line::Report(Report::Server(report)) => {
                eprintln!("server: {:.0} ms, {:?}", report.wall_ms, report.sent);
                (report.weights_sha256, report.sent)
            }
            Line::Report(Report::Worker(report)) => (report.weights_sha256, report.sent),
            other => return Err(format!("{other:?}").into()),
        };
        equal &= hash == expected;
        worst = f64::max(worst, sent.retransmitted_bytes as f64 / sent.bytes as f64);
        if !agent
            .wait(Duration::from_secs(10))?
            .is_some_and(|status| status.success())
        {
            return Err(agent.stderr().into());
        }
    }
    eprintln!("sent again: at most {:.2} %", worst * 100.0);
    println!("agents {} equal {equal}", agents.len());
    Ok(())
}

/// Creates hosts h1, h2 … on a switch that forwards frames by the last byte of the destination address.
fn switched_hosts(count: u8) -> Result<Vec<Host>, Box<dyn Error>> {
    let root = Netlink::open()?;
    let mut hosts = Vec::new();
    let ports: Vec<String> = (1..=count).map(|last| format!("p{last}")).collect();
    for (last, port) in (1..).zip(&ports) {
        let inner = format!("h{last}");
        root.create_veth(port, &inner)?;
        let host = Host::new(&inner)?;
        root.move_to(&inner, host.namespace())?;
        let interface = |name: &str, mac: Mac, address| Interface {
            name: name.into(),
            mac: mac.0,
            mtu: 1500,
            address,
            arp: false,
            bundles: None,
        };
        root.configure(&interface(port, Mac([2, 0, 0, 0, 2, last]), None))?;
        let endpoint = training_endpoint(last);
        Netlink::open_in(host.namespace())?.configure(&interface(
            &inner,
            endpoint.mac,
            Some((endpoint.ip, 24)),
        ))?;
        hosts.push(host);
    }
    let open = |port: &String| open_interface(port, Io::Pnet).map(|opened| opened.frames);
    let out = ports
        .iter()
        .map(|port| open(port).map(Mutex::new))
        .collect::<Result<Vec<_>, _>>()?;
    let out = Arc::new(out);
    for port in &ports {
        let mut frames = open(port)?;
        let out = Arc::clone(&out);
        // Ends with the process.
        std::thread::spawn(move || {
            let mut forward = |frame: &[u8]| {
                let last = frame.get(5).map(|&last| usize::from(last));
                if let Some(to) = last.and_then(|last| out.get(last.wrapping_sub(1))) {
                    let mut to = to.lock().unwrap_or_else(PoisonError::into_inner);
                    let _ = to.send(frame);
                }
            };
            loop {
                let _ = receive_within(&mut frames, Duration::from_secs(1), 64, &mut forward);
            }
        });
    }
    Ok(hosts)
}

/// Starts a training's agents: the server in the last host, the workers in the others.
fn start_agents(hosts: &[Host], commands: Vec<Command>) -> Result<Vec<Process>, Box<dyn Error>> {
    let mut agents = Vec::new();
    for (index, mut command) in commands.into_iter().enumerate() {
        let host = index.checked_sub(1).unwrap_or(hosts.len() - 1);
        command.args(["--iface", &format!("h{}", host + 1)]);
        agents.push(hosts[host].spawn(command)?);
    }
    Ok(agents)
}

/// Runs a training with real agents, each in its own host, through pnet.
pub fn train() -> Outcome {
    let argument =
        |n: usize, default: &str| std::env::args().nth(n).unwrap_or_else(|| default.into());
    let (workers, window, rounds): (u8, _, _) = (
        argument(2, "3").parse()?,
        argument(3, "16"),
        argument(4, "3"),
    );
    let hosts = switched_hosts(workers + 1)?;
    let captures = hosts
        .iter()
        .map(|host| {
            let limits = Limits::AGGREGATION_HEADERS;
            Capture::start(host.namespace(), host.name(), Filter::UdpTo(22341), limits)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let agents = start_agents(&hosts, training_commands(workers, &window, &rounds)?)?;
    finish_training(agents, rounds.parse()?)?;
    let recordings = captures
        .into_iter()
        .map(Capture::stop)
        .collect::<Result<Vec<_>, _>>()?;
    let (server, workers) = recordings.split_last().ok_or("no recording")?;
    let sent: Vec<_> = workers
        .iter()
        .flat_map(|worker| worker.captured(Direction::Out, aggregation_key))
        .collect();
    let difference = match_frames(
        &sent,
        &server.captured(Direction::In, aggregation_key),
        1_000_000_000,
    );
    eprintln!(
        "updates: {} sent, {} arrived",
        sent.len(),
        difference.matched
    );
    println!(
        "complete {} missing {} extra {} late {}",
        recordings.iter().all(|recording| recording.is_complete()),
        difference.missing.len(),
        difference.extra.len(),
        difference.late.len()
    );
    Ok(())
}

/// Kills a worker in the middle of a training; all other agents end and report the reason.
pub fn lost_worker() -> Outcome {
    let hosts = switched_hosts(3)?;
    let mut commands = training_commands(2, "16", "100000")?;
    for command in &mut commands {
        command.args([
            "--timeout-initial-ms",
            "200",
            "--timeout-ceiling-ms",
            "200",
            "--max-timeouts",
            "5",
        ]);
    }
    let mut agents = start_agents(&hosts, commands)?;
    for agent in &mut agents {
        agent.next_line(Duration::from_secs(10));
    }
    for agent in &mut agents {
        agent.write_line("go")?;
    }
    // The first round is done.
    agents[0].next_line(Duration::from_secs(10));
    agents[2].kill();
    for agent in &mut agents[..2] {
        let status = agent.wait(Duration::from_secs(20))?;
        println!(
            "{:?} {}",
            status.and_then(|status| status.code()),
            agent.stderr().trim()
        );
    }
    Ok(())
}

/// Runs a training of a server and one worker on a cable in memory: without namespaces and interfaces.
pub fn train_on_a_cable() -> Outcome {
    let mut builder = HubBuilder::new();
    let (cable, ends) = builder.cable(None)?;
    let hub = builder.start()?;
    let mut commands = training_commands(1, "16", "2")?;
    let mut agents = Vec::new();
    for (command, end) in commands.iter_mut().zip([ends.a, ends.b]) {
        let number = inherit(command, end).to_string();
        command.args(["--link-fd", &number]);
    }
    for command in commands {
        agents.push(Process::spawn("here", command)?);
    }
    finish_training(agents, 2)?;
    let counters = hub.counters(cable).ok_or("no counters")?;
    println!(
        "both ways {}",
        counters.rx_frames > 400 && counters.tx_frames > 400
    );
    Ok(())
}

#[derive(clap::Parser)]
struct Agent {
    #[command(subcommand)]
    command: AgentCommand,
}

pub fn agent() -> std::process::ExitCode {
    let agent: Agent = clap::Parser::parse_from(std::env::args().skip(1));
    agent.command.run()
}
