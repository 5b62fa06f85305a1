//! `weir collectives plan`: as docs/rdma.md shows it, against times worked out by hand, and what is refused.

use serde_json::Value;

use crate::support::leftovers::Watched;
use crate::support::*;

fn plan(file: &str, topology: &str, more: &[&str]) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join(file), topology).unwrap();
    let args = [&["collectives", "plan", file], more].concat();
    Watched::weir(folder.path(), &args).run()
}

fn report(topology: &str, more: &[&str]) -> Value {
    let finished = plan("network.yaml", topology, &[more, &["--json"]].concat());
    finished.expect_code(PASSED);
    assert!(finished.stderr.is_empty(), "{}", finished.stderr);
    finished.json()
}

/// A byte takes a nanosecond, a link a microsecond.
const STAR: &str = "star: {hosts: [h0, h1, h2, h3], rate: 8Gbit/s, latency: 1us}";
const LEAVES: &str = "leaf_spine: {leaves: 2, spines: 2, hosts_per_leaf: 4, rate: 8Gbit/s, oversubscription: 2, latency: 1us}";
const RAILS: &str =
    "rail_pods: {pods: 2, hosts_per_pod: 2, rails: 4, rate: 8Gbit/s, spines: 2, latency: 1us}";
const COLLECTIVES: [&str; 7] = [
    "all_gather",
    "all_to_all",
    "reduce_scatter",
    "all_reduce",
    "broadcast",
    "reduce",
    "barrier",
];

fn seconds(report: &Value, key: &str) -> f64 {
    let found = match key {
        "predicted" => &report["chosen"]["predicted_s"],
        key => &report[key],
    };
    found.as_f64().unwrap()
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    let off = (found - expected).abs() / expected;
    assert!(off < 1e-6, "{found}, expected {expected}");
}

#[test]
fn the_page_shows_what_the_command_says() {
    let path = repository("testbeds/topologies/collectives-example.yaml");
    let topology = std::fs::read_to_string(path).unwrap();
    let more = ["--collective", "all_gather", "--size", "256MB"];
    let finished = plan("network.yaml", &topology, &more);
    finished.expect_code(PASSED);
    let page = std::fs::read_to_string(repository("docs/rdma.md")).unwrap();
    let mut blocks = page.split("```");
    let shown = blocks.find(|block| block.contains("all_gather of 256MB, 8 ranks"));
    let shown = shown.unwrap().trim_matches('\n');
    assert!(finished.stdout.starts_with(shown), "{}", finished.stdout);
}

#[test]
fn times_are_those_of_textbooks() {
    // Two links of a microsecond each; m (n − 1)/n bytes; n − 1 steps of a ring.
    let of = |collective, algorithm| {
        let more = [
            "--collective",
            collective,
            "--algorithm",
            algorithm,
            "--size",
            "4MB",
        ];
        report(STAR, &more)
    };
    let direct = of("all_gather", "direct");
    assert_near(seconds(&direct, "predicted"), 2e-6 + 3e-3);
    assert_near(seconds(&direct, "bound_s"), 3e-3);
    assert_eq!(direct["bound_by"], "the links of h0");
    assert_eq!(direct["messages"].as_array().unwrap().len(), 12);
    assert_eq!(direct["links"].as_array().unwrap().len(), 8);
    for link in direct["links"].as_array().unwrap() {
        assert_eq!(link["bytes"], 3_000_000, "{link}");
    }
    let ring = of("all_gather", "ring");
    let whole = ring["compared"].as_array().unwrap().iter();
    let mut whole = whole.filter(|offer| offer["tiles"] == 1);
    let whole = whole.next().unwrap()["predicted_s"].as_f64().unwrap();
    assert_near(whole, 3.0 * (2e-6 + 1e-3));
    let reduce = of("all_reduce", "direct");
    assert_near(seconds(&reduce, "bound_s"), 6e-3);
    let barrier = report(STAR, &["--collective", "barrier"]);
    assert_near(seconds(&barrier, "predicted"), 4e-6);
    assert_near(seconds(&barrier, "bound_s"), 2e-6);
}

#[test]
fn nothing_is_faster_than_its_bound() {
    let networks: [(&str, &[&str]); 4] = [
        (STAR, &[]),
        (LEAVES, &[]),
        (RAILS, &[]),
        (RAILS, &["--gpus", "8", "--nics", "2", "--inside", "memory"]),
    ];
    for (topology, more) in networks {
        for collective in COLLECTIVES {
            let more = [&["--collective", collective, "--size", "3MB"], more].concat();
            let report = report(topology, &more);
            let bound_s = seconds(&report, "bound_s");
            let compared = report["compared"].as_array().unwrap();
            let chosen = seconds(&report, "predicted");
            assert!(bound_s > 0.0, "{topology} {collective}");
            for offer in compared {
                let took = offer["predicted_s"].as_f64().unwrap();
                assert!(
                    took >= bound_s * (1.0 - 1e-9),
                    "{topology} {collective}: {offer}"
                );
                assert!(
                    took >= chosen * (1.0 - 1e-8),
                    "{topology} {collective}: {offer}"
                );
            }
            for link in report["links"].as_array().unwrap() {
                let part = link["utilisation"].as_f64().unwrap();
                assert!(part > 0.0 && part < 1.0 + 1e-6, "{link}");
            }
        }
    }
}

#[test]
fn uplinks_bind_where_they_are_narrow() {
    let exchange = report(LEAVES, &["--collective", "all_to_all", "--size", "8MB"]);
    // Four ranks have 1 MB for each of four others: 16 MB by two uplinks.
    assert_near(seconds(&exchange, "bound_s"), 8e-3);
    assert_eq!(exchange["bound_by"], "the uplinks of leaf0");
    let names: Vec<_> = exchange["ranks"].as_array().unwrap().iter().collect();
    assert_eq!(names[..2], ["h0-0", "h0-1"]);
}

#[test]
fn numbers_in_turn_send_less_between_leaves() {
    let of = |numbering| {
        let more = ["--algorithm", "halving-doubling", "--numbering", numbering];
        report(LEAVES, &more)
    };
    let (turn, plain) = (of("round-robin"), of("plain"));
    assert!(seconds(&turn, "predicted") < seconds(&plain, "predicted"));
    assert_eq!(turn["order"], serde_json::json!([0, 4, 1, 5, 2, 6, 3, 7]));
    // Hosts are listed by leaf already.
    assert_eq!(of("blocks")["chosen"], plain["chosen"]);
}

#[test]
fn hosts_of_several_ranks_share_their_nics() {
    let of = |nics| {
        let more = [
            "--gpus",
            "8",
            "--nics",
            nics,
            "--collective",
            "all_gather",
            "--size",
            "64MB",
        ];
        report(RAILS, &more)
    };
    // Three of four hosts' shards, 48 MB, by so many NICs.
    for (nics, bound_s) in [("4", 12e-3), ("2", 24e-3), ("1", 48e-3), ("8", 6e-3)] {
        let report = of(nics);
        assert_near(seconds(&report, "bound_s"), bound_s);
        let inside = report["inside"].as_array().unwrap();
        let first = inside[0]["edge"].as_str().unwrap();
        assert!(first.starts_with('h') && first.contains(": "), "{first}");
    }
    // Of eight NICs each of four links is there twice.
    let twice = of("8");
    let links = twice["links"].as_array().unwrap();
    let is_second = |link: &Value| link["edge"] == "h0-0 → rail0-0 (2)";
    assert!(links.iter().any(is_second), "{links:?}");
}

#[test]
fn files_of_other_tools_say_the_same() {
    let graphml = r#"<graphml><key id="r" for="edge" attr.name="rate" attr.type="string"/>
<key id="l" for="edge" attr.name="latency" attr.type="string"/><key id="k" for="node" attr.name="kind" attr.type="string"/>
<graph edgedefault="undirected"><node id="sw"><data key="k">switch</data></node>
<node id="h0"><data key="k">host</data></node><node id="h1"><data key="k">host</data></node>
<node id="h2"><data key="k">host</data></node><node id="h3"><data key="k">host</data></node>
EDGES</graph></graphml>"#;
    let edge = |host: usize| {
        format!(
            "<edge source=\"h{host}\" target=\"sw\"><data key=\"r\">8Gbit/s</data><data key=\"l\">1us</data></edge>"
        )
    };
    let graphml = graphml.replace("EDGES", &(0..4).map(edge).collect::<String>());
    let link = |host: usize| serde_json::json!({"source": format!("h{host}"), "target": "sw", "rate": "8Gbit/s", "latency": "1us"});
    let hosts = (0..4).map(|host| serde_json::json!({"id": format!("h{host}"), "kind": "host"}));
    let nodes: Vec<Value> = [serde_json::json!({"id": "sw", "kind": "switch"})]
        .into_iter()
        .chain(hosts)
        .collect();
    let links: Vec<Value> = (0..4).map(link).collect();
    let json = serde_json::json!({"directed": false, "multigraph": false, "graph": {}, "nodes": nodes, "links": links});
    let own = plan("star.yaml", STAR, &[]);
    for (file, text) in [("star.graphml", graphml), ("star.json", json.to_string())] {
        let other = plan(file, &text, &[]);
        other.expect_code(PASSED);
        assert_eq!(other.stdout, own.stdout, "{file}: {}", other.stderr);
    }
}

#[test]
fn it_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("network.yaml"), LEAVES).unwrap();
    let args = ["collectives", "plan", "network.yaml", "--svg", "plan.svg"];
    run(
        folder.path(),
        &[&args[..], &["--algorithm", "direct"]].concat(),
    )
    .expect_code(PASSED);
    let svg = std::fs::read_to_string(folder.path().join("plan.svg")).unwrap();
    assert!(
        svg.starts_with("<svg ") && svg.ends_with("</svg>\n"),
        "{svg}"
    );
    for part in ["leaf0 → spine0: ", ">spine1<", ">7 h1-3<", "<title>0 → 7: "] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    // A message of each pair, twice: direct is a reduce-scatter and an all-gather.
    let messages = svg.matches("of those after one another").count();
    assert!(
        messages > 0 && messages.is_multiple_of(2 * 56),
        "{messages}"
    );
    let nowhere = [&args[..3], &["--svg", "no/folder.svg"]].concat();
    let refused = run(folder.path(), &nowhere);
    refused.expect_code(ERROR);
    assert!(
        refused
            .stderr
            .starts_with("weir: cannot write no/folder.svg: ")
    );
}

#[test]
fn what_cannot_be_planned_is_said() {
    let apart = "switches: [s1, s2]\nhosts: [h1, h2]\nlinks: [[h1, s1], [h2, s2]]\n";
    let cases: [(&str, &[&str], &str); 11] = [
        (
            "star: {hosts: [h0, h1], rate: fast}",
            &[],
            " --> network.yaml:1:31",
        ),
        ("star: {hots: [h0, h1]}", &[], "did you mean `hosts`?"),
        (
            STAR,
            &["--hosts", "h7"],
            "--hosts: there is no host `h7`\nhint: did you mean `h0`?",
        ),
        (STAR, &["--hosts", "h*,h1"], "--hosts: `h1` is named twice"),
        (STAR, &["--hosts", "sw"], "`sw` is a switch, not a host"),
        (STAR, &["--ranks", "5"], "--ranks 5: 4 hosts have 4 ranks"),
        (STAR, &["--ranks", "1"], "1 ranks: 2 to 512 are allowed"),
        (
            STAR,
            &["--collective", "reduce", "--root", "4"],
            "the root is rank 4; 0 to 3 are allowed",
        ),
        (
            STAR,
            &["--algorithm", "pairwise"],
            "all_reduce does not have this algorithm here; use one of direct, ring, ",
        ),
        (
            RAILS,
            &["--gpus", "8", "--nics", "6"],
            "`h0-0` has 4 links, which 6 NICs cannot share evenly",
        ),
        (apart, &[], "no path leads from `h1` to `h2`"),
    ];
    for (topology, more, said) in cases {
        let finished = plan("network.yaml", topology, more);
        finished.expect_code(ERROR);
        assert!(finished.stdout.is_empty());
        assert!(
            finished.stderr.contains(said),
            "{said}: {}",
            finished.stderr
        );
    }
}
