//! Milliseconds that each phase of the compiler takes: `phases FILE [-IDIR] [-DNAME=VALUE]`, the best of 20 runs.

#![allow(clippy::disallowed_methods)] // The crate is pure; this program reads files and a clock.

use p4lang::diagnostics::Sink;
use p4lang::{Options, check, p4info, parse, preprocess};
use std::sync::Arc;
use std::time::Instant;

const PHASES: [&str; 4] = ["preprocess", "parse", "check", "p4info"];

fn main() {
    let mut options = Options::default();
    let mut file = String::new();
    for arg in std::env::args().skip(1) {
        match (arg.strip_prefix("-D"), arg.strip_prefix("-I")) {
            (Some(define), _) => {
                let (name, value) = define.split_once('=').unwrap_or((define, "1"));
                options.defines.push((name.to_owned(), value.to_owned()));
            }
            (_, Some(dir)) => options.include_dirs.push(dir.to_owned()),
            _ => file = arg,
        }
    }
    let loader = |path: &str| std::fs::read_to_string(path).ok();
    let mut best = [f64::INFINITY; PHASES.len()];
    for _ in 0..20 {
        let mut sink = Sink::new();
        let mut last = Instant::now();
        let mut times = [0.0; PHASES.len()];
        let mut lap = |n: usize| {
            times[n] = last.elapsed().as_secs_f64() * 1e3;
            last = Instant::now();
        };
        let source = Arc::new(preprocess::preprocess(&loader, &file, &options, &mut sink));
        lap(0);
        let tree = parse::parse(&source.text, &mut sink);
        lap(1);
        let program = check::check(&tree, &source, &mut sink);
        lap(2);
        let Some(program) = program else {
            eprint!("{}", sink.finish(source));
            std::process::exit(2);
        };
        p4info::build(&program, &mut sink);
        lap(3);
        for (best, time) in best.iter_mut().zip(times) {
            *best = best.min(time);
        }
    }
    for (name, time) in PHASES.iter().zip(best) {
        println!("{name:<12} {time:8.2} ms");
    }
    println!("{:<12} {:8.2} ms", "sum", best.iter().sum::<f64>());
}
