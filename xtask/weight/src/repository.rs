//! Reads the crates of the repository: the number of their lines, and their import cycles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::cycles::{self, Cycle};
use crate::tree::{Texts, Tree};

/// Numbers of lines of source code, blank lines and comments included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lines {
    /// Number of lines that a user of the product runs or builds.
    pub source: u64,
    /// Number of lines that only tests need.
    pub tests: u64,
}

/// Content of the repository: numbers of lines, and import cycles.
#[derive(Debug, Default)]
pub struct Contents {
    /// Numbers of lines of Rust, by crate.
    pub crates: BTreeMap<String, Lines>,
    /// Numbers of lines of P4.
    pub p4: Lines,
    /// Numbers of lines of Python.
    pub python: Lines,
    /// Import cycles: (name of the crate, cycle). A program beside a library, an example or a
    /// benchmark has its path behind the crate's name.
    pub cycles: Vec<(String, Cycle)>,
}

/// Reads all files in the top folders of the repository `root` that contain crates of its workspace.
///
/// # Errors
/// If a file cannot be read, belongs to no crate or is declared by no module.
pub fn read(root: &Path) -> Result<Contents> {
    let manifest = fs::read_to_string(root.join("Cargo.toml")).context("Cargo.toml")?;
    let mut files = Vec::new();
    for folder in top_folders(&manifest)? {
        list(root, Path::new(folder), &mut files)?;
    }
    let mut contents = Contents::default();
    let mut texts: BTreeMap<PathBuf, Texts> = BTreeMap::new();
    let mut names = BTreeMap::new();
    let (manifests, files): (Vec<_>, Vec<_>) = files
        .into_iter()
        .partition(|file| file.ends_with("Cargo.toml"));
    for manifest in manifests {
        let text = read_file(root, &manifest)?;
        if let (Some(name), Some(folder)) = (package_name(&text), manifest.parent()) {
            names.insert(folder.to_path_buf(), name.to_owned());
        }
    }
    for file in files {
        let kind = match file.extension().and_then(|extension| extension.to_str()) {
            Some("rs") => {
                let mut folders = file.ancestors();
                let Some(folder) = folders.find(|folder| names.contains_key(*folder)) else {
                    bail!("{}: the file belongs to no crate", file.display());
                };
                let text = read_file(root, &file)?;
                texts
                    .entry(folder.to_path_buf())
                    .or_default()
                    .insert(file, text);
                continue;
            }
            Some("p4") => &mut contents.p4,
            Some("py") => &mut contents.python,
            _ => continue,
        };
        let count = count(&read_file(root, &file)?);
        let is_test = |part: Component| {
            ["tests", "fuzz"]
                .iter()
                .any(|name| part.as_os_str() == *name)
        };
        if file.components().any(is_test) {
            kind.tests += count;
        } else {
            kind.source += count;
        }
    }
    for (folder, texts) in texts {
        let name = &names[&folder];
        let (lines, cycles) = read_crate(name, &folder, &texts)?;
        contents.crates.insert(name.clone(), lines);
        contents.cycles.extend(cycles);
    }
    Ok(contents)
}

/// Lines and import cycles of one crate. The paths of `texts` begin with `folder`.
fn read_crate(name: &str, folder: &Path, texts: &Texts) -> Result<(Lines, Vec<(String, Cycle)>)> {
    let mut cycles = Vec::new();
    // Lines of source in each file, for each file that a module tree has.
    let mut declared: BTreeMap<&Path, u64> = BTreeMap::new();
    let mut trees = Vec::new();
    for root in texts.keys() {
        if let Some(label) = target(root.strip_prefix(folder)?) {
            let label = [name, label].join(if label.is_empty() { "" } else { "/" });
            trees.push((label, Tree::read(root, texts)?));
        }
    }
    for (label, tree) in &trees {
        for module in &tree.modules {
            let source = declared.entry(&module.file).or_default();
            let is_file = module
                .parent
                .is_none_or(|parent| tree.modules[parent].file != module.file);
            if is_file && !module.test {
                *source = count(&texts[&module.file]) - module.items.test_lines as u64;
            }
        }
        let found = cycles::find(tree);
        cycles.extend(found.into_iter().map(|cycle| (label.clone(), cycle)));
    }
    let mut lines = Lines::default();
    for (file, text) in texts {
        let all = count(text);
        let source = match declared.get(file.as_path()) {
            Some(source) => *source,
            None if folder.ends_with("fuzz") => 0,
            None => match file.strip_prefix(folder)?.components().next() {
                Some(first) if first.as_os_str() == "tests" => 0,
                Some(first) if first.as_os_str() == "build.rs" => all,
                _ => bail!("{}: no module of {name} declares this file", file.display()),
            },
        };
        lines.source += source;
        lines.tests += all - source;
    }
    Ok((lines, cycles))
}

/// Name of the library, program, example or benchmark of which a file of a crate is the root, by cargo's
/// conventions. The main library or program of a crate has an empty name; `None` for any other file.
fn target(file: &Path) -> Option<&str> {
    let text = file.to_str()?;
    let name = text.strip_suffix("/main.rs").or(text.strip_suffix(".rs"))?;
    let parts: Vec<_> = name.split('/').collect();
    match parts[..] {
        ["src"] | ["src", "lib"] => Some(""),
        ["src", "bin", _] | ["examples" | "benches", _] => Some(name),
        _ => None,
    }
}

/// Lists the files below a folder, except hidden and generated folders.
fn list(root: &Path, folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(root.join(folder)).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let path = folder.join(&name);
        if entry.file_type()?.is_dir() {
            // cargo marks the folders that it writes to.
            let generated = root.join(&path).join("CACHEDIR.TAG").exists();
            if !generated && !name.to_string_lossy().starts_with('.') {
                list(root, &path, files)?;
            }
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The top folders of the repository that contain crates of the workspace, by the workspace's manifest.
fn top_folders(manifest: &str) -> Result<BTreeSet<&str>> {
    let members = manifest
        .split_once("members = [")
        .and_then(|(_, rest)| rest.split_once(']'));
    let Some((members, _)) = members else {
        bail!("Cargo.toml has no `members = […]`: start this command in the repository's root");
    };
    // Every second part is between quotes.
    let members = members.split('"').skip(1).step_by(2);
    Ok(members
        .map(|member| member.split('/').next().unwrap_or(member))
        .collect())
}

/// The name of the package that a manifest (Cargo.toml) describes; `None` if it describes no package.
fn package_name(manifest: &str) -> Option<&str> {
    let (_, package) = manifest.split_once("[package]")?;
    let (_, name) = package.split_once("\nname = \"")?;
    Some(name.split_once('"')?.0)
}

fn read_file(root: &Path, file: &Path) -> Result<String> {
    fs::read_to_string(root.join(file)).with_context(|| file.display().to_string())
}

fn count(text: &str) -> u64 {
    text.lines().count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a workspace with these files below its member `m`.
    fn contents(files: &[(&str, &str)]) -> Result<Contents> {
        let folder = tempfile::tempdir().expect("a folder");
        let manifest = "members = [\n\"m/a\",\n\"m\",\n]";
        fs::write(folder.path().join("Cargo.toml"), manifest).expect("a file");
        for (file, text) in files {
            let path = folder.path().join("m").join(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        read(folder.path())
    }

    const MANIFEST: (&str, &str) = ("a/Cargo.toml", "[package]\nname = \"one\"\n");

    #[test]
    fn lines_count_for_the_nearest_crate_as_source_or_tests() {
        let contents = contents(&[
            MANIFEST,
            (
                "a/src/lib.rs",
                "mod b;\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod c {}\n",
            ),
            ("a/src/b.rs", "// A comment.\n\nfn f() {}\n"),
            ("a/src/tests.rs", "mod deep;\n"),
            ("a/src/tests/deep.rs", "\n\n"),
            ("a/src/bin/tool/main.rs", "mod b;\n"),
            ("a/src/bin/tool/b.rs", "\n"),
            ("a/examples/shown.rs", "\n"),
            ("a/build.rs", "\n"),
            ("a/tests/it/main.rs", "mod undeclared;\n"),
            ("a/tests/it/other.rs", "\n"),
            ("a/fuzz/Cargo.toml", "[package]\nname = \"one-fuzz\"\n"),
            ("a/fuzz/targets/one.rs", "\n\n\n"),
            ("a/target/CACHEDIR.TAG", ""),
            ("a/target/generated.rs", "\n"),
            ("a/.hidden/file.rs", "\n"),
            ("x.p4", "\n\n"),
            ("tests/x.p4", "\n"),
            ("x.py", "\n"),
            ("a/tests/x.py", "\n\n"),
        ]);
        let contents = contents.expect("contents");
        let lines = |source, tests| Lines { source, tests };
        let expected = [
            (
                "one".to_owned(),
                lines(1 + 3 + 1 + 1 + 1 + 1, 4 + 1 + 2 + 1 + 1),
            ),
            ("one-fuzz".to_owned(), lines(0, 3)),
        ];
        assert_eq!(contents.crates, BTreeMap::from(expected));
        assert_eq!(contents.p4, lines(2, 1));
        assert_eq!(contents.python, lines(1, 2));
    }

    #[test]
    fn cycles_are_named_by_their_target() {
        let cycle = "mod x { use super::y::Y; } mod y { use super::x::X; }";
        let contents = contents(&[
            MANIFEST,
            ("a/src/main.rs", cycle),
            ("a/src/bin/tool.rs", cycle),
            ("a/examples/shown/main.rs", cycle),
            ("a/tests/it.rs", cycle),
        ]);
        let cycles = contents.expect("contents").cycles;
        let mut targets: Vec<_> = cycles.iter().map(|(target, _)| target.as_str()).collect();
        targets.sort_unstable();
        assert_eq!(targets, ["one", "one/examples/shown", "one/src/bin/tool"]);
    }

    #[test]
    fn a_file_that_no_module_declares_is_an_error() {
        let contents = contents(&[MANIFEST, ("a/src/lib.rs", ""), ("a/src/b.rs", "")]);
        let error = contents.expect_err("an error").to_string();
        assert_eq!(error, "m/a/src/b.rs: no module of one declares this file");
    }

    #[test]
    fn a_file_outside_of_all_crates_is_an_error() {
        let error = contents(&[("b.rs", "")]).expect_err("an error").to_string();
        assert_eq!(error, "m/b.rs: the file belongs to no crate");
    }
}
