//! The drawing: one panel for each parser and control, with a legend above.

use super::layers::{Layered, Link, Sizes, What, arrange};
use super::place::place;
use super::{Cluster, Node, Shape};
use crate::source::visible;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Of the monospaced text, in pixels at 12 px: the widest of the fonts that are asked for.
const CHAR: f64 = 7.4;
const LINE: f64 = 16.0;
/// Columns of a node's text and of an edge's.
const NODE_COLUMNS: usize = 36;
const EDGE_COLUMNS: usize = 24;
const EDGE_LINES: usize = 6;
/// Panels stand beside each other up to this width.
const WIDTH: f64 = 1240.0;
const MARGIN: f64 = 16.0;
const TITLE: f64 = 28.0;

/// Draws the clusters.
pub(super) fn draw(clusters: &[Cluster]) -> String {
    let panels: Vec<Panel> = alike(clusters).iter().map(|c| Panel::of(c)).collect();
    let mut shapes: Vec<Shape> = clusters
        .iter()
        .flat_map(|c| &c.nodes)
        .map(|n| n.shape)
        .collect();
    shapes.sort_unstable();
    shapes.dedup();
    let mut body = String::new();
    let (mut x, mut y, mut row, mut width) = (MARGIN, MARGIN, 0.0f64, 0.0f64);
    y += legend(&mut body, &shapes, &mut width);
    for panel in &panels {
        if x > MARGIN && x + panel.width + MARGIN > WIDTH {
            (x, y, row) = (MARGIN, y + row + MARGIN, 0.0);
        }
        panel.draw(&mut body, x, y);
        x += panel.width + MARGIN;
        width = width.max(x);
        row = row.max(panel.height);
    }
    let height = y + row + MARGIN;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.0} {height:.0}\">
<style>{STYLE}</style>
<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\"><path d=\"M0,0 L8,4 L0,8 z\" fill=\"#475569\"/></marker></defs>
<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>
{body}</svg>
"
    )
}

const STYLE: &str = "
text { font: 12px ui-monospace, 'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, monospace; fill: #0f172a; text-anchor: middle }
.title { font-weight: bold; font-size: 13px; text-anchor: start }
.legend { text-anchor: start }
.panel { fill: #f8fafc; stroke: #cbd5e1 }
.edge { fill: none; stroke: #475569; stroke-width: 1.2 }
.back { stroke-dasharray: 5 3 }
.label { fill: #334155; font-size: 11px }
.shape { stroke-width: 1.4 }
.start, .end { fill: #e2e8f0; stroke: #475569 }
.state { fill: #dcfce7; stroke: #15803d }
.accept { fill: #86efac; stroke: #15803d }
.reject, .exit { fill: #fecaca; stroke: #b91c1c }
.condition { fill: #fef3c7; stroke: #b45309 }
.table { fill: #bfdbfe; stroke: #1d4ed8 }
.control { fill: #ede9fe; stroke: #6d28d9 }
.extern { fill: #ffffff; stroke: #475569; stroke-dasharray: 4 2 }
";

fn class(shape: Shape) -> &'static str {
    match shape {
        Shape::Start => "start",
        Shape::End => "end",
        Shape::State => "state",
        Shape::Accept => "accept",
        Shape::Reject => "reject",
        Shape::Condition => "condition",
        Shape::Table => "table",
        Shape::Control => "control",
        Shape::Extern => "extern",
        Shape::Exit => "exit",
    }
}

/// A row of samples at the top; its height.
fn legend(out: &mut String, shapes: &[Shape], width: &mut f64) -> f64 {
    let mut x = MARGIN;
    for shape in shapes {
        let name = match shape {
            Shape::State => "parser state",
            Shape::Control => "control applied",
            Shape::Extern => "extern called",
            other => class(*other),
        };
        let middle = (x + 14.0, MARGIN + 9.0);
        outline(out, *shape, middle, (28.0, 18.0));
        let at = x + 34.0;
        let _ = writeln!(
            out,
            "<text class=\"legend\" x=\"{at:.1}\" y=\"{:.1}\">{name}</text>",
            middle.1 + 4.0
        );
        x = at + name.len() as f64 * CHAR + 22.0;
    }
    *width = width.max(x);
    18.0 + MARGIN
}

/// Clusters that differ in nothing but their names, by the first of them: instances of one control.
fn alike(clusters: &[Cluster]) -> Vec<Vec<&Cluster>> {
    let mut found: Vec<Vec<&Cluster>> = Vec::new();
    let mut known = BTreeMap::new();
    for cluster in clusters {
        let own = format!("{}.", cluster.name);
        let nodes: Vec<(Shape, Vec<String>)> = cluster
            .nodes
            .iter()
            .map(|n| {
                (
                    n.shape,
                    n.label.iter().map(|l| l.replace(&own, "")).collect(),
                )
            })
            .collect();
        let edges = cluster.edges.iter().map(|e| (e.from, e.to, &e.label));
        let edges: Vec<(usize, usize, &String)> = edges.collect();
        let at = *known.entry((nodes, edges)).or_insert(found.len());
        match found.get_mut(at) {
            Some(group) => group.push(cluster),
            None => found.push(vec![cluster]),
        }
    }
    found
}

/// Which clusters are like the first, in a few lines.
fn others(group: &[&Cluster]) -> Vec<String> {
    const NAMED: usize = 3;
    let rest = &group[1..];
    let name = |c: &&Cluster| format!("= {}", c.name);
    let mut lines: Vec<String> = rest.iter().map(name).collect();
    if lines.len() > NAMED {
        lines.truncate(NAMED - 1);
        lines.push(format!("= {} more", rest.len() + 1 - NAMED));
    }
    lines
}

/// A cluster with its size.
struct Panel<'c> {
    cluster: &'c Cluster,
    /// Clusters like it.
    others: Vec<&'c Cluster>,
    /// How it says so.
    note: Vec<String>,
    lines: Vec<Vec<String>>,
    all: Layered,
    /// What the title takes.
    above: f64,
    width: f64,
    height: f64,
}

/// Sizes of a cluster's nodes.
struct Measures<'l> {
    nodes: &'l [Node],
    lines: &'l [Vec<String>],
}

impl Sizes for Measures<'_> {
    fn node(&self, n: usize) -> (f64, f64) {
        let (width, height) = text_size(&self.lines[n]);
        match self.nodes[n].shape {
            Shape::Condition => (width + 44.0, height + 14.0),
            Shape::Start | Shape::End | Shape::Accept | Shape::Reject | Shape::Exit => {
                (width + 28.0, height + 12.0)
            }
            _ => (width + 24.0, height + 14.0),
        }
    }

    fn label(&self, labels: &[&str]) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for label in labels {
            match lines.last_mut() {
                // Short ones share a line.
                Some(last) if columns(last) + columns(label) + 2 <= EDGE_COLUMNS => {
                    last.push_str("; ");
                    last.push_str(label);
                }
                _ => lines.extend(wrapped(label, EDGE_COLUMNS)),
            }
        }
        if lines.len() > EDGE_LINES {
            let more = lines.len() - EDGE_LINES + 1;
            lines.truncate(EDGE_LINES - 1);
            lines.push(format!("… {more} lines more"));
        }
        lines
    }

    fn text(&self, lines: &[String]) -> (f64, f64) {
        let (width, height) = text_size(lines);
        (width, height + 2.0)
    }
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

fn text_size(lines: &[String]) -> (f64, f64) {
    let widest = lines.iter().map(|l| columns(l)).max().unwrap_or(0);
    (widest as f64 * CHAR, lines.len() as f64 * LINE)
}

/// Lines of at most so many columns, broken at spaces, else behind a dot, else anywhere.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut rest: Vec<char> = text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .collect();
    let mut lines = Vec::new();
    while rest.len() > most {
        let head = &rest[..most];
        let space = head.iter().rposition(|c| *c == ' ');
        let dot = head.iter().rposition(|c| *c == '.');
        let end = match (space, dot) {
            (Some(at), _) if at > most / 3 => at + 1,
            (_, Some(at)) if at > most / 3 => at + 1,
            _ => most,
        };
        let tail = rest.split_off(end);
        lines.push(rest.iter().collect::<String>().trim_end().to_owned());
        rest = tail;
    }
    lines.push(rest.into_iter().collect());
    lines
}

impl<'c> Panel<'c> {
    fn of(group: &[&'c Cluster]) -> Panel<'c> {
        let (cluster, rest) = (group[0], &group[1..]);
        let note = others(group);
        let own = format!("{}.", cluster.name);
        let lines: Vec<Vec<String>> = cluster
            .nodes
            .iter()
            .map(|node| {
                let of_line = |line: &String| {
                    // Within its own panel a table needs no path, nor the word.
                    let line = line.strip_prefix("table ").unwrap_or(line);
                    wrapped(line.strip_prefix(&own).unwrap_or(line), NODE_COLUMNS)
                };
                node.label.iter().flat_map(of_line).collect()
            })
            .collect();
        let measures = Measures {
            nodes: &cluster.nodes,
            lines: &lines,
        };
        let mut all = arrange(cluster, &measures);
        let (width, height) = place(&mut all);
        let loops = all.links.iter().any(|l| l.from == l.to);
        let noted = note.iter().map(|n| columns(n)).max().unwrap_or(0);
        let title = columns(&cluster.name).max(noted) as f64 * CHAR * 1.1;
        let above = TITLE + note.len() as f64 * LINE;
        let room = if loops {
            EDGE_COLUMNS as f64 * CHAR
        } else {
            0.0
        };
        Panel {
            cluster,
            others: rest.to_vec(),
            note,
            above,
            lines,
            all,
            width: (width + room).max(title) + 2.0 * MARGIN,
            height: height + above + 2.0 * MARGIN,
        }
    }

    fn draw(&self, out: &mut String, x: f64, y: f64) {
        let ids: Vec<&str> = self.others.iter().map(|c| c.id.as_str()).collect();
        let alike = match ids.as_slice() {
            [] => String::new(),
            ids => format!(" data-alike=\"{}\"", ids.join(" ")),
        };
        let _ = writeln!(
            out,
            "<g id=\"{}\"{alike}><rect class=\"panel\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"6\"/>",
            self.cluster.id, self.width, self.height
        );
        let _ = writeln!(
            out,
            "<text class=\"title\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x + 12.0,
            y + 20.0,
            escaped(&self.cluster.name)
        );
        if !self.note.is_empty() {
            let names: Vec<&str> = self.others.iter().map(|c| c.name.as_str()).collect();
            let names = escaped(&names.join("\n"));
            let _ = write!(out, "<g><title>{names}</title>");
            for (n, line) in (1u8..).zip(&self.note) {
                let (x, y) = (x + 12.0, y + 20.0 + f64::from(n) * LINE);
                let line = escaped(line);
                let _ = write!(
                    out,
                    "<text class=\"legend\" x=\"{x:.1}\" y=\"{y:.1}\">{line}</text>"
                );
            }
            out.push_str("</g>\n");
        }
        let origin = (x + MARGIN, y + self.above + MARGIN);
        for link in &self.all.links {
            self.link(out, link, origin);
        }
        for item in &self.all.items {
            let middle = (item.x + origin.0, item.y + origin.1);
            match item.what {
                What::Node(n) => {
                    let node = &self.cluster.nodes[n];
                    let _ = write!(
                        out,
                        "<g id=\"{}\"><title>{}</title>",
                        escaped(&node.id),
                        escaped(&node.label.join("\n"))
                    );
                    outline(out, node.shape, middle, (item.width, item.height));
                    text(out, "name", &self.lines[n], middle);
                    out.push_str("</g>\n");
                }
                What::Label(n) => text(out, "label", &self.all.links[n].label, middle),
                What::Bend => {}
            }
        }
        out.push_str("</g>\n");
    }

    /// A line from node to node, interrupted by its label.
    fn link(&self, out: &mut String, link: &Link, origin: (f64, f64)) {
        let item = |n: usize| &self.all.items[n];
        let (ox, oy) = origin;
        if link.path.is_empty() {
            // To itself: a bow at the right, the label beside it.
            let node = item(link.from);
            let (x, y) = (node.x + node.width / 2.0 + ox, node.y + oy);
            let _ = writeln!(
                out,
                "<path class=\"edge back\" marker-end=\"url(#tip)\" d=\"M{x:.1},{:.1} c24,-10 24,24 0,14\"/>",
                y - 6.0
            );
            let width = text_size(&link.label).0;
            return text(out, "label", &link.label, (x + 24.0 + width / 2.0, y));
        }
        let mut d = String::new();
        let last = link.path.len() - 1;
        for (n, pair) in link.path.windows(2).enumerate() {
            let (a, b) = (item(pair[0]), item(pair[1]));
            let from = (a.x + ox, a.y + a.height / 2.0 + oy);
            let to = (b.x + ox, b.y - b.height / 2.0 + oy);
            if n == 0 || !matches!(a.what, What::Bend) {
                let _ = write!(d, "M{:.1},{:.1} ", from.0, from.1);
            }
            let half = (from.1 + to.1) / 2.0;
            let _ = write!(
                d,
                "C{:.1},{half:.1} {:.1},{half:.1} {:.1},{:.1} ",
                from.0, to.0, to.0, to.1
            );
            if n + 1 < last && matches!(b.what, What::Bend) {
                let _ = write!(d, "L{:.1},{:.1} ", to.0, b.y + b.height / 2.0 + oy);
            }
        }
        let (class, tip, head) = match link.back {
            true => ("edge back", "start", link.path[0]),
            false => ("edge", "end", link.path[last]),
        };
        let marker = match item(head).what {
            // It joins another, which has the tip.
            What::Bend => String::new(),
            _ => format!(" marker-{tip}=\"url(#tip)\""),
        };
        let d = d.trim_end();
        let _ = writeln!(out, "<path class=\"{class}\"{marker} d=\"{d}\"/>");
    }
}

/// A node's shape around its middle.
fn outline(out: &mut String, shape: Shape, middle: (f64, f64), size: (f64, f64)) {
    let ((x, y), (w, h)) = (middle, size);
    let class = class(shape);
    let (left, top) = (x - w / 2.0, y - h / 2.0);
    let rect = |out: &mut String, inset: f64, radius: f64| {
        let _ = write!(
            out,
            "<rect class=\"shape {class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{radius:.1}\"/>",
            left + inset,
            top + inset,
            w - 2.0 * inset,
            h - 2.0 * inset
        );
    };
    match shape {
        Shape::Condition => {
            let cut = 12.0f64.min(w / 4.0);
            let (right, bottom) = (left + w, top + h);
            let _ = write!(
                out,
                "<polygon class=\"shape {class}\" points=\"{left:.1},{y:.1} {:.1},{top:.1} {:.1},{top:.1} {right:.1},{y:.1} {:.1},{bottom:.1} {:.1},{bottom:.1}\"/>",
                left + cut,
                right - cut,
                right - cut,
                left + cut
            );
        }
        Shape::Table => rect(out, 0.0, 0.0),
        Shape::Control => {
            rect(out, 0.0, 2.0);
            rect(out, 3.0, 1.0);
        }
        Shape::State | Shape::Extern => rect(out, 0.0, 8.0),
        Shape::Start => rect(out, 0.0, h / 2.0),
        Shape::End | Shape::Accept | Shape::Reject | Shape::Exit => {
            rect(out, 0.0, h / 2.0);
            rect(out, 3.0, h / 2.0 - 3.0);
        }
    }
}

/// Lines of text around a middle.
fn text(out: &mut String, class: &str, lines: &[String], middle: (f64, f64)) {
    let (x, y) = middle;
    let first = y - (lines.len() as f64 - 1.0) * LINE / 2.0 + 4.0;
    let _ = write!(out, "<text class=\"{class}\">");
    for (n, line) in lines.iter().enumerate() {
        let y = first + n as f64 * LINE;
        let _ = write!(
            out,
            "<tspan x=\"{x:.1}\" y=\"{y:.1}\">{}</tspan>",
            escaped(line)
        );
    }
    out.push_str("</text>\n");
}

/// As XML 1.0 text; characters that it does not have, and control characters, are shown as [`visible`] does.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}
