//! Measures the machine that an experiment runs on, and its load during the run, which may explain late packets.

use std::collections::BTreeMap;
use std::fs;
use std::time::SystemTime;

use serde::Serialize;

/// Kernel and processors of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Name and release of the kernel, such as `Linux 6.18.5`.
    pub kernel: String,
    /// Model name of the first processor.
    pub processor: String,
    /// Number of processors that this process may use.
    pub processors: usize,
}

impl Machine {
    /// Describes the machine that this process runs on.
    pub fn here() -> Machine {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Machine {
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            processor: processor(&read("/proc/cpuinfo")).to_owned(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

fn processor(cpuinfo: &str) -> &str {
    let value = |line: &'static str| move |text: &'_ str| text.starts_with(line);
    let line = cpuinfo.lines().find(|text| value("model name")(text));
    let name = line.and_then(|line| line.split_once(':'));
    name.map_or("unknown", |(_, name)| name.trim())
}

/// Processor time since the machine started, in clock ticks, by use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    busy: u64,
    /// Ticks in `busy` that were spent on interrupts, which belong to no process.
    interrupts: u64,
    stolen: u64,
    all: u64,
    /// Ticks of this process, and of its child processes that have ended.
    own: u64,
}

impl Ticks {
    /// Reads the present counts from /proc.
    fn now() -> Ticks {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let own = own(&read("/proc/self/stat")).unwrap_or_default();
        let all = Ticks::parse(&read("/proc/stat")).unwrap_or_default();
        Ticks { own, ..all }
    }

    /// Parses /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; guests are in user and nice already.
    fn parse(stat: &str) -> Option<Ticks> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let ticks: Vec<u64> = line
            .split_whitespace()
            .map_while(|word| word.parse().ok())
            .take(8)
            .collect();
        let all: u64 = ticks.iter().sum();
        let idle = ticks.get(3)? + ticks.get(4)?;
        let stolen = *ticks.get(7)?;
        Some(Ticks {
            busy: all - idle - stolen,
            interrupts: ticks.get(5)? + ticks.get(6)?,
            stolen,
            all,
            own: 0,
        })
    }
}

/// Sums utime, stime, cutime and cstime, fields 14 to 17 of /proc/self/stat. Field 2 may hold spaces and parentheses.
fn own(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let fields = after_name.split_whitespace().skip(11).take(4);
    fields.map(|field| field.parse::<u64>().ok()).sum()
}

/// Minimum share of processor time used by processes outside the run for a report to blame them; a quiet machine has 0.01.
const OTHERS_LEAST: f64 = 0.10;
/// Share of idle processor time in a run above which no process had to wait for long.
const IDLE_MOST: f64 = 0.50;

/// Counts of processor time before a run, to which those after the run are compared.
pub struct Before {
    ticks: Ticks,
    load: f64,
}

impl Before {
    /// Reads the present counts of processor time.
    pub fn read() -> Before {
        Before {
            ticks: Ticks::now(),
            load: load(),
        }
    }
}

/// Load of the machine during a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MachineLoad {
    /// Share of the processors' time that all processes used, from 0 to 1.
    pub busy_share: f64,
    /// Share of the processors' time that processes outside the run used, from 0 to 1.
    pub others_share: f64,
    /// Share of the processors' time that the hypervisor took for other guests, from 0 to 1.
    pub stolen_share: f64,
    /// Average number of runnable processes in the minute before the run.
    pub load_before: f64,
    /// Scheduling priority of each switch: `real-time`, `high` or `ordinary`.
    pub switch_priorities: BTreeMap<String, String>,
    /// Peak memory of the `weir` process, in bytes.
    pub peak_memory_bytes: u64,
    /// Time from the end of the recording to the judge's verdict, in nanoseconds.
    pub verdict_after_ns: u64,
}

impl MachineLoad {
    /// Computes the load of the machine since `before` was read.
    pub fn since(before: &Before, switch_priorities: BTreeMap<String, String>) -> MachineLoad {
        let now = Ticks::now();
        let passed = |of: fn(&Ticks) -> u64| of(&now).saturating_sub(of(&before.ticks));
        let all = passed(|ticks| ticks.all).max(1) as f64;
        let busy = passed(|ticks| ticks.busy);
        let ours = passed(|ticks| ticks.own) + passed(|ticks| ticks.interrupts);
        MachineLoad {
            busy_share: busy as f64 / all,
            others_share: busy.saturating_sub(ours) as f64 / all,
            stolen_share: passed(|ticks| ticks.stolen) as f64 / all,
            load_before: before.load,
            switch_priorities,
            peak_memory_bytes: peak_memory_bytes(),
            verdict_after_ns: 0,
        }
    }

    /// Whether processors were scarce because of other processes or guests: late packets then say nothing about the faults.
    pub fn is_of_others(&self) -> bool {
        let idle_share = 1.0 - self.busy_share - self.stolen_share;
        self.others_share + self.stolen_share >= OTHERS_LEAST && idle_share < IDLE_MOST
    }
}

/// Peak memory of this process in bytes, from `VmHWM:     1234 kB` in proc_pid_status(5); 0 if the kernel does not report it.
fn peak_memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0) * 1024
}

/// Number of runnable processes, averaged over the last minute.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

/// The current time, as `2026-11-23T08:15:00Z`.
pub fn date() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    rfc3339(since.map_or(0, |since| since.as_secs()))
}

/// Formats seconds since 1970 as a UTC time. Years are counted from March on, so that a leap day is a year's last day.
fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days since 1 March of year 0; 146,097 days are 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = 400 * era + year + carry;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3_600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_read_from_the_line_of_all_processors() {
        let stat = "cpu  100 5 30 800 60 0 5 40 7 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let ticks = Ticks::parse(stat);
        let expected = Ticks {
            busy: 140,
            interrupts: 5,
            stolen: 40,
            all: 1040,
            own: 0,
        };
        assert_eq!(ticks, Some(expected));
        assert_eq!(Ticks::parse("cpu 1 2 3\n"), None);
    }

    #[test]
    fn own_time_is_read_behind_the_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 95 10 0 0 20 3 100 4 20 0 1 0 5";
        assert_eq!(own(stat), Some(127));
        assert_eq!(own(""), None);
    }

    #[test]
    fn what_this_process_does_is_not_by_others() {
        let before = Before::read();
        let mut work = 0_u64;
        while Ticks::now().own < before.ticks.own + 20 {
            work = work.wrapping_add(1);
        }
        let load = MachineLoad::since(&before, BTreeMap::new());
        assert!(load.busy_share > 0.0 && work > 0);
        assert!(load.others_share < load.busy_share, "{load:?}");
    }

    #[test]
    fn others_are_to_blame_where_they_left_too_little() {
        let load = |busy_share, others_share, stolen_share| MachineLoad {
            busy_share,
            others_share,
            stolen_share,
            ..MachineLoad::default()
        };
        assert!(load(1.0, 0.85, 0.0).is_of_others());
        assert!(load(0.7, 0.0, 0.2).is_of_others(), "the machine below");
        assert!(!load(1.0, 0.02, 0.01).is_of_others(), "the run itself");
        assert!(!load(0.4, 0.3, 0.0).is_of_others(), "enough was left");
    }

    #[test]
    fn dates_know_leap_days() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_799, "2000-02-29T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_795_421_700, "2026-11-23T08:15:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), date);
        }
    }

    #[test]
    fn the_processor_has_a_name() {
        assert_eq!(processor("x : y\nmodel name\t: Xeon 7\n"), "Xeon 7");
        assert_eq!(processor(""), "unknown");
    }
}
