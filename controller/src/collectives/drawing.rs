//! Draws a prediction as SVG: the network with its links colored by load, and below it a timeline of messages.

use planner::Network;

use super::{Prediction, time_line};
use crate::route::drawing::{Picture, head, legend};

const LEGEND: f64 = 34.0;

/// Draws a prediction as SVG. The load of a link is its average from the start until the last message is done.
pub fn svg(network: &Network, planned: &Prediction, title: &str) -> String {
    let mut loaded = network.clone();
    for number in 0..loaded.links().len() as u32 {
        loaded.link_mut(planner::LinkId(number)).load_bps = [0, 0];
    }
    for link in planned.links.iter().rev() {
        let Some(arc) = link.arc else { continue };
        let bps = (link.utilisation * link.rate_bps as f64) as u64;
        // Parallel links share an arc: the fullest of them comes last, and so determines its load.
        loaded.link_mut(arc.link).load_bps[usize::from(arc.back)] = bps;
    }
    let picture = Picture::new(&loaded);
    let above = picture.height + LEGEND;
    let line = time_line::TimeLine::new(planned, picture.width.max(760.0));
    let (width, height) = (picture.width.max(line.width), above + line.height);
    let mut svg = head(title, width, height);
    svg.push_str(&picture.body);
    legend(&mut svg, picture.height);
    svg.push_str(&format!("<g transform=\"translate(0 {above:.0})\">\n"));
    svg.push_str(&line.body);
    svg.push_str("</g>\n</svg>\n");
    svg
}
