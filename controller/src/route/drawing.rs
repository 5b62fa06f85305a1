//! Draws a network as SVG, with the load of its links.

use std::fmt::Write;

use planner::network::Link;
use planner::{Network, NodeId};
use scenario::units::show_rate;

use super::layout::Layout;

const STEP_X: f64 = 56.0;
const STEP_Y: f64 = 110.0;
pub(crate) const MARGIN: f64 = 40.0;
const LEGEND: f64 = 34.0;

/// Draws a network as SVG: links colored by the load of their fuller direction, switches that sum filled.
pub fn svg(network: &Network, title: &str) -> String {
    let picture = Picture::new(network);
    let height = picture.height + LEGEND;
    let mut svg = head(title, picture.width, height);
    svg.push_str(&picture.body);
    let x = legend(&mut svg, height - 14.0);
    sums(&mut svg, x, height - 14.0);
    svg.push_str("</svg>\n");
    svg
}

/// The opening `svg` element of a drawing, with its title and a white background.
pub(crate) fn head(title: &str, width: f64, height: f64) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"10\">\n<title>{}</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        escape(title)
    )
}

/// The nodes and links of a network as SVG elements, without the enclosing `svg` element and the legend.
pub(crate) struct Picture {
    pub body: String,
    pub width: f64,
    pub height: f64,
}

impl Picture {
    pub fn new(network: &Network) -> Picture {
        let layout = Layout::new(network);
        Picture {
            body: body(network, &layout),
            width: (2.0 * MARGIN + layout.width * STEP_X).max(420.0),
            height: 2.0 * MARGIN + (layout.layers as f64 - 1.0) * STEP_Y,
        }
    }
}

fn body(network: &Network, layout: &Layout) -> String {
    let at = |(x, y): (f64, f64)| (MARGIN + x * STEP_X, MARGIN + y * STEP_Y);
    let mut svg = String::new();
    for link in network.links() {
        let [a, b] = link.ends.map(|end| layout.places[end.index()]);
        if let (Some(a), Some(b)) = (a, b) {
            line(&mut svg, network, link, at(a), at(b));
        }
    }
    for (switch, place, hosts) in &layout.boxes {
        let Some(above) = layout.places[switch.index()] else {
            continue;
        };
        let ((x, y), (to_x, to_y)) = (at(*place), at(above));
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{to_x:.1}\" y2=\"{to_y:.1}\" stroke=\"#bbb\"/>\
             <rect x=\"{:.1}\" y=\"{:.1}\" width=\"44\" height=\"18\" rx=\"3\" fill=\"#eef\" stroke=\"#88a\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{hosts} hosts</text>",
            x - 22.0,
            y - 9.0,
            y + 3.5
        );
    }
    for node in network.ids() {
        if let Some(place) = layout.places[node.index()] {
            shape(&mut svg, network, node, at(place));
        }
    }
    svg
}

fn line(
    svg: &mut String,
    network: &Network,
    link: &Link,
    (ax, ay): (f64, f64),
    (bx, by): (f64, f64),
) {
    let [a, b] = link.ends.map(|end| escape(network.name(end)));
    let [there, back] = link.load_bps.map(|load| load as f64 / link.rate_bps as f64);
    let part = there.max(back);
    let [shown_there, shown_back] = link.load_bps.map(show_rate);
    // Within a layer a straight line would be hidden behind the nodes between its ends.
    let bend = if ay == by {
        0.35 * (bx - ax).abs().max(STEP_X)
    } else {
        0.0
    };
    let _ = writeln!(
        svg,
        "<path d=\"M{ax:.1} {ay:.1} Q{:.1} {:.1} {bx:.1} {by:.1}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1}\">\
         <title>{a} → {b}: {shown_there}, {b} → {a}: {shown_back}, of {}</title></path>",
        (ax + bx) / 2.0,
        (ay + by) / 2.0 - bend,
        colour(part),
        if part > 0.0 {
            1.5 + 2.5 * part.min(1.0)
        } else {
            1.0
        },
        show_rate(link.rate_bps)
    );
}

fn shape(svg: &mut String, network: &Network, node: NodeId, (x, y): (f64, f64)) {
    let name = escape(network.name(node));
    let Some(switch) = network.switch(node) else {
        let _ = writeln!(
            svg,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"44\" height=\"18\" rx=\"3\" fill=\"#eef\" stroke=\"#88a\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
            x - 22.0,
            y - 9.0,
            y + 3.5
        );
        return;
    };
    let (fill, ink, sums) = match switch.load_bps {
        0 => ("#f4f4f4", "#222", String::new()),
        load => (
            "#2a6f97",
            "#fff",
            format!("<title>{name} sums {}</title>", show_rate(load)),
        ),
    };
    let dashed = match switch.programmable {
        true => "",
        false => " stroke-dasharray=\"3 2\"",
    };
    let _ = writeln!(
        svg,
        "<g>{sums}<rect x=\"{:.1}\" y=\"{:.1}\" width=\"48\" height=\"24\" fill=\"{fill}\" stroke=\"#333\"{dashed}/>\
         <text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"{ink}\">{name}</text></g>",
        x - 24.0,
        y - 12.0,
        y + 3.5
    );
}

/// Draws the legend of the link colors at height `y`; returns the x position for the next item.
pub(crate) fn legend(svg: &mut String, y: f64) -> f64 {
    let mut x = MARGIN;
    for (label, part) in [("idle", 0.0), ("half full", 0.5), ("full", 1.0)] {
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.0}\" y1=\"{y:.0}\" x2=\"{:.0}\" y2=\"{y:.0}\" stroke=\"{}\" stroke-width=\"3\"/>\
             <text x=\"{:.0}\" y=\"{:.1}\">{label}</text>",
            x + 22.0,
            colour(part),
            x + 28.0,
            y + 3.5
        );
        x += 90.0;
    }
    x
}

fn sums(svg: &mut String, x: f64, y: f64) {
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.0}\" y=\"{:.0}\" width=\"14\" height=\"10\" fill=\"#2a6f97\"/>\
         <text x=\"{:.0}\" y=\"{:.1}\">sums</text>",
        y - 5.0,
        x + 20.0,
        y + 3.5
    );
}

/// Color of a link by the used share of its capacity: gray for 0, then from green over yellow to red for 1.
fn colour(part: f64) -> String {
    if part <= 0.0 {
        return "#ccc".to_owned();
    }
    let part = part.min(1.0);
    let (red, green) = match part < 0.5 {
        true => (2.0 * part, 1.0),
        false => (1.0, 2.0 * (1.0 - part)),
    };
    let byte = |share: f64| (40.0 + 170.0 * share) as u8;
    format!("#{:02x}{:02x}28", byte(red), byte(green))
}

pub(crate) fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
