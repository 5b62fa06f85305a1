//! Plans of trainings for people.

use std::fmt;

use scenario::units::show_rate;

use super::{Member, Outcome, Part, Placed, Planned, Robust, Routes};

/// Links that are listed, the fullest first.
const LINKS: usize = 10;
/// Workers of a part that are listed.
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
                Outcome::Refused(why) => writeln!(f, "{name}: no plan. {why}")?,
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

fn planned(f: &mut fmt::Formatter<'_>, plan: &Planned) -> fmt::Result {
    let best = match plan.gap {
        Some(gap) if gap <= 0.0 => ": no plan of this kind lets them send more".to_owned(),
        None => String::new(),
        Some(gap) => format!(": at most {:.2} % below the best of this kind", gap * 100.0),
    };
    let answered = match plan.answers.is_empty() {
        true => "",
        false => " and be answered as fast",
    };
    let rate = show(plan.rate_bps);
    writeln!(f, "  every worker can send {rate}{answered}{best}")?;
    if let Some(full) = &plan.full {
        writeln!(f, "  full: {full}")?;
    }
    for part in &plan.parts {
        writeln!(f, "  {}", sums(part))?;
    }
    Ok(())
}

/// Where workers were placed.
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
        0 => "none of which was idle".to_owned(),
        idle => format!("of which {idle} ran nothing"),
    };
    let best = match placed.proven {
        true => "; no placement takes fewer",
        false => "",
    };
    format!("runs on {}{more}, {idle}{best}", on.join(", "))
}

/// What the loss of one switch touches.
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

fn sums(part: &Part) -> String {
    let at = part.on.as_deref().unwrap_or(&part.server);
    let share = match part.share {
        share if share < 1.0 => format!(" of {:.1} %", share * 100.0),
        _ => String::new(),
    };
    let members: Vec<String> = part.members.iter().take(MEMBERS).map(member).collect();
    let more = match part.members.len().checked_sub(MEMBERS) {
        Some(more @ 1..) => format!(" and {more} more"),
        _ => String::new(),
    };
    format!("{at} sums{share} {}{more}", members.join(", "))
}

/// A worker, and the switches that it passes by.
fn member(member: &Member) -> String {
    let passed = member.way.len().saturating_sub(1);
    match member
        .way
        .get(1..passed)
        .filter(|passed| !passed.is_empty())
    {
        Some(passed) => format!("{} (by {})", member.worker, passed.join(", ")),
        None => member.worker.clone(),
    }
}

/// A rate to four digits.
fn show(bps: f64) -> String {
    let digits = 10_f64.powi(bps.max(1.0).log10() as i32 - 3).max(1.0);
    show_rate(((bps / digits).round() * digits) as u64)
}
