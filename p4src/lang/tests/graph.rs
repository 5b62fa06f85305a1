//! Graphs in DOT and SVG.

#![allow(clippy::disallowed_methods)] // The crate is pure; its tests read programs.

use p4lang::ir::Program;
use p4lang::{Files, Options};
use roxmltree::{Document, Node};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[test]
fn parsers_and_controls_as_dot() {
    let text = "#include <core.p4>
header h_t { bit<16> kind; }
struct headers_t { h_t h; }
parser P(packet_in pkt, out headers_t hdr) {
    state start { pkt.extract(hdr.h); transition select(hdr.h.kind) { 0x0800: more; default: accept; } }
    state more { transition reject; }
}
control C(inout headers_t hdr) {
    action a() { } table t { key = { hdr.h.kind: exact; } actions = { a; } }
    table u { actions = { a; } }
    apply { if (hdr.h.kind == 1) { t.apply(); } else { u.apply(); } }
}
parser PT<H>(packet_in pkt, out H hdr); control CT<H>(inout H hdr);
package Top<H>(PT<H> p, CT<H> c);
Top(P(), C()) main;
";
    let files = Files::new().with("t.p4", text);
    let compiled = p4lang::compile(&files, "t.p4", &Options::default())
        .unwrap_or_else(|errors| panic!("{errors}"));
    insta::assert_snapshot!(p4lang::graph::dot(&compiled.program));
}

/// The project's program for Tofino, with a parser that parser-gen made, and the programs of the corpus.
fn programs() -> Vec<(String, Program)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = vec![root.join("../tna/main.p4")];
    let corpus = std::fs::read_dir(root.join("tests/corpus/pass")).expect("the corpus");
    paths.extend(corpus.map(|entry| entry.expect("an entry").path()));
    paths.sort();
    let load = |path: &str| {
        let path = match path.rsplit_once('/') {
            Some((_, "generated.p4")) => root.join("tests/tofino/generated.p4"),
            _ => path.replace("pass/shell/", "shell/").into(),
        };
        std::fs::read_to_string(path).ok()
    };
    let compile = |path: &std::path::PathBuf| {
        let path = path.to_string_lossy().into_owned();
        let compiled = p4lang::compile(&load, &path, &Options::default());
        let compiled = compiled.unwrap_or_else(|errors| panic!("{path}: {errors}"));
        (path, compiled.program)
    };
    paths.iter().map(compile).collect()
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name)
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| panic!("no number {name} in {node:?}"))
}

/// Left, top, right, bottom.
type Frame = [f64; 4];

/// A shape's frame.
fn frame(shape: &Node<'_, '_>) -> Frame {
    if shape.tag_name().name() == "rect" {
        let (x, y) = (number(shape, "x"), number(shape, "y"));
        return [
            x,
            y,
            x + number(shape, "width"),
            y + number(shape, "height"),
        ];
    }
    let points = shape.attribute("points").expect("a polygon");
    let all: Vec<f64> = points
        .split([' ', ','])
        .map(|n| n.parse().expect("a number"))
        .collect();
    let least = |values: &mut dyn Iterator<Item = &f64>| values.fold(f64::MAX, |a, b| a.min(*b));
    let most = |values: &mut dyn Iterator<Item = &f64>| values.fold(f64::MIN, |a, b| a.max(*b));
    [
        least(&mut all.iter().step_by(2)),
        least(&mut all.iter().skip(1).step_by(2)),
        most(&mut all.iter().step_by(2)),
        most(&mut all.iter().skip(1).step_by(2)),
    ]
}

#[test]
fn a_long_chain_is_drawn_and_laid_out() {
    let arms = |count: usize| -> String {
        let arm = |n| format!("if (hdr.h.kind == {n}) {{ t.apply(); }}\nelse ");
        (0..count).map(arm).collect()
    };
    let text = format!(
        "#include <core.p4>
header h_t {{ bit<16> kind; }}
struct headers_t {{ h_t h; }}
control C(inout headers_t hdr) {{
    table t {{ actions = {{ NoAction; }} default_action = NoAction(); }}
    apply {{ {} {{ }} }}
}}
control CT<H>(inout H hdr);
package Top<H>(CT<H> c);
Top(C()) main;
",
        arms(3000)
    );
    let told = move || {
        let laid_out =
            p4lang::format::format("t.p4", &text).unwrap_or_else(|errors| panic!("{errors}"));
        let files = Files::new().with("t.p4", text);
        let compiled = p4lang::compile(&files, "t.p4", &Options::default())
            .unwrap_or_else(|errors| panic!("{errors}"));
        let dot = p4lang::graph::dot(&compiled.program);
        let svg = p4lang::graph::svg(&compiled.program);
        let tables = compiled.p4info.tables.len();
        (laid_out, dot, svg, tables)
    };
    let ((laid_out, dot, svg, tables), cost) = test_support::cost::of(told);
    println!("{cost}");
    assert!(laid_out.contains("else if (hdr.h.kind == 2999) { t.apply(); }\n"));
    assert_eq!(tables, 1);
    assert_eq!(dot.matches("label=\"if (hdr.h.kind == ").count(), 3000);
    assert_eq!(dot.matches("[label=\"yes\"]").count(), 3000);
    // Its name and its tip.
    assert_eq!(svg.matches(">if (hdr.h.kind == ").count(), 2 * 3000);
    assert!(cost.seconds < 5.0, "{cost}");
}

/// Frames of the lines of a text, 7 pixels a character.
fn text_frames(text: &Node<'_, '_>) -> Frame {
    let mut whole = [f64::MAX, f64::MAX, f64::MIN, f64::MIN];
    for line in text.children().filter(|n| n.tag_name().name() == "tspan") {
        let half = line.text().unwrap_or_default().chars().count() as f64 * 3.5;
        let (x, y) = (number(&line, "x"), number(&line, "y"));
        whole[0] = whole[0].min(x - half);
        whole[1] = whole[1].min(y - 10.0);
        whole[2] = whole[2].max(x + half);
        whole[3] = whole[3].max(y + 2.0);
    }
    whole
}

fn inside(inner: Frame, outer: Frame) -> bool {
    inner[0] >= outer[0] - 0.2
        && inner[1] >= outer[1] - 0.2
        && inner[2] <= outer[2] + 0.2
        && inner[3] <= outer[3] + 0.2
}

fn apart(a: Frame, b: Frame) -> bool {
    a[2] <= b[0] + 0.2 || b[2] <= a[0] + 0.2 || a[3] <= b[1] + 0.2 || b[3] <= a[1] + 0.2
}

#[test]
fn drawings_are_whole_and_nothing_overlaps() {
    for (name, program) in programs() {
        let svg = p4lang::graph::svg(&program);
        assert_eq!(svg, p4lang::graph::svg(&program), "{name}: the same again");
        let document = Document::parse(&svg).unwrap_or_else(|e| panic!("{name}: {e}"));
        let width = number(&document.root_element(), "width");
        assert!(width <= 1300.0, "{name} is {width} pixels wide");
        let ids: BTreeSet<&str> = document
            .descendants()
            .filter_map(|n| n.attribute("id"))
            .collect();
        // Instances of one control are drawn once.
        let alike: BTreeMap<&str, &str> = document
            .descendants()
            .filter_map(|n| Some((n.attribute("id")?, n.attribute("data-alike")?)))
            .flat_map(|(id, others)| others.split(' ').map(move |other| (other, id)))
            .collect();
        let dot = p4lang::graph::dot(&program);
        let mut nodes = 0;
        for line in dot
            .lines()
            .filter(|l| l.contains("[label=") && !l.contains("->"))
        {
            let id = line.split_whitespace().next().expect("an id");
            let (cluster, node) = id.split_once('_').expect("a cluster and a node");
            let drawn = match alike.get(cluster) {
                Some(first) => ids.contains(format!("{first}_{node}").as_str()),
                None => ids.contains(id),
            };
            assert!(drawn, "{name}: {id} is not drawn");
            nodes += 1;
        }
        assert!(nodes > 0, "{name}");
        for panel in document
            .root_element()
            .children()
            .filter(|n| n.tag_name().name() == "g")
        {
            let of_panel = |n: &Node<'_, '_>| n.attribute("class") == Some("panel");
            let border = frame(&panel.children().find(of_panel).expect("a border"));
            let mut frames: Vec<Frame> = Vec::new();
            for part in panel.children() {
                let part_frame = match part.tag_name().name() {
                    "g" if part.has_attribute("id") => {
                        let shape = part.children().find(|n| {
                            n.attribute("class")
                                .is_some_and(|c| c.starts_with("shape "))
                        });
                        let shape = frame(&shape.expect("a shape"));
                        let name_of = part.children().find(|n| n.tag_name().name() == "text");
                        let text = text_frames(&name_of.expect("a name"));
                        assert!(
                            inside(text, shape),
                            "{name}: {part:?} does not hold its name"
                        );
                        shape
                    }
                    "text" if part.attribute("class") == Some("label") => text_frames(&part),
                    _ => continue,
                };
                assert!(inside(part_frame, border), "{name}: {part:?} is outside");
                frames.push(part_frame);
            }
            for (n, a) in frames.iter().enumerate() {
                let over = frames[..n].iter().find(|b| !apart(*a, **b));
                assert!(over.is_none(), "{name}: {a:?} lies over {over:?}");
            }
        }
    }
}
