//! The Redis workload: a Redis server, and clients of weir that send requests to it, each on its host.

use std::net::SocketAddrV4;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use scenario::diagnostic::shown;
use scenario::model::Scenario;
use scenario::model::expect::Measure;
use scenario::model::expect::metric::{ClientMetric, Metric, Metrics};
use scenario::model::workload::{Redis, RedisClient};
use testbeds::bed::{Bed, BedError};
use testbeds::host::{Host, Output, Process, ProcessError};
use testbeds::redis::{ClientReport, Server};

use super::error::RedisError;
use super::{Load, Measured, Position, Timed, WorkloadError};
use crate::experiment::percentile::percentile;
use crate::experiment::process_end::how_it_ended;

/// After a client has lost its connection, how long to wait for the end of the server, which may be the cause.
const AFTERMATH: Duration = Duration::from_millis(200);

/// Maximum number of characters that a message shows of a server's answer.
const ANSWER: usize = 120;

struct Client {
    declared: RedisClient,
    host: Host,
    process: Option<Process>,
    report: Option<ClientReport>,
}

/// The running Redis server and its clients.
pub struct RedisLoad {
    server: Server,
    server_host: String,
    address: SocketAddrV4,
    clients: Vec<Client>,
    limit: Duration,
    weir: PathBuf,
}

impl RedisLoad {
    /// Starts the Redis server; the clients start when the workload begins.
    pub fn start(
        bed: &Bed,
        scenario: &Scenario,
        redis: &Redis,
        weir: &Path,
    ) -> Result<RedisLoad, RedisError> {
        let host = |name: &str| -> Result<&Host, RedisError> {
            bed.host(name)
                .ok_or_else(|| BedError::Unknown(format!("host {name}")).into())
        };
        let declared = scenario.topology.host(&redis.server);
        let ip = declared.map(|host| host.ip);
        let ip = ip.ok_or_else(|| BedError::Unknown(format!("host {}", redis.server)))?;
        let address = SocketAddrV4::new(ip, redis.port);
        let mut clients = Vec::new();
        for client in &redis.clients {
            clients.push(Client {
                declared: client.clone(),
                host: host(&client.host)?.clone(),
                process: None,
                report: None,
            });
        }
        let server = Server::start(host(&redis.server)?, address)?;
        tracing::info!(host = redis.server, %address, "redis-server answers");
        Ok(RedisLoad {
            server,
            server_host: redis.server.clone(),
            address,
            clients,
            limit: Duration::from_nanos(scenario.limits.time_ns),
            weir: weir.to_owned(),
        })
    }

    /// Error for the client at `index`, which ended without a report: the server's end, if the server has ended as well.
    fn blame(&mut self, index: usize) -> Result<RedisError, ProcessError> {
        if let Some(reason) = self.server.ended(AFTERMATH)? {
            return Ok(self.server_ended(reason));
        }
        let client = &mut self.clients[index];
        let reason = match &mut client.process {
            Some(process) => how_it_ended(process)?,
            None => "it did not start".to_owned(),
        };
        Ok(RedisError::Client {
            name: client.declared.name.clone(),
            host: client.declared.host.clone(),
            reason,
        })
    }

    fn server_ended(&self, reason: String) -> RedisError {
        RedisError::ServerEnded {
            host: self.server_host.clone(),
            reason,
        }
    }
}

impl Load for RedisLoad {
    fn begin(&mut self) -> Result<(), WorkloadError> {
        for client in &mut self.clients {
            let command = command(&self.weir, &client.declared, self.address, self.limit);
            let process = client.host.spawn(command).map_err(RedisError::Process)?;
            client.process = Some(process);
        }
        Ok(())
    }

    fn poll(&mut self, mut most: Duration) -> Result<ControlFlow<()>, WorkloadError> {
        let mut lost = None;
        for (index, client) in self.clients.iter_mut().enumerate() {
            let (Some(process), None) = (&mut client.process, &client.report) else {
                continue;
            };
            // Waits for one line only.
            match process.next_line(std::mem::take(&mut most)) {
                Output::Line(line) => {
                    client.report = serde_json::from_str(&line).ok();
                    tracing::info!(client = client.declared.name, "client is done");
                }
                Output::TimedOut => {}
                Output::End => lost = Some(index),
            }
        }
        if let Some(index) = lost {
            return Err(self.blame(index).map_err(RedisError::Process)?.into());
        }
        if self.clients.iter().all(|client| client.report.is_some()) {
            return Ok(ControlFlow::Break(()));
        }
        match self
            .server
            .ended(Duration::ZERO)
            .map_err(RedisError::Process)?
        {
            Some(reason) => Err(self.server_ended(reason).into()),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    fn position(&self) -> Position {
        let done = self.clients.iter().filter(|client| client.report.is_some());
        let waiting = self.clients.iter().filter(|client| client.report.is_none());
        let waiting: Vec<&str> = waiting
            .map(|client| client.declared.name.as_str())
            .collect();
        Position {
            unit: "clients",
            done: done.count() as u64,
            total: self.clients.len() as u64,
            message: match waiting.is_empty() {
                true => String::new(),
                false => format!("waiting for {}", waiting.join(", ")),
            },
        }
    }

    fn process(&mut self, host: &str) -> Option<&mut Process> {
        let mut clients = self.clients.iter_mut();
        let client = clients.find(|client| client.declared.host == host)?;
        client.process.as_mut()
    }

    fn finish(self: Box<Self>) -> Result<Measured, WorkloadError> {
        let mut measured = Measured::default();
        for report in self
            .clients
            .iter()
            .filter_map(|client| client.report.as_ref())
        {
            add_metrics(&mut measured.metrics, report);
            measured.timed.push(over_time(report));
            measured.remarks.extend(refusals(report));
        }
        Ok(measured)
    }
}

fn command(weir: &Path, client: &RedisClient, server: SocketAddrV4, limit: Duration) -> Command {
    let mut command = Command::new(weir);
    command.args(["client", "--name", &client.name]);
    command.args(["--server", &server.to_string()]);
    command.args(["--requests", &client.requests.to_string()]);
    command.args(["--value-bytes", &client.value_bytes.to_string()]);
    command.args(["--pause-us", &(client.pause_ns / 1_000).to_string()]);
    command.args(["--timeout-ms", &limit.as_millis().to_string()]);
    for words in &client.commands {
        command.args(["--command", &words.join(" ")]);
    }
    command
}

/// Adds metrics of a client's requests, of all together and by Redis command.
fn add_metrics(metrics: &mut Metrics, report: &ClientReport) {
    let all = report
        .operations
        .iter()
        .map(|operation| operation.latency_ns);
    add_group(metrics, &report.name, None, all.collect());
    let errors = Metric::client(&report.name, None, ClientMetric::Errors);
    metrics.insert(errors, report.errors as f64);
    for summary in &report.commands {
        let of_command = report
            .operations
            .iter()
            .filter(|operation| operation.command == summary.command);
        let latencies = of_command.map(|operation| operation.latency_ns);
        let command = Some(summary.command.as_str());
        add_group(metrics, &report.name, command, latencies.collect());
    }
}

/// Time and latency of each request of a client.
fn over_time(report: &ClientReport) -> Timed {
    let operations = report.operations.iter();
    Timed {
        name: format!("client {}, latency", report.name),
        measure: Measure::Duration,
        points: operations
            .map(|operation| {
                (
                    report.began_ns + operation.at_ns,
                    operation.latency_ns as f64,
                )
            })
            .collect(),
    }
}

/// Remark on a client's requests that the server refused, whose latencies are not those of served requests; `None` if the
/// server refused none.
fn refusals(report: &ClientReport) -> Option<String> {
    let mut answers = report
        .operations
        .iter()
        .filter_map(|operation| operation.error.as_deref());
    let first = shown(answers.next()?, ANSWER);
    Some(format!(
        "client {}: the server answered {} of {} requests with an error, the first with `{first}`",
        report.name,
        report.errors,
        report.operations.len()
    ))
}

fn add_group(metrics: &mut Metrics, client: &str, command: Option<&str>, mut latencies: Vec<u64>) {
    latencies.sort_unstable();
    let mut insert = |what, value| {
        metrics.insert(Metric::client(client, command, what), value);
    };
    insert(ClientMetric::Requests, latencies.len() as f64);
    let (Some(min), Some(max)) = (latencies.first(), latencies.last()) else {
        return;
    };
    insert(ClientMetric::Min, *min as f64);
    let mean = latencies.iter().sum::<u64>() as f64 / latencies.len() as f64;
    insert(ClientMetric::Mean, mean);
    insert(ClientMetric::P50, percentile(&latencies, 50) as f64);
    insert(ClientMetric::P90, percentile(&latencies, 90) as f64);
    insert(ClientMetric::P99, percentile(&latencies, 99) as f64);
    insert(ClientMetric::Max, *max as f64);
}

#[cfg(test)]
mod tests {
    use testbeds::redis::Operation;

    use super::*;

    #[test]
    fn refused_requests_are_told_of_with_the_first_answer() {
        let operation = |error: Option<&str>| Operation {
            command: "FLY".to_owned(),
            key: "k".to_owned(),
            at_ns: 0,
            latency_ns: 1,
            error: error.map(str::to_owned),
        };
        let mut report = ClientReport {
            name: "a".to_owned(),
            began_ns: 0,
            errors: 0,
            commands: Vec::new(),
            operations: vec![operation(None)],
        };
        assert_eq!(refusals(&report), None);
        let errors = ["ERR unknown command 'FLY'\u{1b}[2J", "ERR other"];
        report
            .operations
            .extend(errors.map(|error| operation(Some(error))));
        report.errors = 2;
        assert_eq!(
            refusals(&report).as_deref(),
            Some(
                "client a: the server answered 2 of 3 requests with an error, the first with `ERR unknown command \
                 'FLY'\u{241b}[2J`"
            )
        );
    }
}
