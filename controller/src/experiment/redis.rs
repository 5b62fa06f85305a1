//! The Redis workload: a real server and clients, each in its host.

use std::net::SocketAddrV4;
use std::process::Command;
use std::time::{Duration, Instant};

use scenario::expect::Metrics;
use scenario::model::Scenario;
use scenario::workload::{Redis, RedisClient};
use testbeds::bed::{Bed, BedError};
use testbeds::host::{Host, Output, Process, ProcessError};
use testbeds::redis::{ClientReport, Server, ServerError};

/// How long a client's next line is waited for before the others are looked at.
const TURN: Duration = Duration::from_millis(5);

/// Why the workload did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RedisError {
    /// The server.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The network.
    #[error(transparent)]
    Bed(#[from] BedError),
    /// A process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A client ended with an error.
    #[error("client {name}: {said}")]
    Client {
        /// Its name.
        name: String,
        /// What it said.
        said: String,
    },
    /// The time was up.
    #[error("the clients are not done after {} s", .0.as_secs())]
    Time(Duration),
    /// Whoever watched wanted it to end.
    #[error(transparent)]
    Interrupted(Box<dyn std::error::Error + Send + Sync>),
}

/// Starts the server and runs all clients to their end. `each_turn` is called often with the time since the start.
pub fn run(
    bed: &Bed,
    scenario: &Scenario,
    redis: &Redis,
    mut each_turn: impl FnMut(Duration) -> Result<(), Box<dyn std::error::Error + Send + Sync>>,
) -> Result<Vec<ClientReport>, RedisError> {
    let host = |name: &str| -> Result<&Host, RedisError> {
        bed.host(name)
            .ok_or_else(|| BedError::Unknown(format!("host {name}")).into())
    };
    let ip = |name: &str| {
        scenario
            .topology
            .host(name)
            .map(|host| host.ip)
            .ok_or_else(|| BedError::Unknown(format!("host {name}")))
    };
    let address = SocketAddrV4::new(ip(&redis.server)?, redis.port);
    let server = Server::start(host(&redis.server)?, address)?;
    let limit = Duration::from_nanos(scenario.limits.time_ns);
    let start = Instant::now();
    each_turn(Duration::ZERO).map_err(RedisError::Interrupted)?;
    let mut clients: Vec<(&RedisClient, Process, Option<ClientReport>)> = Vec::new();
    for client in &redis.clients {
        clients.push((
            client,
            host(&client.host)?.spawn(command(client, address, limit))?,
            None,
        ));
    }
    while clients.iter().any(|client| client.2.is_none()) {
        each_turn(start.elapsed()).map_err(RedisError::Interrupted)?;
        for (client, process, report) in clients.iter_mut().filter(|client| client.2.is_none()) {
            match process.next_line(TURN) {
                Output::Line(line) => *report = serde_json::from_str(&line).ok(),
                Output::TimedOut => {}
                Output::End => {
                    process.wait(Duration::from_secs(1))?;
                    let said = process.stderr().trim().to_owned();
                    return Err(RedisError::Client {
                        name: client.name.clone(),
                        said,
                    });
                }
            }
        }
        if start.elapsed() > limit {
            return Err(RedisError::Time(limit));
        }
    }
    drop(server);
    Ok(clients.into_iter().filter_map(|client| client.2).collect())
}

fn command(client: &RedisClient, server: SocketAddrV4, limit: Duration) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.args([
        "client",
        "--name",
        &client.name,
        "--server",
        &server.to_string(),
    ]);
    command.args(["--requests", &client.requests.to_string()]);
    command.args(["--value-bytes", &client.value_bytes.to_string()]);
    command.args(["--pause-us", &(client.pause_ns / 1_000).to_string()]);
    command.args(["--timeout-ms", &limit.as_millis().to_string()]);
    for words in &client.commands {
        command.args(["--command", &words.join(" ")]);
    }
    command
}

/// The metrics that a client's report delivers: overall and by command.
pub fn add_metrics(metrics: &mut Metrics, report: &ClientReport) {
    let stem = format!("client.{}", report.name);
    metrics.insert(format!("{stem}.requests"), report.operations.len() as f64);
    metrics.insert(format!("{stem}.errors"), report.errors as f64);
    add_latencies(
        metrics,
        &stem,
        report
            .operations
            .iter()
            .map(|operation| operation.latency_ns)
            .collect(),
    );
    for summary in &report.commands {
        let stem = format!("{stem}.{}", summary.command.to_lowercase());
        metrics.insert(format!("{stem}.requests"), summary.count as f64);
        let of_command = report
            .operations
            .iter()
            .filter(|operation| operation.command == summary.command);
        add_latencies(
            metrics,
            &stem,
            of_command.map(|operation| operation.latency_ns).collect(),
        );
    }
}

fn add_latencies(metrics: &mut Metrics, stem: &str, mut latencies: Vec<u64>) {
    latencies.sort_unstable();
    let (Some(min), Some(max)) = (latencies.first(), latencies.last()) else {
        return;
    };
    // Nearest rank: the smallest value that so many of all do not exceed.
    let percentile =
        |percent: usize| latencies[(latencies.len() * percent).div_ceil(100).max(1) - 1];
    let mean = latencies.iter().sum::<u64>() as f64 / latencies.len() as f64;
    let values = [
        ("min", *min as f64),
        ("mean", mean),
        ("p50", percentile(50) as f64),
        ("p90", percentile(90) as f64),
        ("p99", percentile(99) as f64),
        ("max", *max as f64),
    ];
    metrics.extend(values.map(|(name, value)| (format!("{stem}.{name}"), value)));
}
