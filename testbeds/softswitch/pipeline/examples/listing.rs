//! Prints the instructions of a P4 program: `cargo run -p pipeline --example listing -- FILE.p4`.
// A tool that reads a file; the crate itself does no I/O.
#![allow(clippy::disallowed_methods)]

fn main() {
    let path = std::env::args().nth(1).expect("a P4 file");
    let mut files = p4lang::Files::new();
    files.insert(
        "a.p4",
        std::fs::read_to_string(path).expect("a readable file"),
    );
    let compiled = p4lang::compile(&files, "a.p4", &p4lang::Options::default());
    let compiled = compiled.unwrap_or_else(|e| panic!("{e}"));
    let switch = pipeline::Switch::new(compiled.program.into(), pipeline::Config::default());
    print!("{}", switch.unwrap_or_else(|e| panic!("{e}")).listing());
}
