//! The program `weir`: parses the command line, calls the command's function in `commands/`, and returns its exit code.

mod cli;
mod commands;
mod log;

use std::process::ExitCode;

use clap::Parser;
use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    log::to_stderr(cli.verbose);
    // Commands that build networks fork into namespaces of their own, before any thread exists.
    match cli.command {
        #[cfg(feature = "testbed")]
        Command::Demo(args) => commands::demo::main(&args),
        #[cfg(feature = "testbed")]
        Command::Run(args) => commands::run::main(&args),
        #[cfg(feature = "testbed")]
        Command::Replay(args) => commands::replay::main(&args),
        #[cfg(feature = "testbed")]
        Command::Between(args) => commands::between::main(&args),
        #[cfg(feature = "testbed")]
        Command::Keeper => commands::between::keeper(),
        Command::Control(args) => commands::control::main(&args),
        #[cfg(feature = "testbed")]
        Command::Job(job) => commands::job::main(&job),
        Command::Doctor(args) => commands::doctor::main(&args),
        Command::Validate(args) => commands::validate::main(&args),
        Command::Plan(args) => commands::plan::main(&args),
        Command::Route(args) => commands::route::main(&args),
        Command::Collectives(command) => commands::collectives::main(&command),
        Command::Simulate(args) => commands::simulate::main(&args),
        #[cfg(feature = "testbed")]
        Command::Switch(mut args) => {
            args.logs = cli.verbose > 0;
            softswitch::run(args)
        }
        Command::P4(command) => commands::p4::main(&command),
        Command::Schema {
            reference,
            workload,
        } => commands::pages::schema(reference, workload),
        Command::Completions { shell } => commands::pages::completions(shell),
        Command::Man { folder } => commands::pages::manual(&folder),
        Command::Agent(command) => command.run(),
        #[cfg(feature = "testbed")]
        Command::Client(args) => commands::run::client(&args),
    }
}
