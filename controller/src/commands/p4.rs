//! `weir p4 check|info FILE`

use std::path::Path;
use std::process::ExitCode;

use super::{ERROR, fail, print};
use crate::cli::{P4, P4File};

/// Looks at a P4 program.
pub fn main(command: &P4) -> ExitCode {
    let (P4::Check(args) | P4::Info(args)) = command;
    if !args.file.is_file() {
        return fail(format_args!("cannot read {}", args.file.display()));
    }
    match compile(args) {
        Ok(compiled) => {
            let text = match command {
                P4::Check(_) => format!("{}: no errors\n", args.file.display()),
                P4::Info(_) => p4rt::text::p4info(&p4rt::p4info::to_proto(&compiled.p4info)),
            };
            print(text).map_or_else(|code| code, |()| ExitCode::SUCCESS)
        }
        Err(diagnostics) => {
            eprint!("{}", diagnostics.render(std::io::IsTerminal::is_terminal(&std::io::stderr())));
            ExitCode::from(ERROR)
        }
    }
}

fn compile(args: &P4File) -> Result<p4lang::Compiled, p4lang::diagnostics::Diagnostics> {
    let loader = |path: &str| std::fs::read_to_string(Path::new(path)).ok();
    let text = |path: &std::path::PathBuf| path.to_string_lossy().into_owned();
    let define = |text: &String| match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (text.clone(), "1".to_owned()),
    };
    let options = p4lang::Options {
        include_dirs: args.include.iter().map(text).collect(),
        defines: args.define.iter().map(define).collect(),
        ..p4lang::Options::default()
    };
    p4lang::compile(&loader, &text(&args.file), &options)
}
