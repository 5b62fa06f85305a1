//! `weir switch`: runs the embedded switch as a program of its own, with the flags of BMv2.

mod values;

use crate::instance::{self, Config};
use crate::p4::P4Loader;
use crate::ports::delayed::{Delayed, Latency};
use crate::ports::dump::Dump;
use crate::ports::{self, Frames, Io};
use crate::trace::Form;
use clap::builder::RangedU64ValueParser;
use pipeline::{EgressQueues, Ports, RecirculationLink, Scheduler};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use values::{latency_ns, mark_at, port_latency, rate_bps, time_ns, weights};

pub use values::{Interface, PortMark, PortRate};

/// Maximum number of frames in a port's ring: 105 MB of the kernel's memory.
const MAX_RECEIVE_QUEUE: u64 = 65_536;
/// Exit code of `weir switch` if it could not run.
const FAILURE: u8 = 2;

/// Flags of `weir switch`.
#[derive(Debug, Clone, clap::Args)]
#[command(group(clap::ArgGroup::new("program").required(true).args(["file", "no_p4"])))]
pub struct Args {
    /// Program to run: P4_16 for PSA, v1model or TNA.
    #[arg(value_name = "FILE.p4")]
    pub file: Option<PathBuf>,
    /// Start without a program, and wait for a P4Runtime client to send one.
    #[arg(long)]
    pub no_p4: bool,
    /// Device id in the requests of P4Runtime clients.
    #[arg(long, default_value_t = 0, value_name = "ID")]
    pub device_id: u64,
    /// Attach an interface to a port; repeat for each port. With `,bundles`, the port sends bundles of frames from the start: the
    /// other end is known to take them.
    #[arg(short, long = "interface", value_name = "PORT@INTERFACE[,bundles]")]
    pub interfaces: Vec<Interface>,
    /// Address at which to serve P4Runtime. There is no authentication.
    #[arg(long, default_value = "127.0.0.1:9559", value_name = "IP:PORT")]
    pub grpc_server_addr: SocketAddr,
    /// Number of the controller's port.
    #[arg(long, default_value_t = pipeline::CPU_PORT, value_name = "PORT")]
    pub cpu_port: u32,
    /// Backend for the exchange of frames with the interfaces.
    #[arg(long, default_value_t = Io::Auto, value_name = "auto|bundles|rings|calls|pnet")]
    pub io: Io,
    /// Maximum number of received frames in a port's ring; each takes 1.6 kB. Bundles wait elsewhere.
    #[arg(long, default_value_t = ports::Options::default().slots, value_name = "FRAMES",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_RECEIVE_QUEUE))]
    pub receive_queue: usize,
    /// Bypass the interfaces' queueing disciplines: slightly cheaper, but `tc` has no effect, tcpdump on these interfaces shows
    /// only frames that the switch receives, and no bundles are sent.
    #[arg(long)]
    pub qdisc_bypass: bool,
    /// Mark frames (ECN) that find this many frames in front of them in the port's send queue, such as 65 for all ports or 2@20 for
    /// one. Only frames of ECN-capable transports (ECT) are marked.
    #[arg(long, value_name = "[PORT@]FRAMES")]
    pub ecn: Vec<PortMark>,
    /// Latency of a port's link from its interface to the program, such as 2@10ms. Captures record frames before this latency.
    #[arg(long, value_name = "PORT@TIME", value_parser = port_latency)]
    pub latency_in: Vec<(u32, u64)>,
    /// Latency of a port's link from the program to its interface. Captures record frames after this latency.
    #[arg(long, value_name = "PORT@TIME", value_parser = port_latency)]
    pub latency_out: Vec<(u32, u64)>,
    /// Write the frames of each port to pcap files in this folder, which is created if it does not exist. Without `=FOLDER`: in
    /// the current folder.
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, require_equals = true, default_missing_value = ".")]
    pub pcap: Option<PathBuf>,
    /// Latency of the recirculation port, such as 20us.
    #[arg(long, default_value = "20us", value_name = "TIME", value_parser = time_ns)]
    pub recirculation_latency: u64,
    /// Rate of the recirculation port, such as 10gbps; unlimited by default.
    #[arg(long, value_name = "RATE", value_parser = rate_bps)]
    pub recirculation_rate: Option<u64>,
    /// Executor of the program: same results, different speeds. --trace and --poison always use the reference.
    #[arg(long, value_enum, default_value_t = Executor::Fast)]
    pub executor: Executor,
    /// Explain each packet on standard output: states, headers, tables, entries, actions, externs, verdict. Slow.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text", value_name = "FORM")]
    pub trace: Option<Form>,
    /// Fill undefined values with a pattern of this seed instead of zeroes, and report those that influence a decision. Slow.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "1", value_name = "SEED")]
    pub poison: Option<u64>,
    /// Print the program's log messages (`log_msg`) and failures of `assert` and `assume`: `weir -v switch`. Slow for a program
    /// that calls one of these.
    #[arg(skip)]
    pub logs: bool,
    /// Rate of a port, such as 1gbps for all or 2@100mbps for one, which needs an interface. Excess packets wait between ingress
    /// and egress. Unlimited by default.
    #[arg(long, value_name = "[PORT@]RATE")]
    pub port_rate: Vec<PortRate>,
    /// Maximum number of packets that wait in one class of service of one port; more are dropped.
    #[arg(long, default_value_t = EgressQueues::default().depth, value_name = "PACKETS",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub queue_depth: usize,
    /// Shares of a port's rate for the classes of service 0 to 7, such as 1,1,1,1,2,2,4,4. By default, a higher class is always
    /// served first.
    #[arg(long, value_name = "W0,…,W7", value_parser = weights)]
    pub queue_weights: Option<Scheduler>,
    /// Seed of the program's random numbers.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Macro for the preprocessor; may be repeated.
    #[arg(short = 'D', value_name = "NAME[=VALUE]", value_parser = define)]
    pub defines: Vec<(String, String)>,
    /// Folder to search for included files.
    #[arg(short = 'I', value_name = "FOLDER")]
    pub include_dirs: Vec<String>,
}

/// Executor of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Executor {
    /// A register machine
    Fast,
    /// A plain interpreter
    Reference,
}

fn egress_queues(args: &Args) -> EgressQueues {
    EgressQueues {
        depth: args.queue_depth,
        scheduler: args.queue_weights.unwrap_or_default(),
        // The last flag applies, as with other flags.
        rate_bps: args
            .port_rate
            .iter()
            .rfind(|rate| rate.port.is_none())
            .map(|rate| rate.rate_bps),
        port_rates_bps: args
            .port_rate
            .iter()
            .filter_map(|rate| Some((rate.port?, rate.rate_bps)))
            .collect(),
    }
}

fn define(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').unwrap_or((text, "1")) {
        ("", _) => Err("the macro's name is missing".to_owned()),
        (name, value) => Ok((name.to_owned(), value.to_owned())),
    }
}

/// Runs a switch until SIGINT, SIGTERM, or a client's `Shutdown`. An error is printed once.
#[must_use]
pub fn run(args: Args) -> ExitCode {
    match start(args).and_then(serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            cli_io::stderr::tell(format_args!("{message}\n"));
            ExitCode::from(FAILURE)
        }
    }
}

/// Checks that the flags do not contradict each other.
fn check(args: &Args) -> Result<(), String> {
    let (mut ports, mut names) = (BTreeSet::new(), BTreeSet::new());
    for Interface { port, name, .. } in &args.interfaces {
        if !ports.insert(*port) {
            return Err(format!("error: --interface: port {port} is given twice"));
        }
        // Each of its frames would come in twice.
        if !names.insert(name) {
            return Err(format!("error: --interface: {name} is given twice"));
        }
    }
    let rates = args.port_rate.iter().filter_map(|rate| rate.port);
    let marks = args.ecn.iter().filter_map(|mark| mark.port);
    let of_latency = |given: &[(u32, u64)]| given.iter().map(|(port, _)| *port).collect();
    for (flag, named) in [
        ("--port-rate", rates.collect::<Vec<u32>>()),
        ("--ecn", marks.collect()),
        ("--latency-in", of_latency(&args.latency_in)),
        ("--latency-out", of_latency(&args.latency_out)),
    ] {
        if let Some(port) = named.into_iter().find(|port| !ports.contains(port)) {
            return Err(format!(
                "error: {flag}: no interface is attached to port {port}"
            ));
        }
    }
    Ok(())
}

fn start(args: Args) -> Result<instance::Instance, String> {
    check(&args)?;
    let loader = P4Loader {
        config: pipeline::Config {
            seed: args.seed,
            cpu_port: args.cpu_port,
            egress_queues: egress_queues(&args),
            recirculation: RecirculationLink {
                latency_ns: args.recirculation_latency,
                rate_bps: args.recirculation_rate,
                ..RecirculationLink::default()
            },
            ports: Ports::Only(
                args.interfaces
                    .iter()
                    .map(|interface| interface.port)
                    .collect(),
            ),
            executor: match (args.poison, args.executor) {
                (None, Executor::Fast) => pipeline::Executor::Fast,
                _ => pipeline::Executor::Reference,
            },
            poison: args.poison,
            ..pipeline::Config::default()
        },
        trace: args.trace,
        logs: args.logs,
    };
    let options = p4lang::Options {
        defines: args.defines,
        include_dirs: args.include_dirs,
    };
    let program = args
        .file
        .map(|file| loader.load_file(&file, &options))
        .transpose()
        .map_err(|error| error.0)?;
    let options = ports::Options {
        io: args.io,
        slots: args.receive_queue,
        qdisc_bypass: args.qdisc_bypass,
        ..ports::Options::default()
    };
    let sends_none = matches!(options.io, Io::Rings | Io::Calls | Io::Pnet);
    if let Some(interface) = args.interfaces.iter().find(|interface| interface.bundles)
        && (sends_none || options.qdisc_bypass)
    {
        let why = match options.qdisc_bypass {
            true => "--qdisc-bypass".to_owned(),
            false => format!("--io {}", options.io),
        };
        let Interface { port, name, .. } = interface;
        return Err(format!(
            "error: port {port}: with {why}, no bundles are sent; use `-i {port}@{name}` without `,bundles`"
        ));
    }
    let mut attached: Vec<(u32, Box<dyn Frames>)> = Vec::new();
    for (Interface { port, name, .. }, opened) in
        args.interfaces
            .iter()
            .zip(open_all(&args.interfaces, &args.ecn, options))
    {
        let failed = |error| format!("error: port {port}: interface {name}: {error}");
        let opened = opened.map_err(failed)?;
        let (io, bundles) = (opened.io, opened.bundles);
        tracing::info!(
            port,
            interface = name,
            "frames pass by {io}, bundles are {bundles}"
        );
        if let Some(notice) = opened.notice {
            cli_io::stderr::tell(format_args!("port {port}: interface {name}: {notice}\n"));
        }
        let mut io = opened.frames;
        if let Some(folder) = &args.pcap {
            let failed = |error| format!("error: captures in {}: {error}", folder.display());
            io = Box::new(Dump::new(io, folder).map_err(failed)?);
        }
        let latency = Latency {
            in_ns: latency_ns(&args.latency_in, *port),
            out_ns: latency_ns(&args.latency_out, *port),
        };
        if latency != Latency::default() {
            io = Box::new(Delayed::new(io, latency));
        }
        attached.push((*port, io));
    }
    let config = Config {
        device_id: args.device_id,
        cpu_port: args.cpu_port,
        ports: attached,
        loader: Arc::new(loader),
        program,
        grpc: args.grpc_server_addr,
    };
    let failed = |error| format!("error: P4Runtime at {}: {error}", args.grpc_server_addr);
    let instance = instance::start(config).map_err(failed)?;
    let ports: Vec<_> = args
        .interfaces
        .iter()
        .map(|i| format!("{}@{}", i.port, i.name))
        .collect();
    writeln!(
        std::io::stdout(),
        "device {}: P4Runtime at {}, ports {}",
        args.device_id,
        instance.address(),
        ports.join(" ")
    )
    .map_err(|error| format!("error: standard output: {error}"))?;
    Ok(instance)
}

fn serve(instance: instance::Instance) -> Result<(), String> {
    let stopper = instance.stopper();
    let signals = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let signals = signals.map_err(|error| format!("error: signals: {error}"))?;
    // Ends with the process; no thread waits for it.
    std::thread::spawn(move || {
        signals.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            if let (Ok(mut interrupt), Ok(mut terminate)) = (
                signal(SignalKind::interrupt()),
                signal(SignalKind::terminate()),
            ) {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                stopper.send_replace(true);
            }
        });
    });
    instance.wait().map_err(|error| format!("error: {error}"))
}

/// Opens all ports in parallel, because the kernel takes about 15 ms for each.
fn open_all(
    interfaces: &[Interface],
    marks: &[PortMark],
    options: ports::Options,
) -> Vec<std::io::Result<ports::Opened>> {
    ports::side_by_side(interfaces.iter().collect(), |interface: &Interface| {
        let mut options = options;
        options.mark_at = mark_at(marks, interface.port);
        if interface.bundles && options.io == Io::Auto {
            options.io = Io::Bundles;
        }
        ports::open(&interface.name, options)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: Args,
    }

    fn parse(line: &str) -> Result<Args, clap::Error> {
        Command::try_parse_from(format!("switch {line}").split_whitespace())
            .map(|command| command.args)
    }

    #[test]
    fn the_flags_of_bmv2() {
        let line = "main.p4 --device-id 3 -i 1@veth0 -i 510@veth-with-dashes -i 2@eth0,bundles \
                    --grpc-server-addr 127.0.0.1:50051 --cpu-port 255 --recirculation-latency 5us --recirculation-rate 10gbps -DN=8 -DDEBUG";
        let args = parse(line).unwrap();
        assert_eq!((args.device_id, args.cpu_port), (3, 255));
        let interface = |port, name: &str, bundles| Interface {
            port,
            name: name.into(),
            bundles,
        };
        assert_eq!(
            args.interfaces,
            [
                interface(1, "veth0", false),
                interface(510, "veth-with-dashes", false),
                interface(2, "eth0", true),
            ]
        );
        assert_eq!(
            (args.recirculation_latency, args.recirculation_rate),
            (5_000, Some(10_000_000_000))
        );
        assert_eq!(
            args.defines,
            [("N".into(), "8".into()), ("DEBUG".into(), "1".into())]
        );
    }

    /// A flag with an optional value must not take the program's name as its value.
    #[test]
    fn optional_values_stand_behind_an_equals_sign() {
        for (line, pcap, file) in [
            ("--no-p4 --pcap", ".", None),
            ("--pcap main.p4", ".", Some("main.p4")),
            ("main.p4 --pcap", ".", Some("main.p4")),
            ("--pcap=caps main.p4", "caps", Some("main.p4")),
            (
                "--trace --pcap=caps --poison main.p4",
                "caps",
                Some("main.p4"),
            ),
        ] {
            let args = parse(line).unwrap();
            assert_eq!(args.pcap, Some(PathBuf::from(pcap)), "{line}");
            assert_eq!(args.file, file.map(PathBuf::from), "{line}");
        }
        let message = parse("--pcap caps main.p4").unwrap_err().to_string();
        assert!(message.contains("main.p4"), "{message}");
    }

    #[test]
    fn rates_depths_and_weights_of_queues() {
        let line = "--no-p4 --port-rate 1gbps --port-rate 2@100mbps --queue-depth 64 --queue-weights 1,1,1,1,1,2,3,4";
        let queues = egress_queues(&parse(line).unwrap());
        assert_eq!((queues.depth, queues.rate_bps), (64, Some(1_000_000_000)));
        assert_eq!(queues.port_rates_bps, [(2, 100_000_000)].into());
        assert_eq!(
            queues.scheduler,
            Scheduler::Weighted([1, 1, 1, 1, 1, 2, 3, 4])
        );
        assert_eq!(
            egress_queues(&parse("--no-p4").unwrap()),
            EgressQueues::default()
        );
    }

    #[test]
    fn the_last_flag_for_a_port_applies() {
        let args = parse("--no-p4 --ecn 2@20 --ecn 65 --ecn 2@30").unwrap();
        assert_eq!(
            [1, 2].map(|port| mark_at(&args.ecn, port)),
            [Some(65), Some(30)]
        );
        assert_eq!(mark_at(&parse("--no-p4").unwrap().ecn, 1), None);
    }

    #[test]
    fn a_backend_without_a_queue_refuses_marking() {
        let message = failure("--no-p4 -i 1@lo --io pnet --ecn 20");
        assert!(
            message.contains("pnet does not report the length of its queue"),
            "{message}"
        );
    }

    #[test]
    fn wrong_flags_are_refused() {
        for (line, names) in [
            ("", "--no-p4"),
            ("main.p4 --no-p4", "--no-p4"),
            ("main.p4 -i veth0", "PORT@INTERFACE"),
            ("main.p4 -i x@veth0", "`x` is not a port number"),
            ("main.p4 -i 1@", "name is missing"),
            ("main.p4 -i 1@,bundles", "name is missing"),
            ("main.p4 --recirculation-latency 20", "ns, us, ms, s"),
            ("main.p4 --recirculation-latency 0us", "out of range"),
            ("main.p4 --recirculation-rate 10Gb", "gbps"),
            ("main.p4 --port-rate x@1gbps", "`x` is not a port number"),
            ("main.p4 --port-rate 1@5", "gbps"),
            ("main.p4 --latency-in 10ms", "PORT@TIME"),
            ("main.p4 --ecn x@20", "`x` is not a port number"),
            ("main.p4 --ecn 0", "expected 1 to 127"),
            ("main.p4 --ecn 1@128", "expected 1 to 127"),
            ("main.p4 --latency-out 1@10", "ns, us, ms, s"),
            ("main.p4 --queue-weights 1,2", "expected 8"),
            ("main.p4 --queue-weights 1,2,3,4,5,6,7,0", "not a weight"),
            ("main.p4 --grpc-server-addr localhost", "grpc-server-addr"),
            ("main.p4 --receive-queue 0", "1..=65536"),
            ("main.p4 --receive-queue 65537", "1..=65536"),
            ("main.p4 --queue-depth 0", "--queue-depth"),
        ] {
            let message = parse(line).unwrap_err().to_string();
            assert!(message.contains(names), "{line}: {message}");
        }
    }

    fn failure(line: &str) -> String {
        start(parse(line).unwrap()).err().expect("a failure")
    }

    #[test]
    fn flags_that_contradict_are_refused() {
        let [twice, shared, rate, latency, mark] = [
            "--no-p4 -i 1@no-such-a -i 1@no-such-b",
            "--no-p4 -i 1@no-such-a -i 2@no-such-a",
            "--no-p4 -i 1@no-such-link --port-rate 7@1gbps",
            "--no-p4 -i 1@no-such-link --latency-out 7@1ms",
            "--no-p4 -i 1@no-such-link --ecn 7@20",
        ]
        .map(failure);
        assert_eq!(twice, "error: --interface: port 1 is given twice");
        assert_eq!(shared, "error: --interface: no-such-a is given twice");
        assert_eq!(
            rate,
            "error: --port-rate: no interface is attached to port 7"
        );
        assert_eq!(
            latency,
            "error: --latency-out: no interface is attached to port 7"
        );
        assert_eq!(mark, "error: --ecn: no interface is attached to port 7");
    }

    #[test]
    fn a_port_that_the_architecture_does_not_have_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("main.p4");
        std::fs::write(&file, crate::p4_run::tests::PROGRAM).unwrap();
        for port in [511, 600, 1_000_000] {
            let message = failure(&format!("{} -i {port}@no-such-link", file.display()));
            let said = format!(
                "error: --interface: port {port} does not exist: this architecture has ports 0 to 510"
            );
            assert_eq!(message, said);
        }
    }

    #[test]
    fn a_missing_file_and_a_missing_interface_end_with_2() {
        assert!(failure("/nowhere/main.p4").contains("/nowhere/main.p4"));
        let message = failure("--no-p4 -i 1@no-such-link --grpc-server-addr 127.0.0.1:0");
        assert!(
            message.starts_with("error: port 1: interface no-such-link: "),
            "{message}"
        );
        assert_eq!(
            run(parse("/nowhere/main.p4").unwrap()),
            ExitCode::from(FAILURE)
        );
    }
}
