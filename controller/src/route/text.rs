//! Formats the plans of trainings as text for a terminal.

use std::collections::BTreeMap;
use std::fmt;

use scenario::units::{show_duration, show_rate, show_size};

use super::{NamedMember, NamedPart, NamedPlan, Outcome, Placed, Robust, Routes, Traffic};

/// Maximum number of links that the text lists, the most utilized first.
const LINKS: usize = 10;
/// Maximum number of workers that the text lists for each part of a plan.
const MEMBERS: usize = 8;

impl fmt::Display for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for training in &self.trainings {
            let (name, workers) = (&training.name, training.workers);
            match &training.outcome {
                Outcome::Plan(plan) => {
                    writeln!(f, "{name}, {workers} workers, by {}", self.by)?;
                    planned(f, plan)?;
                }
                Outcome::Refused(_) => writeln!(f, "{name}: no plan")?,
            }
            if let Some(placed) = &training.placed {
                writeln!(f, "  {}", hosts(placed))?;
            }
            writeln!(f)?;
        }
        if let Some(robust) = &self.robust {
            writeln!(f, "{}\n", lost(robust))?;
        }
        writeln!(f, "fullest links")?;
        for link in self.links.iter().take(LINKS) {
            let percent = link.part() * 100.0;
            let (load, rate) = (show(link.load_bps as f64), show_rate(link.rate_bps));
            let ends = format!("{} → {}", link.from, link.to);
            writeln!(f, "  {percent:5.1} %  {ends:24}  {load} of {rate}")?;
        }
        if self.links.len() > LINKS {
            writeln!(f, "           and {} more", self.links.len() - LINKS)?;
        }
        Ok(())
    }
}

fn planned(f: &mut fmt::Formatter<'_>, plan: &NamedPlan) -> fmt::Result {
    if let Some(traffic) = &plan.traffic {
        passes(f, traffic)?;
    }
    let best = match plan.gap {
        Some(gap) if gap <= 0.0 => ": no plan of this kind is faster".to_owned(),
        None => String::new(),
        Some(gap) => format!(": at most {:.2} % below the best of this kind", gap * 100.0),
    };
    let answered = match plan.answers.is_empty() {
        true => "",
        false => " and receive sums as fast",
    };
    let rate = show(plan.rate_bps);
    writeln!(f, "  every worker can send {rate}{answered}{best}")?;
    if let Some(full) = &plan.full {
        writeln!(f, "  full: {full}")?;
    }
    let mut told: Vec<Vec<&NamedPart>> = Vec::new();
    // Fragments of the same workers that the same node sums share one line.
    let mut alike: BTreeMap<_, usize> = BTreeMap::new();
    for part in &plan.parts {
        let ways = part.members.iter();
        let ways: Vec<_> = ways.map(|member| (&member.worker, &member.way)).collect();
        let line = *alike
            .entry((&part.on, &part.server, ways))
            .or_insert(told.len());
        match told.get_mut(line) {
            Some(same) if part.fragment.is_some() => same.push(part),
            _ => told.push(vec![part]),
        }
    }
    for parts in &told {
        writeln!(f, "  {}", sums(parts))?;
    }
    Ok(())
}

/// Writes the traffic on links in a round, with the plan and, for comparison, without it.
fn passes(f: &mut fmt::Formatter<'_>, traffic: &Traffic) -> fmt::Result {
    let Traffic {
        fragments,
        fragment_bytes,
        arrivals,
        wait_for,
        ..
    } = traffic;
    let each = size(*fragment_bytes as f64);
    let waits = match *wait_for {
        all if all == arrivals.len() => String::new(),
        first => format!(", and a round waits for the first {first}"),
    };
    let order: Vec<&str> = arrivals.iter().take(MEMBERS).map(String::as_str).collect();
    let more = if arrivals.len() > MEMBERS {
        ", …"
    } else {
        ""
    };
    let order = order.join(", ");
    writeln!(
        f,
        "  {fragments} fragments of {each}; workers arrive in the order {order}{more}{waits}"
    )?;
    if let Some(fastest) = &traffic.fastest {
        let round = show_duration(to_four_digits(fastest.round_ns));
        writeln!(
            f,
            "  the model learns fastest if a round waits for the first {}: {:.1} rounds of {round}",
            fastest.workers, fastest.rounds
        )?;
    }
    let best = match traffic.gap {
        gap if gap <= 0.0 => "no plan that fits in the switches' memory needs less".to_owned(),
        gap => format!(
            "another plan could save at most {:.2} % of that",
            gap * 100.0
        ),
    };
    let all = size(traffic.link_bytes);
    writeln!(f, "  {all} over all links in a round: {best}")?;
    for passes in &traffic.passes {
        let (by, bytes) = (passes.by, passes.to_server_bytes as f64);
        let order = passes
            .order
            .map_or(String::new(), |order| format!(", {order}"));
        let scheme = format!("{by}{order}:");
        writeln!(
            f,
            "    {scheme:23} {:5} fragments to the server, {}; {} over links from switches",
            passes.to_server,
            size(bytes),
            passes.from_switches
        )?;
    }
    Ok(())
}

/// Describes the hosts that the planner chose for the workers.
fn hosts(placed: &Placed) -> String {
    let on = placed
        .hosts
        .iter()
        .take(MEMBERS)
        .map(|(host, count)| match count {
            1 => host.clone(),
            count => format!("{host} ({count})"),
        });
    let on: Vec<String> = on.collect();
    let more = match placed.hosts.len().checked_sub(MEMBERS) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    let idle = match placed.idle {
        0 => "none of them idle before".to_owned(),
        idle => format!("{idle} of them idle before"),
    };
    let best = match placed.proven {
        true => "; no placement takes fewer",
        false => "",
    };
    format!("runs on {}{more}, {idle}{best}", on.join(", "))
}

/// Describes how many trainings the loss of one switch affects.
fn lost(robust: &Robust) -> String {
    let Robust {
        worst,
        before,
        least,
        planned,
        looked_at,
        proven,
    } = robust;
    let was = match before > worst {
        true => format!(" instead of {before}"),
        false => String::new(),
    };
    let best = match (worst <= least, proven) {
        (true, _) => ": no plans touch fewer".to_owned(),
        (false, true) => format!(": no choice from {looked_at} plans touches fewer"),
        (false, false) => String::new(),
    };
    format!("the loss of one switch touches at most {worst} of {planned} trainings{was}{best}")
}

/// Describes what one node sums: which workers, and which fragments if several parts of the plan sum the same workers there.
fn sums(parts: &[&NamedPart]) -> String {
    let [part, ..] = parts else {
        return String::new();
    };
    let at = part.on.as_deref().unwrap_or(&part.server);
    let fragments: Vec<usize> = parts.iter().filter_map(|part| part.fragment).collect();
    let share = match fragments.as_slice() {
        [] if part.share < 1.0 => format!(" of {:.1} %", part.share * 100.0),
        [] => String::new(),
        [number] => format!(" fragment {number} of"),
        several => format!(" fragments {} of", ranges(several)),
    };
    let members: Vec<String> = part.members.iter().take(MEMBERS).map(member).collect();
    let more = match part.members.len().checked_sub(MEMBERS) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    format!("{at} sums{share} {}{more}", members.join(", "))
}

/// Formats ascending numbers, consecutive ones as a range: `1, 3–5`.
fn ranges(numbers: &[usize]) -> String {
    let runs = numbers.chunk_by(|before, next| before + 1 == *next);
    let runs = runs.map(|run| match run {
        [first, .., last] => format!("{first}–{last}"),
        _ => run.iter().map(usize::to_string).collect(),
    });
    runs.collect::<Vec<String>>().join(", ")
}

/// Name of a worker's host, with the switches on its route to the node that sums.
fn member(member: &NamedMember) -> String {
    let passed = member.way.len().saturating_sub(1);
    match member
        .way
        .get(1..passed)
        .filter(|passed| !passed.is_empty())
    {
        Some(passed) => format!("{} (through {})", member.worker, passed.join(", ")),
        None => member.worker.clone(),
    }
}

/// Formats a rate in bits per second with four significant digits.
fn show(bps: f64) -> String {
    show_rate(to_four_digits(bps))
}

fn to_four_digits(value: f64) -> u64 {
    let digits = 10_f64.powi(value.max(1.0).log10() as i32 - 3).max(1.0);
    ((value / digits).round() * digits) as u64
}

/// Formats a size in bytes with four significant digits.
fn size(bytes: f64) -> String {
    show_size(to_four_digits(bytes))
}
