//! What the tests of this crate run: a program that enters a sandbox, does one experiment there and prints what it saw.
//! Exit status 77 means that this machine refuses the sandbox.

use std::process::ExitCode;

mod experiments {
    use std::error::Error;
    use std::io::Write;
    use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
    use std::process::Command;
    use std::sync::{Arc, Mutex, PoisonError};
    use std::time::{Duration, Instant};

    use host_agent::agent::{AgentCommand, Line, Report};
    use host_agent::frames::{Endpoint, EthernetFrames, Frames, Mac};
    use host_agent::train::{Recipe, reference_run};
    use testbeds::capture::{
        Capture, Direction, Filter, Limits, aggregation_key, match_frames, tcp_key,
    };
    use testbeds::host::{Host, Namespace, Output, Process, inherit};
    use testbeds::link::HubBuilder;
    use testbeds::net::{Interface, Netlink, Rate};
    use testbeds::redis::{self, ClientArgs};

    pub type Outcome = Result<(), Box<dyn Error>>;

    /// Two hosts, `a` 10.0.0.1 and `b` 10.0.0.2, on one wire.
    fn two_hosts(arp: bool) -> Result<[(Host, Netlink); 2], Box<dyn Error>> {
        let root = Netlink::open()?;
        root.create_veth("va", "vb")?;
        let mut hosts = Vec::new();
        for (last, name) in [(1, "va"), (2, "vb")] {
            let host = Host::new(&name[1..])?;
            root.move_to(name, host.namespace())?;
            let netlink = Netlink::open_in(host.namespace())?;
            netlink.configure(&Interface {
                name: name.into(),
                mac: [2, 0, 0, 0, 0, last],
                mtu: 1500,
                address: Some((Ipv4Addr::new(10, 0, 0, last), 24)),
                arp,
            })?;
            if !arp {
                let peer = 3 - last;
                netlink.add_neighbour(
                    name,
                    Ipv4Addr::new(10, 0, 0, peer),
                    [2, 0, 0, 0, 0, peer],
                )?;
            }
            hosts.push((host, netlink));
        }
        hosts.try_into().map_err(|_| "two hosts".into())
    }

    fn socket(namespace: &Namespace, last: u8) -> std::io::Result<UdpSocket> {
        let socket = namespace.run(|| UdpSocket::bind((Ipv4Addr::new(10, 0, 0, last), 9)))?;
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        Ok(socket)
    }

    /// Frames cross the wire; counters and captures on both ends agree; nothing else is on the wire.
    pub fn exchange() -> Outcome {
        let [(a, a_net), (b, b_net)] = two_hosts(false)?;
        let capture = |host: &Host, name| {
            Capture::start(
                host.namespace(),
                name,
                Filter::Everything,
                Limits::WHOLE_FRAMES,
            )
        };
        let (at_a, at_b) = (capture(&a, "va")?, capture(&b, "vb")?);
        let (from, to) = (socket(a.namespace(), 1)?, socket(b.namespace(), 2)?);
        let mut buffer = [0; 2000];
        for number in 0..100_u8 {
            from.send_to(&[number; 1000], (Ipv4Addr::new(10, 0, 0, 2), 9))?;
            let (length, _) = to.recv_from(&mut buffer)?;
            if buffer[..length] != [number; 1000] {
                return Err("not what was sent".into());
            }
        }
        let (at_a, at_b) = (at_a.stop()?, at_b.stop()?);
        let (sent, received) = (a_net.counters("va")?, b_net.counters("vb")?);
        println!(
            "sent {} {} received {} {}",
            sent.tx_frames, sent.tx_bytes, received.rx_frames, received.rx_bytes
        );
        let whole = |bytes: &[u8]| Some(bytes.to_vec());
        let difference = match_frames(
            &at_a.seen(Direction::Out, whole),
            &at_b.seen(Direction::In, whole),
            1_000_000_000,
        );
        println!(
            "complete {} matched {} missing {} extra {} late {} others {}",
            at_a.is_complete() && at_b.is_complete(),
            difference.matched,
            difference.missing.len(),
            difference.extra.len(),
            difference.late.len(),
            at_a.going(Direction::In).count(),
        );
        println!("interfaces {}", a_net.interfaces()?.join(","));
        Ok(())
    }

    /// What a rate lets through in a second, as a fraction of the rate.
    pub fn rate() -> Outcome {
        const RATE_BPS: u64 = 8_000_000;
        let [(a, a_net), (b, b_net)] = two_hosts(true)?;
        a_net.limit_rate(
            "va",
            Rate {
                rate_bps: RATE_BPS,
                burst_bytes: 10_000,
                limit_bytes: 40_000,
            },
        )?;
        let (from, _to) = (socket(a.namespace(), 1)?, socket(b.namespace(), 2)?);
        from.set_nonblocking(true)?;
        let before = b_net.counters("vb")?.rx_bytes;
        let start = Instant::now();
        let mut offered = 0_u64;
        while start.elapsed() < Duration::from_secs(1) {
            // Four times the rate; what the bucket refuses is dropped there.
            let due = start.elapsed().as_secs_f64() * RATE_BPS as f64 / 8.0 * 4.0;
            while (offered as f64) < due {
                let _ = from.send_to(&[0; 1000], (Ipv4Addr::new(10, 0, 0, 2), 9));
                offered += 1042;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let received = b_net.counters("vb")?.rx_bytes - before;
        let ratio = received as f64 * 8.0 / start.elapsed().as_secs_f64() / RATE_BPS as f64;
        println!("offered {offered} received {received} ratio {ratio:.3}");
        Ok(())
    }

    /// A process in a host: its output, its standard input, its death.
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

    /// Root, where only user namespaces are forbidden, does without one.
    pub fn root_without_user_namespace() -> Outcome {
        std::fs::write("/proc/sys/user/max_user_namespaces", "0")?;
        let output = Command::new(std::env::current_exe()?)
            .arg("exchange")
            .env_remove("WEIR_SANDBOX")
            .output()?;
        print!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(())
    }

    /// Stays, with an interface and a process, until it is killed.
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

    /// A real server and a client of ours.
    pub fn redis() -> Outcome {
        let [(a, _), (b, _)] = two_hosts(false)?;
        let address = SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 2), 6379);
        let _server = match redis::Server::start(&b, address) {
            Err(redis::ServerError::NotInstalled) => {
                println!("redis-server is not installed");
                return Ok(());
            }
            server => server?,
        };
        let capture = Capture::start(b.namespace(), "vb", Filter::Tcp, Limits::WHOLE_FRAMES)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "redis-client",
            "--name",
            "a",
            "--server",
            &address.to_string(),
            "--requests",
            "60",
            "--pause-us",
            "1000",
        ]);
        command.args([
            "--command",
            "SET cart:1 x",
            "--command",
            "get cart:1",
            "--command",
            "LPUSH cart:1 y",
        ]);
        let mut client = a.spawn(command)?;
        let Output::Line(line) = client.next_line(Duration::from_secs(20)) else {
            return Err(client.stderr().into());
        };
        let status = client.wait(Duration::from_secs(5))?;
        let report: redis::ClientReport = serde_json::from_str(&line)?;
        let summary: Vec<_> = report
            .commands
            .iter()
            .map(|command| format!("{} {}", command.command, command.count))
            .collect();
        println!(
            "{:?} {} errors {}",
            status.and_then(|s| s.code()),
            summary.join(" "),
            report.errors
        );
        let recording = capture.stop()?;
        let requests: Vec<_> = recording.seen(Direction::In, tcp_key);
        let gets = requests
            .iter()
            .filter_map(|seen| redis::parse_request(&seen.key.payload))
            .filter(|(request, _)| request.command() == "GET" && request.key() == Some(b"cart:1"))
            .count();
        println!("captured GETs {gets}");
        Ok(())
    }

    /// Forbids user namespaces here, where we may, and tries to enter a sandbox from a process that is not root.
    pub fn refused() -> Outcome {
        std::fs::write("/proc/sys/user/max_user_namespaces", "0")?;
        // Without its capabilities even root is an ordinary user.
        let mut command = Command::new("setpriv");
        command
            .args(["--bounding-set=-all", "--inh-caps=-all"])
            .arg(std::env::current_exe()?)
            .arg("exchange");
        command.env_remove("WEIR_SANDBOX");
        let output = command.output()?;
        println!("{:?}", output.status.code());
        print!("{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// The address of a host of a training: workers from 1, the server last.
    fn training_endpoint(last: u8) -> Endpoint {
        Endpoint {
            mac: Mac([2, 0, 0, 0, 1, last]),
            ip: Ipv4Addr::new(10, 0, 1, last),
        }
    }

    /// The commands of a training in which the server sums: the server's first.
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

    /// Starts agents together, waits for their reports, and prints whether their weights are the reference run's.
    fn finish_training(mut agents: Vec<Process>, rounds: u64) -> Outcome {
        let report_of = |agent: &mut Process, wanted: fn(&Line) -> bool| loop {
            match agent.next_line(Duration::from_secs(60)) {
                Output::Line(line) => {
                    let line: Line =
                        serde_json::from_str(&line).map_err(|error| error.to_string())?;
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
        let expected = reference_run(&recipe, (agents.len() - 1) as u8)?.weights_sha256;
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

    /// Hosts h1, h2 … on a switch that passes frames on by the last byte of their destination.
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
        let open = |port: &String| EthernetFrames::open(port);
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
                loop {
                    if let Ok(Some(frame)) = frames.receive(Duration::from_secs(1))
                        && let Some(to) = frame
                            .get(5)
                            .and_then(|&last| out.get(usize::from(last).wrapping_sub(1)))
                    {
                        let _ = to
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .send(frame);
                    }
                }
            });
        }
        Ok(hosts)
    }

    /// Starts a training's agents: the server in the last host, the workers in the others.
    fn start_agents(
        hosts: &[Host],
        commands: Vec<Command>,
    ) -> Result<Vec<Process>, Box<dyn Error>> {
        let mut agents = Vec::new();
        for (index, mut command) in commands.into_iter().enumerate() {
            let host = index.checked_sub(1).unwrap_or(hosts.len() - 1);
            command.args(["--iface", &format!("h{}", host + 1)]);
            agents.push(hosts[host].spawn(command)?);
        }
        Ok(agents)
    }

    /// Real agents in hosts of their own, through pnet.
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
            .flat_map(|worker| worker.seen(Direction::Out, aggregation_key))
            .collect();
        let difference = match_frames(
            &sent,
            &server.seen(Direction::In, aggregation_key),
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

    /// A worker is killed in the middle of the training; everybody else ends and says why.
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

    /// A server and one worker on a cable in memory: no namespace, no interface.
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

    #[derive(clap::Parser)]
    struct Client {
        #[command(flatten)]
        args: ClientArgs,
    }

    pub fn redis_client() -> Outcome {
        let client: Client = clap::Parser::parse_from(std::env::args().skip(1));
        let report = redis::run_client(&client.args)?;
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
    }
}

/// What a test sees when the sandbox is refused.
const REFUSED: u8 = 77;

fn main() -> ExitCode {
    let which = std::env::args().nth(1).unwrap_or_default();
    let without_sandbox = ["redis-client", "agent", "train-on-a-cable"].contains(&which.as_str());
    if !without_sandbox && let Err(error) = testbeds::sandbox::enter() {
        eprintln!("{error}");
        return ExitCode::from(REFUSED);
    }
    let outcome = match which.as_str() {
        "exchange" => experiments::exchange(),
        "rate" => experiments::rate(),
        "processes" => experiments::processes(),
        "stay" => experiments::stay(),
        "train" => experiments::train(),
        "train-on-a-cable" => experiments::train_on_a_cable(),
        "agent" => return experiments::agent(),
        "root-without-user-namespace" => experiments::root_without_user_namespace(),
        "lost-worker" => experiments::lost_worker(),
        "refused" => experiments::refused(),
        "redis" => experiments::redis(),
        "redis-client" => experiments::redis_client(),
        "status" => {
            return ExitCode::from(
                std::env::args()
                    .nth(2)
                    .and_then(|s| s.parse().ok())
                    .unwrap_or(0),
            );
        }
        other => Err(format!("no experiment {other:?}").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
