//! How many of the public sample programs parse. Reads a checkout of p4lang/p4c that somebody put in `P4C_DIR`; none of it is kept here.

use p4lang::{Options, parse};
use std::path::Path;

#[test]
#[ignore = "needs P4C_DIR, a checkout of p4lang/p4c"]
fn sample_programs_parse() {
    let root = std::env::var("P4C_DIR").expect("P4C_DIR");
    let folder = Path::new(&root).join("testdata/p4_16_samples");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .expect("samples")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".p4"))
        .collect();
    names.sort();
    // Architectures that are not ours come from the checkout, the others are ours.
    let includes = format!("{root}/p4include");
    let loader = |path: &str| {
        let ours = path
            .strip_prefix(&includes)
            .map(|p| p.trim_start_matches('/'));
        if ours.is_some_and(|name| p4lang::preprocess::builtin(name).is_some()) {
            return None;
        }
        let bytes = std::fs::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let options = Options {
        include_dirs: vec![includes.clone()],
        ..Options::default()
    };
    let (mut tried, mut parsed, mut foreign) = (0, 0, 0);
    for name in &names {
        let path = folder.join(name);
        let path = path.to_str().expect("UTF-8");
        match parse(&loader, path, &options) {
            Ok(_) => parsed += 1,
            Err(e) if e.short().contains("[include]") => {
                foreign += 1;
                println!("other include: {}", e.short().trim());
                continue;
            }
            Err(e) => println!("{e}\n"),
        }
        tried += 1;
    }
    println!("{parsed} of {tried} parse; {foreign} need other include files");
    assert!(parsed * 100 >= tried * 98, "{parsed} of {tried}");
}
