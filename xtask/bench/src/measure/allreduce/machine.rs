//! Reads the machine load during a measurement, as context of the measured figures.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::super::files::read;

/// Unit in seconds of the counters in /proc/stat, proc_stat(5).
const TICK_S: f64 = 0.01;

/// Snapshot of the processors' time counters and of the machine load.
pub struct CpuSnapshot {
    busy_s: f64,
    stolen_s: f64,
    all_s: f64,
    load: String,
}

impl CpuSnapshot {
    pub fn now() -> Result<CpuSnapshot> {
        let stat = read("/proc/stat")?;
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
        // user, nice, system, idle, iowait, irq, softirq, steal
        let ticks: Vec<f64> = line
            .context("/proc/stat")?
            .split_whitespace()
            .take(8)
            .map(|word| word.parse::<f64>().map(|ticks| ticks * TICK_S))
            .collect::<Result<_, _>>()?;
        let [.., idle, wait, _, _, stolen] = ticks[..] else {
            anyhow::bail!("/proc/stat: {stat}");
        };
        let all_s: f64 = ticks.iter().sum();
        let load = read("/proc/loadavg")?;
        Ok(CpuSnapshot {
            busy_s: all_s - idle - wait - stolen,
            stolen_s: stolen,
            all_s,
            load: load
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .to_owned(),
        })
    }

    /// Machine load at this snapshot, and the shares of processor time since then that were busy, and that the hypervisor took.
    pub fn usage_since(&self) -> Result<Value> {
        let now = CpuSnapshot::now()?;
        let all_s = (now.all_s - self.all_s).max(TICK_S);
        Ok(json!({
            "load_before": self.load,
            "busy": (now.busy_s - self.busy_s) / all_s,
            "stolen": (now.stolen_s - self.stolen_s) / all_s,
        }))
    }
}

/// Formats the JSON of [`CpuSnapshot::usage_since`] as text for a row's note.
pub fn note(look: &Value) -> String {
    let percent = |name: &str| 100.0 * look[name].as_f64().unwrap_or_default();
    format!(
        "load before {}, processors {:.0} % busy, {:.0} % stolen",
        look["load_before"].as_str().unwrap_or_default(),
        percent("busy"),
        percent("stolen")
    )
}
