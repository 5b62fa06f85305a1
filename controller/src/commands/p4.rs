//! `weir p4 check|info|preprocess|fmt|graph|resources|run`: checks, prints, formats or runs P4 programs.

#[cfg(feature = "testbed")]
mod run;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use cli_io::disk::{self, Disk};
use p4lang::diagnostics::{Code, Diagnostics, Severity};
use p4lang::tofino;
use serde_json::json;

use super::colour::coloured;
use super::{ERROR, fail, print, print_bytes, print_json};
use crate::cli::p4::{Chip, Color, MessageFormat, P4, P4File, P4Graph, P4Resources};

/// Performs a subcommand of `weir p4`.
pub fn main(command: &P4) -> ExitCode {
    let done = match command {
        P4::Check(args) => compile(args).and_then(|compiled| {
            show(&p4lang::validity::check(&compiled.program), args.color);
            print(format_args!("{}: no errors\n", args.file.display()))
        }),
        P4::Info(args) => compile(&args.source).and_then(|compiled| info(&compiled, args.format)),
        P4::Preprocess(args) => preprocess(args),
        P4::Graph(args) => graph(args),
        P4::Fmt(args) => return super::fmt::main(args),
        P4::Resources(args) => return resources(args),
        #[cfg(feature = "testbed")]
        P4::Run(args) => run::run(args),
    };
    done.map_or_else(|code| code, |()| ExitCode::SUCCESS)
}

fn graph(args: &P4Graph) -> Result<(), ExitCode> {
    let compiled = compile(&args.source)?;
    let text = p4lang::graph::dot(&compiled.program);
    let Some(file) = &args.output else {
        return print(text);
    };
    let sources = &compiled.program.source.files;
    if let Some(source) = sources.iter().find(|source| is_same(file, source.as_ref())) {
        return Err(fail(format_args!(
            "--output {} would overwrite the program's source {source}: use another path",
            file.display()
        )));
    }
    std::fs::write(file, text)
        .map_err(|error| fail(format_args!("cannot write {}: {error}", file.display())))
}

/// Whether both paths exist and lead to the same file.
fn is_same(a: &Path, b: &Path) -> bool {
    let identity = |path| std::fs::metadata(path).ok().map(|m| (m.dev(), m.ino()));
    identity(a).is_some_and(|a| Some(a) == identity(b))
}

fn options(args: &P4File) -> Result<p4lang::Options, ExitCode> {
    let folder = |path: &PathBuf| match disk::name(path) {
        Ok(name) => Ok(name.to_owned()),
        Err(why) => Err(fail(format_args!("-I {}: {why}", path.display()))),
    };
    let define = |text: &String| match text.split_once('=') {
        Some((name, value)) => (name.to_owned(), value.to_owned()),
        None => (text.clone(), "1".to_owned()),
    };
    let mut include_dirs: Vec<String> =
        args.include.iter().map(folder).collect::<Result<_, _>>()?;
    if disk::is_stdin(&args.file) {
        include_dirs.insert(0, ".".to_owned());
    }
    Ok(p4lang::Options {
        include_dirs,
        defines: args.define.iter().map(define).collect(),
    })
}

fn name(args: &P4File) -> Result<&str, ExitCode> {
    let file = &args.file;
    if disk::is_stdin(file) {
        return Ok("/dev/stdin");
    }
    disk::name(file).map_err(|why| fail(format_args!("cannot read {}: {why}", file.display())))
}

/// Compiles a P4 program; prints its errors and warnings.
fn compile(args: &P4File) -> Result<p4lang::Compiled, ExitCode> {
    let compiled = p4lang::compile(&Disk, name(args)?, &options(args)?)
        .map_err(|diagnostics| show(&with_generator(diagnostics), args.color))?;
    show(&compiled.warnings, args.color);
    Ok(compiled)
}

fn info(compiled: &p4lang::Compiled, format: MessageFormat) -> Result<(), ExitCode> {
    let message = p4rt::p4info::to_proto(&compiled.p4info);
    match format {
        MessageFormat::Text => print(p4rt::text::p4info(&message)),
        MessageFormat::Binary => print_bytes(&p4rt::p4info::to_bytes(&message)),
    }
}

/// Prints the preprocessed program as one text. Only its preprocessor directives must be correct, not its P4 code.
fn preprocess(args: &P4File) -> Result<(), ExitCode> {
    let text = p4lang::preprocessed(&Disk, name(args)?, &options(args)?)
        .map_err(|diagnostics| show(&with_generator(diagnostics), args.color))?;
    print(text)
}

/// Adds a hint to errors on missing includes of p4src's `main.p4`: the command that generates the included files.
fn with_generator(mut diagnostics: Diagnostics) -> Diagnostics {
    let source = Arc::clone(&diagnostics.source);
    let includes = diagnostics.list.iter_mut();
    for missing in includes.filter(|fault| fault.code == Code::Include) {
        let line = source.line_text(source.line_index(missing.span.start));
        if ["\"generated.p4\"", "\"engine.p4\""]
            .iter()
            .any(|file| line.contains(file))
        {
            let generator = "`weir plan SCENARIO --emit-p4 FOLDER` generates it, with a copy of main.p4 beside it";
            let looked_for = missing.hint.take().unwrap_or_default();
            missing.hint = Some(format!("{generator}; {looked_for}"));
        }
    }
    diagnostics
}

/// Prints diagnostics; returns exit code 2, which applies if the diagnostics are errors.
fn show(diagnostics: &Diagnostics, color: Color) -> ExitCode {
    let coloured = coloured(color, &std::io::stderr());
    cli_io::stderr::tell(format_args!("{}", diagnostics.render(coloured)));
    ExitCode::from(ERROR)
}

/// Prints a lower bound of the resources that a program needs; exit code 2 if the program certainly does not fit the chip.
fn resources(args: &P4Resources) -> ExitCode {
    let compiled = match compile(&args.source) {
        Ok(compiled) => compiled,
        Err(code) => return code,
    };
    let chip = match args.target {
        Some(Chip::Tofino) => tofino::Chip::Tofino,
        Some(Chip::Tofino2) => tofino::Chip::Tofino2,
        None if compiled.program.arch == p4lang::ir::Arch::T2na => tofino::Chip::Tofino2,
        None => tofino::Chip::Tofino,
    };
    let report = match tofino::analyse(&compiled.program, chip) {
        Ok(report) => report,
        Err(error) => return fail(format_args!("{}: {error}", args.source.file.display())),
    };
    let faults = Diagnostics {
        list: report.faults.clone(),
        suppressed: 0,
        source: compiled.program.source.clone(),
    };
    let printed = if args.json {
        print_json(&report_json(&report, &faults))
    } else {
        print(&report)
    };
    if let Err(code) = printed {
        return code;
    }
    if faults.is_empty() {
        return ExitCode::SUCCESS;
    }
    let code = show(&faults, args.source.color);
    match faults.has_errors() {
        true => code,
        false => ExitCode::SUCCESS,
    }
}

fn report_json(report: &tofino::Report, faults: &Diagnostics) -> serde_json::Value {
    let place = |at: &p4lang::source::Location| json!({ "file": at.file, "line": at.line });
    let pipes: Vec<_> = report
        .pipes
        .iter()
        .map(|pipe| {
            let items: Vec<_> = pipe
                .items
                .iter()
                .map(|item| {
                    json!({
                        "resource": item.name,
                        "used": item.used,
                        "available": item.available,
                        "share": item.share(),
                        "costliest": item.most.as_ref().map(|(at, amount)| json!({ "at": place(at), "used": amount })),
                    })
                })
                .collect();
            let path: Vec<_> = pipe
                .critical_path
                .iter()
                .map(|(stage, what, at)| json!({ "stage": stage, "what": what, "at": place(at) }))
                .collect();
            json!({
                "pipe": pipe.name,
                "resources": items,
                "stages_by_resources": pipe.stages_by_resources,
                "stages": pipe.stages,
                "passes": pipe.passes,
                "critical_path": path,
            })
        })
        .collect();
    let list = |severity: Severity| -> Vec<_> {
        let of = faults.list.iter().filter(|f| f.severity == severity);
        of.map(|fault| json!({ "at": place(&faults.source.location(fault.span)), "message": fault.message }))
            .collect()
    };
    json!({
        "target": report.limits.name,
        "bound": "lower",
        "pipes": pipes,
        "errors": list(Severity::Error),
        "warnings": list(Severity::Warning),
    })
}
