//! Generated parser, deparser and `Classify` in a switch of each architecture, without the rest of the program. Their results
//! leave the switch in front of the frame.

use std::sync::Arc;

use p4lang::Files;
use parser_gen::{Arch, Flow, Generated, program};
use pipeline::{Config, Switch};

pub const ARCHES: [Arch; 3] = [Arch::Psa, Arch::V1model, Arch::Tna];

/// Port at which frames arrive.
pub const PORT: u32 = 3;

/// Switch that reports the class and note of each frame.
pub struct Bench {
    switch: Switch,
    now: u64,
}

impl Bench {
    /// Loads the text under the shim of an architecture, and writes the entries.
    pub fn new(arch: Arch, generated: &Generated) -> Bench {
        let shim = match arch {
            Arch::Psa => include_str!("shim/psa.p4"),
            Arch::V1model => include_str!("shim/v1model.p4"),
            Arch::Tna => include_str!("shim/tna.p4"),
        };
        let mut files = Files::new();
        for (path, text) in program(arch, generated) {
            let is_main = path == arch.main_path();
            files.insert(&path, if is_main { shim.to_owned() } else { text });
        }
        let compiled = p4lang::compile(&files, &arch.main_path(), &p4lang::Options::default())
            .unwrap_or_else(|errors| panic!("{arch:?}\n{errors}\n{}", generated.p4));
        let mut switch = Switch::new(Arc::new(compiled.program), Config::default()).expect("loads");
        for entry in generated.entries_for("SwitchIngress.classify") {
            switch
                .insert_entry(&entry)
                .unwrap_or_else(|error| panic!("{entry:?}: {error}"));
        }
        Bench { switch, now: 0 }
    }

    /// Class and note of a frame, which must leave unchanged.
    pub fn send(&mut self, frame: &[u8]) -> (usize, u8) {
        self.now += 1000;
        self.switch.handle_packet(self.now, PORT, frame);
        let out = self
            .switch
            .poll_transmit()
            .expect("nothing is dropped")
            .bytes;
        let (seen, rest) = out.split_at(3);
        assert_eq!(rest, frame, "the frame is changed");
        (usize::from(u16::from_be_bytes([seen[0], seen[1]])), seen[2])
    }
}

/// Flows of a frame, by the meaning of the filters in plain Rust.
pub fn expected(library: &parser_gen::Library, flows: &[Flow], frame: &[u8]) -> Vec<usize> {
    let values = library.dissect(frame, PORT);
    (0..flows.len())
        .filter(|flow| flows[*flow].filter.matches(&values))
        .collect()
}
