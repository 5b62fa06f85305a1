//! `weir`: aggregate gradients inside the network; inject declared faults, and prove what they hit.

mod cli;
mod commands;
mod demo;
mod experiment;
mod log;
mod progress;
mod report;
mod scenario_run;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    log::to_stderr(cli.verbose);
    // Commands that build networks re-execute this process in namespaces of their own, before any thread exists.
    match cli.command {
        Command::Demo(args) => commands::demo::main(&args),
        Command::Control(args) => commands::control::main(&args),
        Command::Run(args) => commands::run::main(&args),
        Command::Validate(args) => commands::validate::main(&args),
        Command::Plan(args) => commands::plan::main(&args),
        Command::Switch(args) => softswitch::run(args),
        Command::P4(command) => commands::p4::main(&command),
        Command::Completions { shell } => commands::pages::completions(shell),
        Command::Man { folder } => commands::pages::manual(&folder),
        Command::Agent(command) => command.run(),
        Command::Client(args) => commands::run::client(&args),
    }
}
