//! An experiment with a real redis-server and our own client.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::process::Command;
use std::time::Duration;

use testbeds::capture::{Capture, Direction, Filter, Limits, tcp_key};
use testbeds::host::Output;
use testbeds::redis::{self, ClientArgs};

use super::hosts::{Outcome, two_hosts};

/// Runs a real redis-server and our own client in two hosts.
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
    let requests: Vec<_> = recording.captured(Direction::In, tcp_key);
    let gets = requests
        .iter()
        .filter_map(|seen| redis::parse_request(&seen.key.payload))
        .filter(|(request, _)| request.command() == "GET" && request.key() == Some(b"cart:1"))
        .count();
    println!("captured GETs {gets}");
    Ok(())
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
