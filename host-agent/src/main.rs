//! `weir-agent`: one worker or one parameter server. `weir agent` is the same.

use std::process::ExitCode;

use clap::Parser;
use host_agent::agent::AgentCommand;

/// A worker or a parameter server of a training job, over raw packets.
#[derive(Parser)]
#[command(name = "weir-agent", version)]
struct Arguments {
    #[command(subcommand)]
    command: AgentCommand,
}

fn main() -> ExitCode {
    Arguments::parse().command.run()
}
