//! Packet vectors (testbeds/vectors): frames in, frames out, and what was written before, the same on every switch.
//!
//! | runner | the program runs in |
//! |---|---|
//! | `embedded_in_memory` | `pipeline`, in this process, in virtual time |
//! | `embedded_over_veth` | `weir switch`, on interfaces |
//! | `simple_switch_grpc_over_veth` | BMv2, v1model, compiled by p4c, by P4Runtime |
//! | `psa_switch_over_veth` | BMv2, PSA, compiled by p4c, by Thrift |
//!
//! BMv2 and p4c are found on the PATH, or in the folders of WEIR_BMV2_DIR; where they are missing, their runs are
//! skipped by name.
//!
//! A program of its own: frames pass real links here, in real time.

mod case;
#[path = "../support/mod.rs"]
mod support;
mod veth;

use std::collections::BTreeMap;

use bmv2::cache::Cache;
use bmv2::tools::Tools;
use case::{Case, Loaded, Plannable};
use controller::target::{Kind, bmv2 as start_bmv2};
use pipeline::{Config, Switch};
use support::*;

/// Something that takes frames and gives frames.
trait Runner {
    /// Sends one frame in at a host's port, and says which leave for the hosts, each host's in order. `expected` tells
    /// how many to wait for; what else leaves by then is told too.
    fn pass(
        &mut self,
        at: &str,
        frame: &[u8],
        expected: &BTreeMap<String, Vec<Vec<u8>>>,
    ) -> BTreeMap<String, Vec<Vec<u8>>>;

    /// Called after each step, when all that was expected has come: what came beyond that.
    fn settle(&mut self) -> BTreeMap<String, Vec<Vec<u8>>>;
}

/// Runs all cases that a kind of switch can carry out.
fn run_all(kind: Kind, start: impl Fn(&Loaded) -> Box<dyn Runner>) {
    let cases = Case::all();
    assert!(cases.len() >= 5, "the vectors are missing");
    for case in cases {
        let loaded = match case.load(kind) {
            Plannable::Yes(loaded) => loaded,
            Plannable::No(refusal) => {
                assert!(
                    case.not_on.contains_key(&kind.to_string()),
                    "{}: {refusal}",
                    case.path
                );
                continue;
            }
        };
        assert!(
            !case.not_on.contains_key(&kind.to_string()),
            "{}: {kind} can, after all",
            case.path
        );
        let mut runner = start(&loaded);
        for step in &case.steps {
            for (frame, expected) in step.frames() {
                let left = runner.pass(&step.at, &frame, &expected);
                assert!(
                    left == expected,
                    "{}: {} (at {}, {kind})\nsent     {}\nexpected {}\nleft     {}",
                    case.path,
                    step.what,
                    step.at,
                    case::show(&frame),
                    case::show_all(&expected),
                    case::show_all(&left)
                );
            }
            let more = runner.settle();
            assert!(
                more.is_empty(),
                "{}: {} ({kind}): more left than expected: {}",
                case.path,
                step.what,
                case::show_all(&more)
            );
        }
    }
}

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

#[test]
fn embedded_over_veth() {
    if veth::in_namespaces("embedded_over_veth") {
        run_all(Kind::Embedded, |loaded| {
            Box::new(veth::Veth::embedded(loaded))
        });
    }
}

fn bmv2_over_veth(test: &str, kind: Kind) {
    let folders = std::env::var_os("WEIR_BMV2_DIR");
    let folders: Vec<_> = folders.iter().flat_map(std::env::split_paths).collect();
    // p4c takes minutes if it was built without optimisation.
    let kept = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("p4c");
    let tools = Tools::here(&folders).caching(Some(Cache::in_folder(&kept)));
    if let Err(missing) = start_bmv2::check(kind, &tools) {
        return skip(test, missing.tool.program());
    }
    if veth::in_namespaces(test) {
        run_all(kind, |loaded| {
            Box::new(veth::Veth::bmv2(kind, &tools, loaded))
        });
    }
}

#[test]
fn simple_switch_grpc_over_veth() {
    bmv2_over_veth("simple_switch_grpc_over_veth", Kind::SimpleSwitchGrpc);
}

#[test]
fn psa_switch_over_veth() {
    bmv2_over_veth("psa_switch_over_veth", Kind::PsaSwitch);
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
