//! Packet vectors on the pipeline itself, in virtual time.

use std::collections::BTreeMap;

use controller::target::Kind;
use pipeline::{Config, Switch};

use crate::packet_vectors::case::{Case, Loaded, Plannable};
use crate::packet_vectors::{Runner, run_all};

/// The pipeline itself.
struct InMemory {
    switch: Switch,
    now_ns: u64,
    hosts: BTreeMap<u32, String>,
    ports: BTreeMap<String, u32>,
}

/// Between two frames.
const GAP_NS: u64 = 1_000_000;

impl InMemory {
    fn start(loaded: &Loaded) -> InMemory {
        let mut switch = Switch::new(loaded.program.clone(), Config::default()).unwrap();
        for entry in &loaded.entries {
            switch
                .insert_entry(entry)
                .unwrap_or_else(|error| panic!("{entry:?}: {error}"));
        }
        for group in &loaded.groups {
            switch.set_multicast_group(group).unwrap();
        }
        for (table, call) in &loaded.defaults {
            switch.set_default_action(table, Some(call)).unwrap();
        }
        InMemory {
            switch,
            now_ns: GAP_NS,
            hosts: loaded
                .ports
                .iter()
                .map(|(host, port)| (*port, host.clone()))
                .collect(),
            ports: loaded.ports.clone(),
        }
    }
}

impl Runner for InMemory {
    fn pass(
        &mut self,
        at: &str,
        frame: &[u8],
        _: &BTreeMap<String, Vec<Vec<u8>>>,
    ) -> BTreeMap<String, Vec<Vec<u8>>> {
        let mut left: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        self.switch
            .handle_packet(self.now_ns, self.ports[at], frame);
        loop {
            while let Some(transmit) = self.switch.poll_transmit() {
                let host = self.hosts[&transmit.port].clone();
                left.entry(host).or_default().push(transmit.bytes);
            }
            let Some(due) = self.switch.poll_timeout() else {
                break;
            };
            self.now_ns = self.now_ns.max(due);
            self.switch.handle_timeout(self.now_ns);
        }
        self.now_ns += GAP_NS;
        left
    }

    fn settle(&mut self) -> BTreeMap<String, Vec<Vec<u8>>> {
        BTreeMap::new()
    }
}

#[test]
fn embedded_in_memory() {
    run_all(Kind::Embedded, |loaded| Box::new(InMemory::start(loaded)));
}

/// The suite can fail: a changed expectation is noticed.
#[test]
fn a_wrong_expectation_is_noticed() {
    let case = Case::all()
        .into_iter()
        .find(|case| case.path == "forward.json")
        .unwrap();
    let Plannable::Yes(loaded) = case.load(Kind::Embedded) else {
        panic!("forward.json is planned")
    };
    let mut runner = InMemory::start(&loaded);
    let step = &case.steps[0];
    let (frame, mut expected) = step.frames().next().unwrap();
    let left = runner.pass(&step.at, &frame, &expected);
    assert_eq!(left, expected);
    expected.values_mut().next().unwrap()[0][20] ^= 1;
    assert_ne!(left, expected);
}
