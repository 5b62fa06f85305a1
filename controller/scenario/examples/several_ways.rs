//! What a packet costs a leaf under four spines, by one way and by several: `cargo run -p scenario --example
//! several_ways [PACKETS]`. Nanoseconds a packet in the embedded switch's fast executor, the best of nine turns each, taken in
//! turns; 64 flows.

// An example is no part of the pure crate.
#![allow(clippy::disallowed_methods)]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use parser_gen::Arch;
use pipeline::{Config, Switch};
use scenario::model::Scenario;
use scenario::{TargetModel, load, plan};

const ROUTINGS: [&str; 3] = ["shortest", "ecmp", "{k_shortest: 4}"];
const TURNS: usize = 9;
const FLOWS: u16 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let packets = std::env::args()
        .nth(1)
        .map_or(Ok(200_000), |text| text.parse())?;
    let mut leaves = Vec::new();
    for routing in ROUTINGS {
        leaves.push((routing, leaf(routing)?, u64::MAX));
    }
    for _ in 0..TURNS {
        for (_, (scenario, switch), best) in &mut leaves {
            let frames: Vec<_> = (0..FLOWS).map(|number| frame(scenario, number)).collect();
            let start = Instant::now();
            for (number, frame) in frames.iter().cycle().take(packets).enumerate() {
                switch.handle_packet(number as u64 * 1_000, 1, frame);
                while switch.poll_transmit().is_some() {}
            }
            *best = (*best).min(start.elapsed().as_nanos() as u64 / packets as u64);
        }
    }
    let one = leaves.first().map_or(1, |(_, _, best)| *best) as f64;
    for (routing, _, best) in &leaves {
        println!("{routing:>16} {best:5} ns  {:.2}", *best as f64 / one);
    }
    Ok(())
}

/// The first leaf, with all of its entries.
fn leaf(routing: &str) -> Result<(Scenario, Switch), Box<dyn Error>> {
    let text = format!(
        "weir: 1\nname: ways\ntopology: {{leaf_spine: {{leaves: 2, spines: 4, hosts_per_leaf: 2}}}}\nrouting: {routing}\n"
    );
    let scenario = load("ways.yaml", &text).map_err(|error| error.to_string())?;
    let plan = plan(&scenario, &TargetModel::EMBEDDED).map_err(|error| error.to_string())?;
    let planned = plan.switch("leaf0").ok_or("no leaf")?;
    let generated = planned.generate()?;
    let mut files = p4lang::Files::new();
    for (path, text) in parser_gen::program(Arch::Psa, &generated) {
        files.insert(&path, text);
    }
    let options = p4lang::Options::default();
    let compiled = p4lang::compile(&files, &Arch::Psa.main_path(), &options);
    let compiled = compiled.map_err(|errors| errors.to_string())?;
    let mut switch = Switch::new(Arc::new(compiled.program), Config::default())?;
    for entry in &planned.all_entries(Arch::Psa, &generated) {
        switch.insert_entry(entry)?;
    }
    Ok((scenario, switch))
}

/// Of a flow of UDP between hosts on two leaves.
fn frame(scenario: &Scenario, number: u16) -> Vec<u8> {
    let hosts = &scenario.topology.hosts;
    let (from, to) = (&hosts[0], &hosts[2]);
    let mut frame = [&to.mac.0[..], &from.mac.0].concat();
    frame.extend([0x08, 0x00, 0x45, 0, 0, 78, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    frame.extend(from.ip.octets());
    frame.extend(to.ip.octets());
    frame.extend((40_000 + number).to_be_bytes());
    frame.extend([0x12, 0xB7, 0, 58, 0, 0]);
    frame.extend([0; 50]);
    frame
}
