//! Computes the examples in the planners' papers, beside the figures that the papers print.

use anyhow::{Result, bail};
use planner::Network;
use planner::baseline::{atp, equal_split, geryon, lbmm};
use planner::evaluation::examples::{self, GOAT_FRAGMENT_BYTES, links_behind_workers};
use planner::gradient::fragments::{Passed, Send, first_come, planned};
use planner::gradient::{Job, Plan, goat, grid, inart};
use planner::routing::{Costs, Routing};
use serde_json::{Value, json};

/// Seed of all examples. An example has a single best plan or several equal plans, so any seed will do.
const SEED: u64 = 7;

/// Figure in a paper, and the figure computed by our planner.
struct PaperFigure {
    of: &'static str,
    what: &'static str,
    /// The figure as the paper prints it, as text.
    printed: &'static str,
    /// Exact value of the figure that the paper prints rounded.
    expected: f64,
    found: f64,
}

pub fn run() -> Result<Value> {
    let mut figures = grid_figures()?;
    figures.extend(goat_figures()?);
    figures.extend(inart_figures()?);
    let figures = figures.into_iter().map(|figure| {
        let off = (figure.found - figure.expected).abs();
        json!({
            "of": figure.of,
            "what": figure.what,
            "printed": figure.printed,
            "expected": figure.expected,
            "found": figure.found,
            "same": off <= 1e-6 * figure.expected,
        })
    });
    Ok(Value::Array(figures.collect()))
}

fn grid_figures() -> Result<Vec<PaperFigure>> {
    let (network, job) = examples::grid()?;
    let jobs = std::slice::from_ref(&job);
    let found = [
        ("Geryon", "1.0", 1.0, geryon::plan(&network, &job)?),
        ("ATP", "2.43", 2.4375, only(atp::plan(&network, jobs)?)?),
        ("GRID", "3.0", 3.0, grid::plan(&network, &job)?),
    ];
    Ok(rates("GRID", found))
}

fn inart_figures() -> Result<Vec<PaperFigure>> {
    let (network, job) = examples::inart()?;
    let jobs = std::slice::from_ref(&job);
    let split = only(equal_split::plan(&network, jobs)?)?;
    let found = [
        ("LBMM", "4/3", 4.0 / 3.0, lbmm::plan(&network, &job)?),
        ("ATP with an equal split", "2", 2.0, split),
        (
            "InArt, shares of 3 to 2",
            "2.5",
            2.5,
            inart::plan(&network, &job, &[0.6, 0.4])?,
        ),
    ];
    Ok(rates("InArt", found))
}

fn rates<const N: usize>(
    of: &'static str,
    found: [(&'static str, &'static str, f64, Plan); N],
) -> Vec<PaperFigure> {
    let figure = |(what, printed, expected, plan): (_, _, _, Plan)| PaperFigure {
        of,
        what,
        printed,
        expected,
        found: plan.rate_bps / 1e9,
    };
    found.into_iter().map(figure).collect()
}

/// Figures of GOAT's example: the workers send one after another, as far out of step as possible.
fn goat_figures() -> Result<Vec<PaperFigure>> {
    let (network, job) = examples::goat(false)?;
    let sends: Vec<Send> = (0..4)
        .flat_map(|worker| (0..3).map(move |piece| Send { worker, piece }))
        .collect();
    let atp = at_first_come(&network, &job, &sends)?;
    let costs = links_behind_workers(&network);
    let gradient = goat::Gradient {
        sub_models: &[GOAT_FRAGMENT_BYTES; 3],
        costs: &costs,
    };
    let goat = planned(&goat::plan(&network, &job, &gradient, SEED)?, &sends);
    let figure = |what, printed, expected, found: u64| PaperFigure {
        of: "GOAT",
        what,
        printed,
        expected,
        found: found as f64,
    };
    Ok(vec![
        figure("ATP, fragments at the server", "7", 7.0, atp.at_server),
        figure("ATP, links", "17", 17.0, atp.between_switches(&network)),
        figure("GOAT, fragments at the server", "3", 3.0, goat.at_server),
        figure("GOAT, links", "13", 13.0, goat.between_switches(&network)),
    ])
}

fn at_first_come(network: &Network, job: &Job, sends: &[Send]) -> Result<Passed> {
    let routing = Routing::new(network, Costs::hops(network));
    Ok(first_come(network, job, &routing, 1, sends)?)
}

/// The plan of the only job; an error if there are several plans.
fn only(plans: Vec<Plan>) -> Result<Plan> {
    let Ok([plan]) = <[Plan; 1]>::try_from(plans) else {
        bail!("one job has one plan");
    };
    Ok(plan)
}
