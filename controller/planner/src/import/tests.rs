//! Valid and invalid files of both formats.

use proptest::prelude::*;

use super::{Hosts, ImportErrorKind, Names, Options, graphml, node_link};
use crate::network::{Network, NetworkError};

/// File as in the Topology Zoo, with its usual gaps: two nodes without a label, an edge without a speed, two parallel edges.
const ZOO: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key attr.name="LinkSpeedRaw" attr.type="double" for="edge" id="d35" />
  <key attr.name="LinkLabel" attr.type="string" for="edge" id="d34" />
  <key attr.name="LinkSpeedUnits" attr.type="string" for="edge" id="d33" />
  <key attr.name="LinkSpeed" attr.type="string" for="edge" id="d32" />
  <key attr.name="label" attr.type="string" for="node" id="d31" />
  <key attr.name="type" attr.type="string" for="node" id="d30" />
  <graph edgedefault="undirected">
    <node id="0">
      <data key="d30">Red Diamond</data>
      <data key="d31">New York</data>
    </node>
    <node id="1"><data key="d31">Chicago</data></node>
    <node id="2"/>
    <node id="3"><data key="d31"/></node>
    <edge source="0" target="1">
      <data key="d34">OC-192</data>
      <data key="d35">10000000000.0</data>
    </edge>
    <edge source="0" target="1">
      <data key="d32">2.5</data>
      <data key="d33">G</data>
    </edge>
    <edge source="1" target="2"/>
    <edge source="2" target="3"><data key="d32">45</data><data key="d33">M</data></edge>
  </graph>
</graphml>
"#;

/// Two servers and two switches, as NetworkX writes a directed graph: each link once in each direction.
const DIRECTED: &str = r#"{"directed": true, "multigraph": false,
 "graph": {"rate_unit": "Gbit/s"},
 "nodes": [
  {"kind": "host", "gpus": 8, "slots": 2, "busy": true, "id": "a"},
  {"kind": "host", "id": "b"},
  {"kind": "switch", "programmable": true, "throughput_gbps": 800, "memory": "64MiB",
   "stages": 12, "load": "1Gbit/s", "id": 7},
  {"kind": "switch", "id": 8, "label": "spine"}
 ],
 "links": [
  {"rate": 100, "delay": "5us", "loss": 0.001, "load": 2, "source": "a", "target": 7},
  {"rate": 100, "delay": "5us", "load": 3, "source": 7, "target": "a"},
  {"rate": "40Gbit/s", "source": "b", "target": 7},
  {"rate": 400, "source": 8, "target": 7},
  {"rate": "40Gbit/s", "source": 7, "target": "b"}
 ]}"#;

const DEFAULT_RATE: Options = Options {
    hosts: Hosts::Declared,
    names: Names::Labels,
    default_rate_bps: Some(1_000),
    default_delay_ns: 7,
    rate_unit_bps: None,
    delay_unit_ns: None,
    host: crate::network::Host {
        gpus: 0,
        slots: None,
        busy: false,
    },
    switch: crate::network::Switch {
        programmable: false,
        throughput_bps: None,
        memory_bytes: None,
        stages: None,
        load_bps: 0,
    },
};

fn names(network: &Network) -> Vec<&str> {
    network.ids().map(|id| network.name(id)).collect()
}

fn rates(network: &Network) -> Vec<u64> {
    network.links().iter().map(|link| link.rate_bps).collect()
}

#[test]
fn a_network_of_the_zoo() {
    let read = graphml::read(ZOO, &DEFAULT_RATE).unwrap();
    assert_eq!(names(&read.network), ["New York", "Chicago", "2", "3"]);
    let expected = [10_000_000_000, 2_500_000_000, 1_000, 45_000_000];
    assert_eq!(rates(&read.network), expected);
    assert_eq!(read.network.hosts().count(), 0);
    assert!(read.network.links().iter().all(|link| link.delay_ns == 7));
    let report = read.report;
    assert_eq!((report.default_rates, report.unlabelled), (1, 2));
    assert_eq!((report.parallel, report.one_way, report.parts), (1, 0, 1));
}

#[test]
fn hosts_where_the_file_has_none() {
    let options = |hosts| Options {
        hosts,
        ..DEFAULT_RATE
    };
    let leaves = graphml::read(ZOO, &options(Hosts::Leaves)).unwrap().network;
    let hosts: Vec<_> = leaves.hosts().map(|id| leaves.name(id)).collect();
    assert_eq!(hosts, ["3"]);

    let attach = Hosts::Attach {
        per_switch: 2,
        rate_bps: 9,
    };
    let attached = graphml::read(ZOO, &options(attach)).unwrap().network;
    assert_eq!(attached.hosts().count(), 8);
    let host = attached.node("Chicago-h1").unwrap();
    let [(link, switch)] = attached.adjacent(host) else {
        panic!("one link")
    };
    assert_eq!(attached.name(*switch), "Chicago");
    assert_eq!(attached.link(*link).rate_bps, 9);
    let by_id = Options {
        names: Names::Ids,
        ..DEFAULT_RATE
    };
    assert_eq!(names(&graphml::read(ZOO, &by_id).unwrap().network)[0], "0");
}

#[test]
fn directed_edges_that_lead_back_are_one_link() {
    let read = node_link::read(DIRECTED, &Options::default()).unwrap();
    let network = &read.network;
    assert_eq!(names(network), ["a", "b", "7", "spine"]);
    const G: u64 = 1_000_000_000;
    assert_eq!(rates(network), [100 * G, 40 * G, 400 * G]);
    let host = network.host(network.node("a").unwrap()).unwrap();
    assert_eq!((host.gpus, host.slots, host.busy), (8, Some(2), true));
    let switch = network.switch(network.node("7").unwrap()).unwrap();
    assert!(switch.programmable);
    assert_eq!(switch.throughput_bps, Some(800 * G));
    assert_eq!(switch.memory_bytes, Some(64 << 20));
    assert_eq!((switch.stages, switch.load_bps), (Some(12), G));
    let link = &network.links()[0];
    assert_eq!((link.delay_ns, link.loss), (5_000, 0.001));
    assert_eq!(link.load_bps, [2 * G, 3 * G]);
    // The edge to the spine has no reverse.
    assert_eq!((read.report.one_way, read.report.parallel), (1, 0));
}

#[test]
fn newer_networkx_calls_links_edges() {
    let newer = DIRECTED.replace("\"links\"", "\"edges\"");
    let read = |text| node_link::read(text, &Options::default());
    assert_eq!(read(&newer), read(DIRECTED));
}

#[test]
fn labels_in_graphics_of_yed() {
    let text = r#"<graphml xmlns:y="http://www.yworks.com/xml/graphml">
      <key for="node" id="d7" yfiles.type="nodegraphics"/>
      <graph edgedefault="directed">
        <node id="n0"><data key="d7"><y:ShapeNode><y:Fill/><y:NodeLabel>Seattle</y:NodeLabel></y:ShapeNode></data></node>
        <node id="n1"/>
        <edge source="n0" target="n1"/>
      </graph></graphml>"#;
    let read = graphml::read(text, &DEFAULT_RATE).unwrap();
    assert_eq!(names(&read.network), ["Seattle", "n1"]);
    assert_eq!(read.report.one_way, 1);
}

/// Message and hint for an invalid file.
fn told(read: impl Fn(&str) -> Result<super::Imported, super::ImportError>, text: &str) -> String {
    let error = read(text).unwrap_err();
    match error.kind.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

#[test]
fn bad_graphml_is_told_where() {
    let told = |from: &str, to: &str| {
        assert!(ZOO.contains(from), "{from}");
        let read = |text: &str| graphml::read(text, &DEFAULT_RATE);
        told(read, &ZOO.replacen(from, to, 1))
    };
    let cases = [
        ("</graph>", "", "28:1: expected 'graph' tag, not 'graphml'"),
        ("id=\"1\"", "id=\"0\"", "14:5: node `0` is declared twice"),
        (
            "target=\"3\"",
            "target=\"9\"",
            "26:22: no node is called `9`",
        ),
        ("target=\"3\"", "", "26:5: an edge has no `target`"),
        (
            "Chicago",
            "New York",
            "nodes `0` and `1` are both labelled `New York`; name nodes by their identifiers",
        ),
        (
            "<data key=\"d33\">G</data>",
            "",
            "22:7: LinkSpeed `2.5` has no unit; write `10Gbit/s`",
        ),
        (
            ">G<",
            ">parsec<",
            "LinkSpeedUnits `parsec` is not K, M, G or T",
        ),
        (
            "10000000000.0",
            "fast",
            "19:7: LinkSpeedRaw `fast` is not a rate, such as 10Gbit/s",
        ),
        (
            "10000000000.0",
            "0",
            "the link between `New York` and `Chicago` carries 0 bit/s",
        ),
        (
            "target=\"3\"",
            "target=\"2\"",
            "26:5: `2` is linked to itself",
        ),
        (
            "<node id=\"2\"/>",
            "<node id=\"2\"><graph/></node>",
            "a graph inside a node is not read",
        ),
        (
            "<node id=\"2\"/>",
            "<hyperedge/>",
            "15:5: an edge of more than two ends is not read",
        ),
        ("<node id=\"2\"/>", "<node/>", "15:5: a node has no `id`"),
        (
            "<graphml xmlns",
            "<!DOCTYPE a [<!ENTITY b 'c'>]><graphml xmlns",
            "1:1: XML with DTD detected",
        ),
        (
            "attr.name=\"type\"",
            "attr.name=\"kind\"",
            "kind `Red Diamond` is not `host` or `switch`",
        ),
    ];
    for (from, to, words) in cases {
        let told = told(from, to);
        assert!(told.contains(words), "{from} → {to}: {told}");
    }
    let strict = graphml::read(ZOO, &Options::default()).unwrap_err();
    let no_rate = ImportErrorKind::NoRate("1".to_owned(), "2".to_owned());
    assert_eq!((strict.line, strict.kind), (25, no_rate));
}

#[test]
fn bad_json_is_told_where() {
    let told = |from: &str, to: &str| {
        assert!(DIRECTED.contains(from), "{from}");
        let read = |text: &str| node_link::read(text, &Options::default());
        told(read, &DIRECTED.replacen(from, to, 1))
    };
    let cases = [
        ("\"nodes\": [", "\"nodes\": {", "3:"),
        ("]}", "]", "16:2: EOF while parsing an object"),
        ("\"nodes\"", "\"notes\"", "missing field `nodes`"),
        (
            "\"links\"",
            "\"arcs\"",
            "1:1: the file has neither `links` nor `edges`",
        ),
        (
            "\"id\": \"b\"",
            "\"id\": \"a\"",
            "5:3: node `a` is declared twice",
        ),
        (
            "\"id\": \"b\"",
            "\"id\": [1]",
            "5:26: `id` of a node is neither text nor a number",
        ),
        ("\"id\": \"b\"", "\"ID\": 1", "5:3: a node has no `id`"),
        (
            "\"target\": 7}",
            "\"target\": 70}",
            "11:84: no node is called `70`",
        ),
        (
            "\"graph\": {\"rate_unit\": \"Gbit/s\"},",
            "",
            "11:12: rate `100` has no unit; write `10Gbit/s`, or call it `rate_bps`",
        ),
        (
            "Gbit/s\"}",
            "furlongs\"}",
            "2:25: rate_unit `furlongs` is not a unit of rates",
        ),
        (
            "\"rate\": 100, ",
            "\"rate\": 10, ",
            "12:3: a to 7 has a rate of 10000000000, and back 100000000000",
        ),
        (
            "\"rate\": 400, ",
            "",
            "the edge between `8` and `7` has no rate",
        ),
        ("0.001", "1.5", "loss `1.5` is not a share between 0 and 1"),
        (
            "\"gpus\": 8",
            "\"gpus\": 8.5",
            "4:28: gpus `8.5` is not a whole number",
        ),
        (
            "\"busy\": true",
            "\"busy\": \"very\"",
            "busy `very` is not `true` or `false`",
        ),
        (
            "\"5us\"",
            "5",
            "delay `5` has no unit; write `5us`, or call it `delay_ns`",
        ),
        ("\"64MiB\"", "0.0", "memory `0.0` has no unit"),
        (
            "\"64MiB\"",
            "\"0B\"",
            "switch `7` can sum, but its memory is 0",
        ),
    ];
    for (from, to, words) in cases {
        let told = told(from, to);
        assert!(told.contains(words), "{from} → {to}: {told}");
    }
    let loops = DIRECTED.replace("\"source\": 8", "\"source\": 7");
    let error = node_link::read(&loops, &Options::default()).unwrap_err();
    let is_itself = ImportErrorKind::Network(NetworkError::Loop("7".to_owned()));
    assert_eq!(error.kind, is_itself);
}

#[test]
fn deep_files_are_refused_and_take_no_stack() {
    let deep = "[".repeat(1_000_000);
    let json = node_link::read(&deep, &DEFAULT_RATE).unwrap_err();
    assert!(matches!(json.kind, ImportErrorKind::Syntax(_)), "{json}");
    let inside = format!("{{\"nodes\": [{{\"id\": 1, \"x\": {deep}");
    assert!(node_link::read(&inside, &DEFAULT_RATE).is_err());
    let open = "<a>".repeat(100_000);
    assert!(graphml::read(&open, &DEFAULT_RATE).is_err());
    let closed = format!("<graphml>{open}{}</graphml>", "</a>".repeat(100_000));
    let error = graphml::read(&closed, &DEFAULT_RATE).unwrap_err();
    assert!(error.to_string().contains("has no `graph`"), "{error}");
}

/// A text with a few bytes changed, removed or doubled.
fn damaged(text: &'static str) -> impl Strategy<Value = String> {
    let change = (0..text.len(), 0..3_u8, any::<u8>());
    prop::collection::vec(change, 1..6).prop_map(move |changes| {
        let mut bytes = text.as_bytes().to_vec();
        for (place, how, byte) in changes {
            let place = place.min(bytes.len().saturating_sub(1));
            match how {
                0 => bytes[place] = byte,
                1 => bytes.truncate(place.max(1)),
                _ => bytes.extend_from_within(place..),
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(test_support::cases(2_000)))]

    #[test]
    fn whatever_a_file_holds_it_is_read_or_refused_at_a_place_in_it(
        (noise, xml, json) in (any::<Vec<u8>>(), damaged(ZOO), damaged(DIRECTED))
    ) {
        let noise = String::from_utf8_lossy(&noise).into_owned();
        for text in [&noise, &xml, &json] {
            for read in [graphml::read(text, &DEFAULT_RATE), node_link::read(text, &DEFAULT_RATE)] {
                if let Err(error) = read {
                    let lines = text.matches('\n').count() + 1;
                    prop_assert!((1..=lines).contains(&error.line), "{} of {}", error, lines);
                }
            }
        }
    }
}
