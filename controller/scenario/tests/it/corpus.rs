//! Every file in corpus/ is a case: what it is told, or the plan it gets. What it names stands beside it. The files under
//! together/ are pairs.
#![allow(clippy::disallowed_methods, reason = "the corpus is a folder of files")]

use std::fs;
use std::path::{Path, PathBuf};

use scenario::diagnostic::{Diagnostics, Source};
use scenario::{Given, Plan, Scenario, TargetModel, check_together, load_with, plan};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

/// Diagnostics name the file as it was given, so the cases give only its last part.
fn read(path: &Path) -> (String, String) {
    (
        path.file_name().unwrap().to_str().unwrap().to_owned(),
        fs::read_to_string(path).unwrap(),
    )
}

/// The files that a case names.
pub fn given(name: &str, text: &str) -> Given {
    Given::named(name, text, |named| {
        let path = folder("corpus").join(named);
        match path.is_file() {
            true => Ok((named.to_owned(), fs::read_to_string(path).unwrap())),
            false => Err("there is no such file".to_owned()),
        }
    })
}

fn make(name: &str, text: &str) -> Result<(Scenario, Plan), Diagnostics> {
    let scenario = load_with(name, text, &given(name, text))?;
    let plan = plan(&scenario, &TargetModel::EMBEDDED)?;
    Ok((scenario, plan))
}

fn render(diagnostics: &Diagnostics, source: &Source<'_>) -> String {
    diagnostics
        .0
        .iter()
        .map(|diagnostic| diagnostic.render(source))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn corpus() {
    for path in files(&folder("corpus")) {
        let (name, text) = read(&path);
        let told = match make(&name, &text) {
            Ok((scenario, plan)) => {
                format!("{}{plan}", render(&scenario.warnings, &scenario.source()))
            }
            Err(diagnostics) => render(
                &diagnostics,
                &Source {
                    file: &name,
                    text: &text,
                },
            ),
        };
        let stem = path.file_stem().unwrap().to_str().unwrap();
        insta::with_settings!({description => text, omit_expression => true}, {
            insta::assert_snapshot!(stem, told);
        });
    }
}

#[test]
fn together() {
    let mut files = files(&folder("together")).into_iter();
    while let (Some(first), Some(second)) = (files.next(), files.next()) {
        let made = [first.as_path(), &second].map(|path| {
            let (name, text) = read(path);
            make(&name, &text).unwrap_or_else(|error| panic!("{error}"))
        });
        let [(first_scenario, first_plan), (second_scenario, second_plan)] = &made;
        let pairs = [(first_scenario, first_plan), (second_scenario, second_plan)];
        let found = check_together(&pairs, &TargetModel::EMBEDDED);
        let stem = first
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .split('.')
            .next()
            .unwrap();
        let told = render(&found, &second_scenario.source());
        insta::with_settings!({omit_expression => true}, {
            insta::assert_snapshot!(format!("together-{stem}"), told);
        });
    }
}

/// Every diagnostic points at text that its own line holds.
#[test]
fn places_lie_inside_the_file() {
    for path in files(&folder("corpus")) {
        let (name, text) = read(&path);
        let Err(diagnostics) = make(&name, &text) else {
            continue;
        };
        for diagnostic in diagnostics.0 {
            let text = match diagnostic.file == name {
                true => text.clone(),
                false => read(&folder("corpus").join(&diagnostic.file)).1,
            };
            assert!(
                diagnostic.span.start <= diagnostic.span.end && diagnostic.span.end <= text.len(),
                "{diagnostic}"
            );
            assert!(
                diagnostic.line <= text.lines().count().max(1),
                "{diagnostic}"
            );
        }
    }
}
