//! How many of the public sample programs parse and compile, and how many of the faulty ones are refused. Reads a checkout of
//! p4lang/p4c that somebody put in `P4C_DIR`; none of it is kept here.

#![allow(clippy::disallowed_methods)] // The crate is pure; its tests read programs and clocks.

use p4lang::{Options, compile, parse};
use std::path::{Path, PathBuf};

struct Samples {
    includes: String,
    paths: Vec<PathBuf>,
}

impl Samples {
    fn of(folder: &str) -> Samples {
        let root = std::env::var("P4C_DIR").expect("P4C_DIR");
        let folder = Path::new(&root).join("testdata").join(folder);
        let mut paths: Vec<_> = std::fs::read_dir(&folder)
            .expect("samples")
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|e| e == "p4"))
            .collect();
        paths.sort();
        Samples {
            includes: format!("{root}/p4include"),
            paths,
        }
    }

    /// Counts the programs that pass, those that don't, and those that need files which nobody has.
    fn count(
        &self,
        pass: impl Fn(&dyn Fn(&str) -> Option<String>, &str, &Options) -> Result<(), String>,
    ) -> [usize; 3] {
        // Architectures that are not ours come from the checkout, the others are ours.
        let loader = |path: &str| {
            let asked = path.strip_prefix(&self.includes);
            let ours = asked.map(|p| p.trim_start_matches('/'));
            if ours.is_some_and(|name| p4lang::preprocess::builtin(name).is_some()) {
                return None;
            }
            let bytes = std::fs::read(path).ok()?;
            Some(String::from_utf8_lossy(&bytes).into_owned())
        };
        let options = Options {
            include_dirs: vec![self.includes.clone()],
            ..Options::default()
        };
        let mut counts = [0; 3];
        for path in &self.paths {
            match pass(&loader, path.to_str().expect("UTF-8"), &options) {
                Ok(()) => counts[0] += 1,
                Err(e) if e.contains("[include]") => counts[2] += 1,
                Err(e) => {
                    counts[1] += 1;
                    println!("{e}");
                }
            }
        }
        counts
    }
}

#[test]
#[ignore = "needs P4C_DIR, a checkout of p4lang/p4c"]
fn sample_programs_parse() {
    let [passed, failed, foreign] = Samples::of("p4_16_samples").count(|loader, path, options| {
        parse(&loader, path, options)
            .map(drop)
            .map_err(|e| e.short())
    });
    println!("{passed} parse, {failed} do not, {foreign} need other files");
    assert!(passed * 100 >= (passed + failed) * 99, "{passed}, {failed}");
}

#[test]
#[ignore = "needs P4C_DIR, a checkout of p4lang/p4c"]
fn sample_programs_compile() {
    let [passed, failed, foreign] = Samples::of("p4_16_samples").count(|loader, path, options| {
        let without_main = |e: &str| e.contains("no package named `main`");
        match compile(&loader, path, options) {
            Ok(_) => Ok(()),
            // Half of the samples are for the front end alone.
            Err(e) if e.list.len() == 1 && without_main(&e.list[0].message) => Ok(()),
            Err(e) => Err(e.short().lines().next().unwrap_or("").to_owned()),
        }
    });
    println!("{passed} compile, {failed} do not, {foreign} need other files");
    assert!(passed * 100 >= (passed + failed) * 90, "{passed}, {failed}");
}

#[test]
#[ignore = "needs P4C_DIR, a checkout of p4lang/p4c"]
fn faulty_programs_are_refused() {
    let [refused, accepted, foreign] =
        Samples::of("p4_16_errors").count(|loader, path, options| {
            match compile(&loader, path, options) {
                Ok(_) => Err(format!("accepted: {path}")),
                Err(e) if e.short().contains("[include]") => Err(e.short()),
                Err(_) => Ok(()),
            }
        });
    println!("{refused} refused, {accepted} accepted, {foreign} need other files");
    assert!(
        refused * 100 >= (refused + accepted) * 90,
        "{refused}, {accepted}"
    );
}
