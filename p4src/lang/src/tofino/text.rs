//! Formats the resource report as text for people.

use std::fmt;

use super::Report;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for pipe in &self.pipes {
            writeln!(f, "{} on {}, lower bounds", pipe.name, self.limits.name)?;
            writeln!(
                f,
                "{:32} {:>6} {:>9} {:>6}  costliest line",
                "", "used", "available", "share"
            )?;
            for item in &pipe.items {
                let available = item
                    .available
                    .map_or_else(|| "?".to_owned(), |a| a.to_string());
                let share = item
                    .share()
                    .map_or_else(String::new, |s| format!("{:.1}%", s * 100.0));
                write!(
                    f,
                    "{:32} {:>6} {available:>9} {share:>6}",
                    item.name, item.used
                )?;
                match &item.most {
                    Some((at, amount)) if item.used > 0 => {
                        writeln!(f, "  {}:{} ({amount})", at.file, at.line)?
                    }
                    _ => writeln!(f)?,
                }
            }
            writeln!(
                f,
                "stages: at least {} by resources, {} with dependencies",
                pipe.stages_by_resources, pipe.stages
            )?;
            writeln!(f, "passes per packet: at least {}", pipe.passes)?;
            writeln!(f, "the longest chain of dependencies:")?;
            for (stage, what, at) in &pipe.critical_path {
                writeln!(f, "  {stage:3}  {what}  {}:{}", at.file, at.line)?;
            }
        }
        Ok(())
    }
}
