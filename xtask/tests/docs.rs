//! Checks of the documents: lines have at most 100 columns, links and paths of files have targets, and the table of
//! crates matches the manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

const COLUMNS: usize = 100;
/// Endings of paths that mean files of this repository, even when their first folders are omitted.
const SOURCES: &[&str] = &[".rs", ".p4", ".md", ".py", ".lua", ".yaml", ".toml"];

#[test]
fn pages_are_narrow() {
    report(|_, page| too_wide(&page.text));
}

#[test]
fn links_have_targets() {
    report(dead_links);
}

#[test]
fn paths_exist() {
    report(gone_paths);
}

/// Each dependency of a crate, except for tests, is in its row of the table in docs/architecture.md, or used by a crate there.
#[test]
fn crates_use_what_their_rows_name() {
    let checkout = Checkout::here();
    let page = fs::read_to_string(checkout.root.join("docs/architecture.md")).expect("the page");
    let crates = crate_rows(&page);
    assert!(crates.len() > 10, "only {} rows were found", crates.len());
    let mut wrong = Vec::new();
    for (name, row) in &crates {
        let manifest = checkout.root.join(&row.folder).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).expect("a manifest");
        let depends = dependencies(&manifest);
        let depends = depends.iter().filter(|other| crates.contains_key(*other));
        let depends: BTreeSet<&String> = depends.collect();
        let mut allowed: Vec<&String> = row.uses.iter().collect();
        let mut at = 0;
        while let Some(used) = allowed.get(at) {
            allowed.extend(&crates[*used].uses);
            at += 1;
        }
        let unnamed = depends.iter().filter(|other| !allowed.contains(other));
        wrong.extend(
            unnamed.map(|other| format!("{name} depends on {other}, which its row does not say")),
        );
        let unused = row.uses.iter().filter(|other| !depends.contains(other));
        wrong.extend(unused.map(|other| format!("{name} does not depend on {other}")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Each member of the workspace has a row with its folder and its name, and each row is a member.
#[test]
fn every_crate_has_its_row() {
    let checkout = Checkout::here();
    let read = |path: &str| fs::read_to_string(checkout.root.join(path)).expect("a file");
    let workspace = read("Cargo.toml");
    let members: Vec<&str> = workspace
        .lines()
        .skip_while(|line| *line != "members = [")
        .skip(1)
        .take_while(|line| *line != "]")
        .map(|line| line.trim().trim_matches(['"', ',']))
        .collect();
    assert!(
        members.len() > 20,
        "only {} members were found",
        members.len()
    );
    let rows = crate_rows(&read("docs/architecture.md"));
    let rows: BTreeSet<(String, String)> = rows
        .into_iter()
        .map(|(name, row)| (row.folder, name))
        .collect();
    let crates = members.iter().map(|folder| {
        let manifest = read(&format!("{folder}/Cargo.toml"));
        let mut lines = manifest.lines();
        let name = lines.find_map(|line| line.strip_prefix("name = "));
        let name = name.expect("a name").trim_matches('"');
        ((*folder).to_owned(), name.to_owned())
    });
    assert_eq!(rows, crates.collect());
}

struct CrateRow {
    folder: String,
    uses: Vec<String>,
}

/// Rows `| folder | crate | what | uses | I/O |`, by the crate's name.
fn crate_rows(page: &str) -> BTreeMap<String, CrateRow> {
    let table = page
        .lines()
        .skip_while(|line| !line.starts_with("| folder | crate |"));
    let rows = table.skip(2).take_while(|line| line.starts_with('|'));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let name = cells[1].split(' ').next().unwrap_or_default();
        let uses = cells[3].split(", ").filter(|other| *other != "–");
        let folder = cells[0].trim_matches('`').to_owned();
        let uses = uses.map(str::to_owned).collect();
        (name.to_owned(), CrateRow { folder, uses })
    };
    rows.map(row).collect()
}

/// The names under `[dependencies]`.
fn dependencies(manifest: &str) -> Vec<String> {
    let section = manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1);
    let lines = section.take_while(|line| !line.starts_with('['));
    let names = lines.filter_map(|line| line.split(['.', ' ', '=']).next());
    names.map(str::to_owned).collect()
}

#[test]
fn mistakes_are_found() {
    let wide = "x".repeat(COLUMNS + 1);
    let text = format!(
        "{wide}\n| {wide} |\n```\n{wide}\n```\n{}",
        "ß".repeat(COLUMNS)
    );
    assert_eq!(too_wide(&text), ["1: 101 columns"]);
    assert_eq!(too_wide("a\n```\nb"), ["2: the code block does not end"]);

    let checkout = Checkout::here();
    let page = |text: &str| Page {
        path: checkout.root.join("docs/protocol.md"),
        text: text.into(),
    };
    let links = "[a](filters.md) [b](filters.md#fields) [c](https://a.b/c) [d](#a-head)\n## A head!\n\
        [e](gone.md) [f](filters.md#gone)";
    let wrong = ["3: gone.md", "3: filters.md#gone: no such heading"];
    assert_eq!(dead_links(&checkout, &page(links)), wrong);
    let paths = "`docs/filters.md` and (docs/decisions/), `tests/docs.rs`, `lib.rs`, `common/{fault,types}.p4`.\n\
        See https://docs/gone.md, GONE/a, docs/gone.md: and `docs/{filters,gone2}.md`\n\
        ```\nweir run docs/gone3\n```\n`tests/gone4.rs`, gone5.rs";
    let wrong = [
        "2: docs/gone.md",
        "2: docs/gone2.md",
        "4: docs/gone3",
        "6: tests/gone4.rs",
        "6: gone5.rs",
    ];
    assert_eq!(gone_paths(&checkout, &page(paths)), wrong);
}

/// Paths of a checkout.
struct Checkout {
    root: PathBuf,
    /// Folders in its root.
    folders: BTreeSet<String>,
    /// All files and folders, by their paths from the root, each with a `/` in front.
    paths: BTreeSet<String>,
}

struct Page {
    path: PathBuf,
    text: String,
}

impl Checkout {
    fn here() -> Checkout {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let root = root.canonicalize().expect("the checkout is there");
        let mut paths = BTreeSet::new();
        walk(&root, "", &mut paths);
        let folders = paths
            .iter()
            .map(|p| p[1..].to_owned())
            .filter(|p| root.join(p).is_dir() && !p.contains('/'))
            .collect();
        Checkout {
            root,
            folders,
            paths,
        }
    }

    fn pages(&self) -> Vec<Page> {
        let kept = |p: &&String| {
            p.ends_with(".md") && (p.starts_with("/docs/") || p.matches('/').count() == 1)
        };
        let read = |p: &String| {
            let path = self.root.join(&p[1..]);
            let text = fs::read_to_string(&path).expect("pages are UTF-8");
            Page { path, text }
        };
        self.paths.iter().filter(kept).map(read).collect()
    }

    fn has(&self, path: &str) -> bool {
        self.paths.contains(&format!("/{path}"))
    }
}

/// Collects paths, without build outputs (cargo marks their folder) and hidden folders except `.ci`.
fn walk(folder: &Path, name: &str, paths: &mut BTreeSet<String>) {
    // An entry that disappears meanwhile is not part of the checkout.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let last = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let built = path.join("CACHEDIR.TAG").exists();
        if built || last.starts_with('.') && last != ".ci" {
            continue;
        }
        let name = format!("{name}/{last}");
        if path.is_dir() && !path.is_symlink() {
            walk(&path, &name, paths);
        }
        paths.insert(name);
    }
}

fn report(wrong: impl Fn(&Checkout, &Page) -> Vec<String>) {
    let checkout = Checkout::here();
    let pages = checkout.pages();
    assert!(pages.len() > 10, "only {} pages were found", pages.len());
    let mut all = Vec::new();
    for page in &pages {
        let name = page.path.strip_prefix(&checkout.root).unwrap_or(&page.path);
        for what in wrong(&checkout, page) {
            all.push(format!("{}:{what}", name.display()));
        }
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

fn too_wide(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut block = None;
    for (number, line) in numbered(text) {
        if line.trim_start().starts_with("```") {
            block = if block.is_some() { None } else { Some(number) };
        }
        let columns = line.chars().count();
        if block.is_none() && !line.starts_with('|') && columns > COLUMNS {
            wrong.push(format!("{number}: {columns} columns"));
        }
    }
    wrong.extend(block.map(|number| format!("{number}: the code block does not end")));
    wrong
}

/// Links to missing files, and to headings that their page lacks.
fn dead_links(checkout: &Checkout, page: &Page) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line) in numbered(&page.text) {
        let targets = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|t| !t.contains("://")) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => page.path.clone(),
                _ => plain(&page.path.with_file_name("").join(file)),
            };
            let inside = path
                .strip_prefix(&checkout.root)
                .unwrap_or(&path)
                .display()
                .to_string();
            if !checkout.has(inside.trim_end_matches('/')) {
                wrong.push(format!("{number}: {target}"));
                continue;
            }
            let text = match file {
                "" => page.text.clone(),
                _ if heading.is_empty() => continue,
                _ => fs::read_to_string(&path).expect("pages are UTF-8"),
            };
            if !headings(&text).any(|h| h == heading) {
                wrong.push(format!("{number}: {target}: no such heading"));
            }
        }
    }
    wrong
}

/// Words that look like a path of this repository but have no target: those that begin with a folder of its root, and, outside
/// code blocks, those that end like a path to a source file (with a folder, except for Rust files). Files with an ending that
/// git ignores are built later.
fn gone_paths(checkout: &Checkout, page: &Page) -> Vec<String> {
    let ignored = fs::read_to_string(checkout.root.join(".gitignore")).expect("a .gitignore");
    let endings: Vec<&str> = ignored
        .lines()
        .filter_map(|l| l.strip_prefix('*'))
        .collect();
    let mut wrong = Vec::new();
    let mut block = false;
    for (number, line) in numbered(&page.text) {
        block ^= line.trim_start().starts_with("```");
        let between = |c: char| c.is_whitespace() || "`()[]\"'|;".contains(c);
        for word in line.split(between).filter(|w| !w.contains("://")) {
            let word = word.trim_end_matches([',', '.', ':', '/', '?']);
            for path in alternatives(word) {
                if !path.chars().all(is_plain) || path.starts_with(['/', '.']) {
                    continue;
                }
                let folder = path.split_once('/').map(|(folder, _)| folder);
                let ours = folder.is_some_and(|folder| checkout.folders.contains(folder));
                let source = match folder {
                    Some(_) => SOURCES.iter().any(|s| path.ends_with(s)),
                    None => path.ends_with(".rs"),
                };
                if !ours && (!source || block) {
                    // An ordinary word.
                    continue;
                }
                let beside = page.path.with_file_name(&path);
                let end = format!("/{path}");
                let there = checkout.has(&path)
                    || beside.exists()
                    || endings.iter().any(|end| path.ends_with(end))
                    || !ours && checkout.paths.iter().any(|p| p.ends_with(&end));
                if !there {
                    wrong.push(format!("{number}: {path}"));
                }
            }
        }
    }
    wrong
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "/._-".contains(c)
}

/// `a/{b,c}.p4` is two paths.
fn alternatives(word: &str) -> Vec<String> {
    let braces = word.split_once('{').and_then(|(front, rest)| {
        let (inside, back) = rest.split_once('}')?;
        Some((front, inside, back))
    });
    match braces {
        None => vec![word.to_owned()],
        Some((front, inside, back)) => inside
            .split(',')
            .map(|one| format!("{front}{one}{back}"))
            .collect(),
    }
}

/// The path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// Headings as GitHub's links name them.
fn headings(text: &str) -> impl Iterator<Item = String> + '_ {
    let heads = text.lines().filter(|l| l.starts_with('#'));
    heads.map(|line| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(i, line)| (i + 1, line))
}
