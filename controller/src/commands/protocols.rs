//! Reads the files that a scenario needs: protocols, workload and topology that it names, and protocols of `--protocols`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use parser_gen::ProtocolSource;
use scenario::Given;

use super::fail;

/// Reads the files that a scenario names, and the protocol files in `folders`.
pub fn given(path: &Path, text: &str, folders: &[PathBuf]) -> Result<Given, ExitCode> {
    let mut protocols = Vec::new();
    for folder in folders {
        protocols.extend(all_of(folder)?);
    }
    Ok(Given {
        protocols,
        ..named(path, text)
    })
}

/// Reads the files that a scenario names; their paths are relative to the folder of `path`, the scenario's file.
pub fn named(path: &Path, text: &str) -> Given {
    let beside = match cli_io::disk::is_stdin(path) {
        true => Path::new(""),
        false => path.parent().unwrap_or(Path::new("")),
    };
    Given::named(&path.display().to_string(), text, |name| {
        let source = source(&beside.join(name)).map_err(|error| error.to_string())?;
        Ok((source.file, source.text))
    })
}

fn source(path: &Path) -> std::io::Result<ProtocolSource> {
    // `-` would mean the standard input, which the scenario itself may be.
    let path = match path == Path::new("-") {
        true => Path::new("./-"),
        false => path,
    };
    Ok(ProtocolSource {
        file: path.display().to_string(),
        text: cli_io::disk::text(path)?,
    })
}

/// The YAML files of a folder with their texts, sorted by name.
fn all_of(folder: &Path) -> Result<Vec<ProtocolSource>, ExitCode> {
    let wrong = |path: &Path, error: std::io::Error| {
        fail(format_args!("cannot read {}: {error}", path.display()))
    };
    let entries = std::fs::read_dir(folder).map_err(|error| wrong(folder, error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| wrong(folder, error))?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "yaml" || extension == "yml")
        {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        let folder = folder.display();
        return Err(fail(format_args!(
            "--protocols {folder}: there is no *.yaml in this folder"
        )));
    }
    let sources = paths
        .iter()
        .map(|path| source(path).map_err(|error| wrong(path, error)));
    sources.collect()
}
