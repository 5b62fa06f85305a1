//! `cargo xtask tofino`: checks whether Tofino's own compiler places the programs of the shipped
//! scenarios and of testbeds/tofino. docs/tofino.md has the tables.
//!
//! bf-p4c is the open compiler for Tofino in p4lang/p4c (`p4c-barefoot`). No registry has it, so
//! the user names its path; without it the command prints that it is skipped.

mod verdict;

use anyhow::{Context, Result, bail};
use parser_gen::Arch;
use scenario::TargetModel;
use scenario::model::Scenario;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;
use verdict::Verdict;

/// Options of `cargo xtask tofino`.
#[derive(clap::Args)]
pub struct Args {
    /// Scenarios; without any, all shipped ones
    scenarios: Vec<PathBuf>,
    /// Path of the compiler, p4c-barefoot or bf-p4c; without it, the PATH is searched
    #[arg(long, value_name = "PATH")]
    bf_p4c: Option<PathBuf>,
    /// Folder with the compiler's core.p4, tna.p4 or t2na.p4; may be repeated
    #[arg(long, value_name = "FOLDER")]
    include: Vec<PathBuf>,
    /// Keep the programs and the compiler's logs in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Print the figures as JSON in the last line
    #[arg(long)]
    json: bool,
}

/// Names under which Tofino's compiler is searched on the PATH.
const NAMES: [&str; 2] = ["p4c-barefoot", "bf-p4c"];

/// Least number of faults in a program for a figure per fault: an average over fewer faults is mostly rounding.
const MANY: u64 = 8;

/// Maximum share of each resource of a chip that one fault may take.
const UNIT_SHARE: f64 = 0.1;

/// Tofino chip, with its names for the compiler and for the plan.
struct Chip {
    target: &'static str,
    arch: &'static str,
    /// Value of the macro `__TARGET_TOFINO__` for this chip.
    generation: u32,
    /// Size of the chip's packet header vector in bits.
    phv_bits: u64,
    model: TargetModel,
}

const CHIPS: [Chip; 2] = [
    Chip {
        target: "tofino",
        arch: "tna",
        generation: 1,
        phv_bits: 6144,
        model: TargetModel::TOFINO,
    },
    Chip {
        target: "tofino2",
        arch: "t2na",
        generation: 2,
        phv_bits: 5120,
        model: TargetModel::TOFINO2,
    },
];

/// Result of compiling one switch's program for one chip.
struct ProgramRow {
    name: String,
    outcome: Placement,
}

enum Placement {
    /// The scenario's plan refuses the program, for this reason.
    Refused(String),
    /// The compiler refuses the program, with this first error.
    Error(String),
    /// The compiler placed the program, which may still exceed the chip.
    Placed(Verdict),
}

impl ProgramRow {
    fn fits(&self) -> bool {
        matches!(&self.outcome, Placement::Placed(verdict) if verdict.fits())
    }
}

/// Compiles the programs of all scenarios; `Ok(false)` if a program does not fit its chip.
pub fn run(args: &Args) -> Result<bool> {
    let Some(compiler) = args.bf_p4c.clone().or_else(find_compiler) else {
        println!("skipped bf-p4c: not on the PATH; name it with --bf-p4c");
        return Ok(true);
    };
    let scratch = tempfile::tempdir()?;
    let folder = args.keep.as_deref().unwrap_or(scratch.path());
    let mut rows = Vec::new();
    let mut units = Vec::new();
    for file in scenarios(args)? {
        let scenario = load(&file)?;
        for chip in &CHIPS {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            match scenario::plan(&scenario, &chip.model) {
                Err(errors) => rows.push(ProgramRow {
                    name: format!("{stem}, {}", chip.target),
                    outcome: Placement::Refused(
                        errors
                            .0
                            .first()
                            .map_or_else(String::new, |error| error.message.clone()),
                    ),
                }),
                Ok(plan) => {
                    for switch in &plan.switches {
                        let name = format!("{stem}/{}, {}", switch.name, chip.target);
                        eprintln!("compiling {name} …");
                        let here = folder.join(name.replace(['/', ','], "-").replace(' ', ""));
                        let generated = switch.generate()?;
                        write(&here, &parser_gen::program(Arch::Tna, &generated))?;
                        let outcome = place(&compiler, &args.include, chip, &here)?;
                        let faults = switch.units.len() as u64;
                        if let Placement::Placed(all) = &outcome
                            && faults >= MANY
                        {
                            eprintln!("compiling {name} without its faults …");
                            let here = here.with_extension("bare");
                            let bare = switch.generate_without_faults()?;
                            write(&here, &parser_gen::program(Arch::Tna, &bare))?;
                            if let Placement::Placed(none) =
                                place(&compiler, &args.include, chip, &here)?
                            {
                                units.push((
                                    name.clone(),
                                    all.shares_per_fault(&none, faults, chip.phv_bits),
                                ));
                            }
                        }
                        rows.push(ProgramRow { name, outcome });
                    }
                }
            }
        }
    }
    print!("{}", report(&rows));
    for (name, shares) in &units {
        println!("\nOne fault of {name}, of what the chip has:");
        for (resource, share) in shares {
            println!("{resource:<24} {:5.1} %", share * 100.0);
        }
    }
    if args.json {
        println!("{}", as_json(&rows, &units));
    }
    Ok(rows.iter().all(ProgramRow::fits))
}

/// Loads a scenario file with the files that it names.
fn load(file: &Path) -> Result<Scenario> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let text = read(file)?;
    let name = file.display().to_string();
    let beside = file.parent().unwrap_or(Path::new(""));
    let given = scenario::Given::named(&name, &text, |named| {
        let path = beside.join(named);
        let text = read(&path).map_err(|error| format!("{error:#}"))?;
        Ok((path.display().to_string(), text))
    });
    scenario::load_with(&name, &text, &given).map_err(|errors| anyhow::anyhow!("{errors}"))
}

fn find_compiler() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut folders = std::env::split_paths(&path);
    folders.find_map(|folder| {
        let mut files = NAMES.iter().map(|name| folder.join(name));
        files.find(|file| file.is_file())
    })
}

fn scenarios(args: &Args) -> Result<Vec<PathBuf>> {
    if !args.scenarios.is_empty() {
        return Ok(args.scenarios.clone());
    }
    let mut all = Vec::new();
    for folder in ["tofino", "scenarios"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../testbeds")
            .join(folder);
        let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| {
                path.extension()
                    .is_some_and(|extension| extension == "yaml")
            })
            .collect();
        if files.is_empty() {
            bail!("no scenarios in {}", folder.display());
        }
        files.sort();
        all.append(&mut files);
    }
    Ok(all)
}

fn write(folder: &Path, files: &[(String, String)]) -> Result<()> {
    for (path, text) in files {
        let file = folder.join(path);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

fn place(compiler: &Path, includes: &[PathBuf], chip: &Chip, folder: &Path) -> Result<Placement> {
    let out = folder.join("out");
    std::fs::create_dir_all(&out)?;
    let mut command = Command::new(compiler);
    command.args(["-g", "--target", chip.target, "--arch", chip.arch]);
    command.arg(format!("-D__TARGET_TOFINO__={}", chip.generation));
    for include in includes {
        command.arg("-I").arg(include);
    }
    command.arg("-o").arg(&out);
    let output = command
        .arg(folder.join(Arch::Tna.main_path()))
        .output()
        .with_context(|| format!("cannot start {}", compiler.display()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let mut lines = errors.lines();
        let error = lines
            .find_map(|line| {
                Some(
                    line.split_once("error: ")
                        .or(line.split_once("Compiler Bug: "))?
                        .1,
                )
            })
            .unwrap_or("the compiler failed without an error message");
        return Ok(Placement::Error(first_line(error)));
    }
    Ok(Placement::Placed(Verdict::read(&out)?))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Formats a table with a line for each program, as in docs/tofino.md.
fn report(rows: &[ProgramRow]) -> String {
    let mut out = String::from(
        "| program, chip | stages, in / out | tables | SRAM | TCAM | map RAM | ALUs | hash dist. | \
         crossbar ex. / tern. | PHV bits | parser rows, in / out | fits |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let cells = match &row.outcome {
            Placement::Refused(why) => {
                format!("refused by the plan: {why} | | | | | | | | | | no")
            }
            Placement::Error(why) => format!("refused: {why} | | | | | | | | | | no"),
            Placement::Placed(v) => format!(
                "{} / {} of {} | {} | {} | {} | {} | {} | {} | {} / {} | {} | {} / {} | {}",
                v.ingress_stages,
                v.egress_stages,
                v.chip_stages,
                v.tables,
                v.sram,
                v.tcam,
                v.map_rams,
                v.alus,
                v.hash_units,
                v.exact_bytes,
                v.ternary_bytes,
                v.phv_bits,
                v.ingress_rows,
                v.egress_rows,
                if v.fits() { "yes" } else { "no" },
            ),
        };
        out.push_str(&format!("| {} | {cells} |\n", row.name));
    }
    out
}

/// Formats the results as JSON, in the benchmarks' format: a list of rows with name, value, reach, ok.
fn as_json(rows: &[ProgramRow], units: &[(String, Vec<(&str, f64)>)]) -> String {
    let shares = units.iter().flat_map(|(name, shares)| {
        shares.iter().map(move |(resource, share)| {
            json!({
                "name": format!("{name}: {resource} of one fault"),
                "value": share,
                "reach": UNIT_SHARE,
                "ok": *share <= UNIT_SHARE,
            })
        })
    });
    let rows: Vec<_> = rows
        .iter()
        .map(|row| match &row.outcome {
            Placement::Placed(verdict) => json!({
                "name": row.name,
                "value": verdict.ingress_stages.max(verdict.egress_stages),
                "reach": verdict.chip_stages,
                "parser_rows": verdict.ingress_rows.max(verdict.egress_rows),
                "phv_bits": verdict.phv_bits,
                "ok": row.fits(),
            }),
            Placement::Refused(why) | Placement::Error(why) => json!({
                "name": row.name,
                "value": null,
                "why": why,
                "ok": false,
            }),
        })
        .chain(shares)
        .collect();
    json!(rows).to_string()
}
