//! The hidden command `planning-point WHAT [ARGUMENTS]`: measures one point of `cargo xtask bench planning`, and prints
//! it as a line of JSON.

mod asynchrony;
mod gap;
mod golden;
mod growth;
mod injection;
mod measure;
mod online;
mod servers;

use anyhow::{Context, Result, bail};
use serde_json::Value;

pub const COMMAND: &str = "planning-point";

/// Options of the hidden command.
#[derive(clap::Args)]
pub struct Args {
    /// Measurement to run
    what: String,
    /// Arguments of the measurement: names, sizes, seeds
    arguments: Vec<String>,
}

pub fn run(args: &Args) -> Result<bool> {
    println!("{}", measured(&args.what, &args.arguments)?);
    Ok(true)
}

fn measured(what: &str, arguments: &[String]) -> Result<Value> {
    let text = |place: usize| {
        let text = arguments.get(place).map(String::as_str);
        text.with_context(|| format!("`{what}` needs more than {} arguments", arguments.len()))
    };
    let number = |place: usize| -> Result<u32> { Ok(text(place)?.parse()?) };
    match what {
        "golden" => golden::run(),
        "gap" => gap::run(text(0)?, number(1)?),
        "servers" => servers::run(number(0)?),
        "asynchrony" => asynchrony::run(number(0)?),
        "growth" => growth::run(text(0)?, text(1)?, number(2)?),
        "injection" => injection::run(number(0)?),
        "online" => online::run(number(0)?),
        "fat-tree" => gap::fat_tree(number(0)?),
        _ => bail!("no measurement is called `{what}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether this run includes long measurements; if not, notes that `what` is skipped.
    fn is_long_wanted(what: &str) -> bool {
        let is_wanted = test_support::runs_all();
        if !is_wanted {
            test_support::skip(what, "--all");
        }
        is_wanted
    }

    /// Measures the point that the words of `line` name.
    fn point(line: &str) -> Result<Value> {
        let mut words = line.split(' ').map(str::to_owned);
        let what = words.next().unwrap_or_default();
        measured(&what, &words.collect::<Vec<String>>())
    }

    fn measured_point(arguments: &str) -> Value {
        point(arguments).expect("a measured point")
    }

    fn field<'v>(value: &'v Value, path: &str) -> &'v Value {
        value.pointer(path).expect(path)
    }

    #[test]
    fn all_examples_are_as_printed() {
        let figures = measured_point("golden");
        let figures = figures.as_array().expect("a list");
        assert_eq!(figures.len(), 10);
        for figure in figures {
            assert_eq!(figure["same"], true, "{figure}");
        }
    }

    #[test]
    fn a_network_gives_rates_and_no_plan_is_over_a_capacity() {
        let network = measured_point("gap fat-tree-racks-400 1");
        let seed = field(&network, "/seeds/0");
        for by in ["push", "round"] {
            assert_eq!(seed[by]["over_capacity"], false, "{by}");
        }
        // In a round, a plan that includes the return of sums is at least as fast as one that does not.
        let round = field(seed, "/round_bps");
        assert!(round["push"].as_f64() <= round["grid"].as_f64(), "{round}");
        for other in ["atp", "esa", "switchml", "geryon", "lbmm", "raw"] {
            let rate = field(seed, &format!("/sent_bps/{other}")).as_f64();
            assert!(rate <= seed["push"]["rate_bps"].as_f64(), "{other}: {seed}");
        }
    }

    #[test]
    fn inart_is_at_least_as_fast_as_others() {
        if !is_long_wanted("InArt beside others on its paper's fat tree") {
            return;
        }
        let settings = measured_point("servers 1");
        for setting in settings.as_array().expect("a list") {
            let rates = field(setting, "/seeds/0/rates_bps");
            for other in ["equal-split", "lbmm"] {
                assert!(rates[other].as_f64() <= rates["inart"].as_f64(), "{rates}");
            }
        }
    }

    #[test]
    fn goat_is_ahead_out_of_step_and_behind_in_step() {
        let settings = measured_point("asynchrony 2");
        let received = |setting: usize, scheme: usize| {
            let path = format!("/{setting}/schemes/{scheme}/received_bytes");
            field(&settings, &path).as_f64().expect("a number")
        };
        // The schemes are Geryon, ATP, ESA and GOAT; the settings are in step, then with the largest deviation.
        let last = settings.as_array().expect("a list").len() - 1;
        for other in 0..3 {
            assert!(
                received(last, other) > 1.5 * received(last, 3),
                "{settings}"
            );
        }
        // In step, the nearest switches sum everything.
        assert!(received(0, 1) < received(0, 3), "{settings}");
    }

    #[test]
    fn growth_reports_time_and_memory() {
        for planner in ["grid", "grid-proof", "inart", "inart-event", "injection"] {
            let shape = if planner == "injection" {
                "fat-tree 6"
            } else {
                "leaf-spine 3"
            };
            let point = measured_point(&format!("growth {planner} {shape}"));
            for number in ["/plan/cpu_s", "/plan/wall_s", "/peak_bytes", "/hosts"] {
                let number = field(&point, number).as_f64().expect("a number");
                assert!(number > 0.0, "{point}");
            }
        }
    }

    #[test]
    fn immediate_plans_are_timed() {
        assert!(field(&measured_point("online 1"), "/arrival/cpu_s").as_f64() > Some(0.0));
        assert!(field(&measured_point("injection 1"), "/0/plan/cpu_s").as_f64() > Some(0.0));
        if is_long_wanted("planning for all workers of a fat tree") {
            assert!(field(&measured_point("fat-tree 1"), "/7/plan/cpu_s").as_f64() > Some(0.0));
        }
    }

    #[test]
    fn unknown_names_are_refused() {
        for wrong in [
            "nothing",
            "gap here 1",
            "growth grid ring 3",
            "growth",
            "servers x",
        ] {
            assert!(point(wrong).is_err(), "{wrong}");
        }
    }
}
