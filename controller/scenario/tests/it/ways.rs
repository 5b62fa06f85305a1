//! Several ways to a host: a network of switches that run p4src's text, against what the controller says each frame does.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parser_gen::Arch;
use pipeline::{Config, Switch};
use proptest::prelude::*;
use proptest::sample::Index;
use scenario::TargetModel;
use scenario::model::Scenario;
use scenario::model::routing::hash;
use scenario::replay::Engine;

/// Whose programs know several ways.
const ARCHS: [Arch; 2] = [Arch::Psa, Arch::V1model];

const LEAF_SPINE: &str = "weir: 1
name: ways
topology: {leaf_spine: {leaves: 3, spines: 4, hosts_per_leaf: 2}}
routing: ecmp
";
const FAT_TREE: &str = "weir: 1
name: ways
topology: {fat_tree: {k: 4, hosts_per_edge: 1}}
routing: ecmp
";
/// A ring with a chord and two parallel links: ways of different lengths.
const RING: &str = "weir: 1
name: ways
topology:
  switches: [a, b, c, d, e]
  hosts: [ha, hb, hc, hd]
  links: [[ha, a], [hb, b], [hc, c], [hd, d], [a, b], [b, c], [c, d], [d, e], [e, a], [b, d], [c, d]]
routing: {k_shortest: 5}
";
/// The same, and a flow whose filter looks far into packets: options are skipped where it is known.
const JELLYFISH: &str = "weir: 1
name: ways
topology: {jellyfish: {switches: 8, degree: 3, hosts_per_switch: 1, seed: 3}}
routing: ecmp
flows: {asked: {from: h0-0, to: h5-0, filter: \"redis.command == \\\"GET\\\"\"}}
faults: [{id: seen, flows: asked, effect: observe}]
";

/// All switches of a network.
struct Net {
    scenario: Scenario,
    engines: BTreeMap<String, Engine>,
    switches: BTreeMap<String, Switch>,
    now_ns: u64,
}

impl Net {
    fn new(arch: Arch, text: &str) -> Net {
        let scenario = scenario::load("ways.yaml", text).unwrap_or_else(|error| panic!("{error}"));
        let target = match arch {
            Arch::V1model => TargetModel::SIMPLE_SWITCH_GRPC,
            _ => TargetModel::EMBEDDED,
        };
        let plan = scenario::plan(&scenario, &target).unwrap_or_else(|error| panic!("{error}"));
        let mut programs = BTreeMap::new();
        let mut switches = BTreeMap::new();
        for planned in &plan.switches {
            let generated = planned.generate().unwrap();
            let mut files = p4lang::Files::new();
            for (path, text) in parser_gen::program(arch, &generated) {
                files.insert(&path, text);
            }
            // Most switches run the same text.
            let key = (generated.p4.clone(), generated.engine(arch).to_owned());
            let program = programs.entry(key).or_insert_with(|| {
                let compiled =
                    p4lang::compile(&files, &arch.main_path(), &p4lang::Options::default());
                Arc::new(compiled.unwrap_or_else(|errors| panic!("{errors}")).program)
            });
            let mut switch = Switch::new(Arc::clone(program), Config::default()).unwrap();
            for entry in &planned.all_entries(arch, &generated) {
                switch
                    .insert_entry(entry)
                    .unwrap_or_else(|error| panic!("{entry:?}: {error}"));
            }
            switches.insert(planned.name.clone(), switch);
        }
        let names = scenario.topology.switches.iter();
        let engine = |name: &String| (name.clone(), Engine::new(&scenario, &plan, name).unwrap());
        Net {
            engines: names.map(engine).collect(),
            scenario,
            switches,
            now_ns: 1_000_000,
        }
    }

    /// The switches that a frame passes and the ports by which it leaves them, until a host has it.
    fn walk(&mut self, from: &str, frame: &[u8]) -> (Vec<(String, u32)>, String) {
        let topology = &self.scenario.topology;
        let link = topology
            .links
            .iter()
            .find(|link| link.peer(from).is_some())
            .unwrap();
        let (mut by, mut at) = (link, link.peer(from).unwrap());
        let mut walked = Vec::new();
        loop {
            assert!(
                walked.len() <= topology.switches.len(),
                "it goes round: {walked:?}"
            );
            let came = topology
                .ports(at)
                .find(|port| std::ptr::eq(port.link, by))
                .unwrap()
                .number;
            let said = self.engines[at].classify(frame, came).exits;
            let said: Vec<u32> = said.iter().map(|(port, _)| *port).collect();
            self.now_ns += 1_000_000;
            let switch = self.switches.get_mut(at).unwrap();
            switch.handle_packet(self.now_ns, came, frame);
            let left: Vec<_> = std::iter::from_fn(|| switch.poll_transmit()).collect();
            let ports: Vec<u32> = left.iter().map(|transmit| transmit.port).collect();
            assert_eq!(ports, said, "{at}: {frame:02x?}");
            assert_eq!(left.len(), 1, "{at}");
            assert_eq!(&left[0].bytes[..], frame, "as it came");
            let port = topology
                .ports(at)
                .find(|port| port.number == ports[0])
                .unwrap();
            walked.push((at.to_owned(), port.number));
            if !topology.has_switch(port.peer) {
                return (walked, port.peer.to_owned());
            }
            (by, at) = (port.link, port.peer);
        }
    }

    fn frame(&self, from: &str, to: &str, behind: &[u8]) -> Vec<u8> {
        let [from, to] = [from, to].map(|host| self.scenario.topology.host(host).unwrap());
        [&to.mac.0[..], &from.mac.0, behind].concat()
    }

    fn ip(&self, from: &str, to: &str, kind: &Kind) -> Vec<u8> {
        let [src, dst] = [from, to].map(|host| self.scenario.topology.host(host).unwrap().ip);
        let words = 5 + kind.options;
        let mut ip = vec![0x08, 0x00, 0x40 | words, 0, 0, 90, 0, 0];
        ip.extend(kind.fragment.to_be_bytes());
        ip.extend([64, kind.protocol, 0, 0]);
        ip.extend(src.octets());
        ip.extend(dst.octets());
        ip.extend(std::iter::repeat_n(1, 4 * usize::from(kind.options)));
        ip.extend(kind.ports[0].to_be_bytes());
        ip.extend(kind.ports[1].to_be_bytes());
        ip.extend([0x50; 40]);
        ip.truncate(kind.length);
        let mut frame = self.frame(from, to, &[]);
        frame.extend(&kind.tag);
        frame.extend(ip);
        frame
    }
}

/// What may stand in a frame.
#[derive(Debug, Clone)]
struct Kind {
    protocol: u8,
    ports: [u16; 2],
    options: u8,
    fragment: u16,
    length: usize,
    tag: Vec<u8>,
}

fn kind() -> impl Strategy<Value = Kind> {
    let protocol = prop_oneof![4 => Just(17_u8), 4 => Just(6), 1 => any::<u8>()];
    let port = prop_oneof![6 => any::<u16>(), 1 => Just(22_341_u16), 1 => Just(6379)];
    let options = prop_oneof![4 => Just(0_u8), 1 => 1..11_u8];
    let fragment = prop_oneof![6 => Just(0x4000_u16), 1 => Just(0x2000), 1 => Just(0x2005)];
    let length = prop_oneof![6 => Just(200_usize), 1 => 22..70_usize];
    let tag = prop_oneof![8 => Just(vec![]), 1 => Just(vec![0x81, 0, 0, 5])];
    (
        protocol,
        [port.clone(), port],
        options,
        fragment,
        length,
        tag,
    )
        .prop_map(|(protocol, ports, options, fragment, length, tag)| Kind {
            protocol,
            ports,
            options,
            fragment,
            length,
            tag,
        })
}

/// Sends frames between all hosts, and holds each way against the one that the controller reckons.
fn hold_against(arch: Arch, text: &str, frames: &[(Index, Index, Kind)]) {
    let mut net = Net::new(arch, text);
    let hosts: Vec<String> = net
        .scenario
        .topology
        .hosts
        .iter()
        .map(|h| h.name.clone())
        .collect();
    for (from, to, kind) in frames {
        let (from, to) = (from.get(&hosts), to.get(&hosts));
        if from == to {
            continue;
        }
        let frame = net.ip(from, to, kind);
        let (walked, receiver) = net.walk(from, &frame);
        assert_eq!(receiver, *to);
        let ways = net.scenario.ways.as_ref().unwrap();
        let taken = ways.taken(from, to, hash::frame_hash(&frame)).unwrap();
        let said: Vec<_> = taken
            .switches
            .iter()
            .cloned()
            .zip(taken.ports.iter().copied())
            .collect();
        assert_eq!(walked, said, "{from} → {to} {kind:?}");
        assert!(ways.between(from, to).contains(&taken));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2))]
    #[test]
    fn a_frame_goes_the_way_that_the_controller_reckons(
        frames in prop::collection::vec((any::<Index>(), any::<Index>(), kind()), 150),
    ) {
        for arch in ARCHS {
            for text in [LEAF_SPINE, FAT_TREE, RING, JELLYFISH] {
                // Units hold no frame here, so what leaves is what came.
                hold_against(arch, text, &frames);
            }
        }
    }
}

#[test]
fn flows_share_the_spines_and_none_is_torn_apart() {
    for arch in ARCHS {
        let mut net = Net::new(arch, LEAF_SPINE);
        let mut by_spine: BTreeMap<String, u32> = BTreeMap::new();
        for number in 0..1_000 {
            let kind = Kind {
                protocol: 6,
                ports: [32_768 + number, 80],
                options: 0,
                fragment: 0x4000,
                length: 200,
                tag: Vec::new(),
            };
            let frame = net.ip("h0-0", "h1-1", &kind);
            let mut ways = BTreeSet::new();
            for payload in 0..2 {
                let mut frame = frame.clone();
                *frame.last_mut().unwrap() = payload;
                ways.insert(net.walk("h0-0", &frame).0);
            }
            assert_eq!(ways.len(), 1, "a flow takes one way");
            let way = ways.pop_first().unwrap();
            *by_spine.entry(way[1].0.clone()).or_default() += 1;
        }
        assert_eq!(by_spine.len(), 4, "{by_spine:?}");
        let most = by_spine.values().max().unwrap();
        assert!(
            *most <= 300,
            "a fifth more than a quarter at most: {by_spine:?}"
        );
    }
}

/// Both layers of a fat tree decide by the same checksum, and not alike.
#[test]
fn the_second_layer_does_not_follow_the_first() {
    let mut net = Net::new(Arch::Psa, FAT_TREE);
    let mut by_core: BTreeMap<String, u32> = BTreeMap::new();
    for number in 0..1_000 {
        let kind = Kind {
            protocol: 17,
            ports: [40_000 + number, 4791],
            options: 0,
            fragment: 0,
            length: 200,
            tag: Vec::new(),
        };
        let frame = net.ip("h0-0-0", "h2-1-0", &kind);
        let (way, _) = net.walk("h0-0-0", &frame);
        *by_core.entry(way[2].0.clone()).or_default() += 1;
    }
    assert_eq!(by_core.len(), 4, "{by_core:?}");
    assert!(by_core.values().all(|count| *count <= 300), "{by_core:?}");
}
