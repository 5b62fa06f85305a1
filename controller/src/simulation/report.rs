//! The results of a simulation, as text for readers and as JSON.

use std::fmt;

use cluster::simulation::{Direction, End, Member, Outcome, Role, Setup};
use scenario::model::Scenario;
use scenario::units::show_rate;
use serde::Serialize;

/// Maximum number of links that the text lists, the fullest first.
const LINKS: usize = 10;
/// Size of the Ethernet, IPv4 and UDP headers of a frame, in bytes.
const HEADERS: u64 = 14 + 20 + 8;

/// The results of a simulation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The scenario's name.
    pub scenario: String,
    /// Seed of all random draws of the simulation.
    pub seed: u64,
    /// Whether all members (server, workers, ranks) finished.
    pub is_whole: bool,
    /// Time until the last worker or rank had its last answer, in seconds; `None` if one of them never had it.
    pub completed_s: Option<f64>,
    /// Time until the last worker or rank closed its job, in seconds, like `training.took` of a run; `None` if one never did.
    pub closed_s: Option<f64>,
    /// Time until all members had ended, in seconds; a training's members close the job after its last round.
    pub ended_s: f64,
    /// Duration of each round, from the first member's start to the last member's end, in seconds.
    pub rounds_s: Vec<f64>,
    /// Results of each member: a training's server first, then the others by rank.
    pub members: Vec<MemberResult>,
    /// Directions of links that carried frames, the fullest first.
    pub links: Vec<LinkTraffic>,
    /// Number of frames that the scenario's faults dropped.
    pub dropped: u64,
}

/// Results of a member: a server, a worker or a rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemberResult {
    /// Host of the member.
    pub host: String,
    /// Rank of the worker or rank; `None` for the server.
    pub rank: Option<u16>,
    /// Why the member gave up, or that it was still waiting; `None` if it finished.
    pub failed: Option<String>,
    /// When the member ended, in seconds of virtual time.
    pub ended_s: f64,
    /// Number of frames that the member sent.
    pub frames: u64,
    /// Size of the frames that the member sent, in bytes: whole Ethernet frames without FCS.
    pub bytes: u64,
    /// Number of frames in `frames` whose chunk the member had sent before.
    pub retransmitted_frames: u64,
    /// Number of times that a chunk of the member timed out.
    pub timeouts: u64,
    /// Number of answers to the member that a queue had marked (ECN).
    pub marks: u64,
}

/// Traffic in one direction of a link.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LinkTraffic {
    /// Name of the node at which the direction begins.
    pub from: String,
    /// Name of the node at which the direction ends.
    pub to: String,
    /// Rate of the link, in bits per second.
    pub rate_bps: u64,
    /// Size of the frames that crossed the link, in bytes: whole Ethernet frames without FCS.
    pub bytes: u64,
    /// Number of frames that crossed the link.
    pub frames: u64,
    /// Number of frames that were dropped because the link's queue was full.
    pub overflowed: u64,
    /// Number of frames that the link's queue marked (ECN).
    pub marked: u64,
    /// Maximum number of frames that waited in the link's queue at once.
    pub longest_queue: u64,
}

impl Report {
    pub(super) fn new(scenario: &Scenario, setup: &Setup, outcome: &Outcome) -> Report {
        let topology = &scenario.topology;
        let hosts = topology.hosts.iter().map(|host| &host.name);
        let names: Vec<&String> = topology.switches.iter().chain(hosts).collect();
        let members = outcome.members.iter();
        let directions = setup.links.iter().zip(&outcome.links);
        let directions = directions.flat_map(|(link, passed)| {
            let [a, b] = link.ends.map(|end| names[end].clone());
            let there = carried((a.clone(), b.clone()), link.rate.bits_per_s, &passed[0]);
            [there, carried((b, a), link.rate.bits_per_s, &passed[1])]
        });
        let mut links: Vec<LinkTraffic> = directions.filter(|link| link.frames > 0).collect();
        links.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
        Report {
            scenario: scenario.name.clone(),
            seed: setup.seed,
            is_whole: outcome.is_whole(),
            completed_s: outcome.completed_ns().map(|ns| ns as f64 / 1e9),
            closed_s: outcome.closed_ns().map(|ns| ns as f64 / 1e9),
            ended_s: outcome.ended_ns as f64 / 1e9,
            rounds_s: rounds(outcome),
            members: members
                .map(|member| took(member, names[member.host]))
                .collect(),
            links,
            dropped: outcome.dropped,
        }
    }
}

fn rounds(outcome: &Outcome) -> Vec<f64> {
    let working = || {
        let members = outcome.members.iter();
        members.filter(|member| member.role != Role::Server)
    };
    let count = working().map(|member| member.rounds.len()).min();
    let round = |number: usize| {
        let spans = || working().map(|member| member.rounds[number]);
        let start_ns = spans().map(|span| span.start_ns).min().unwrap_or(0);
        let end_ns = spans().map(|span| span.end_ns).max().unwrap_or(0);
        (end_ns - start_ns) as f64 / 1e9
    };
    (0..count.unwrap_or(0)).map(round).collect()
}

fn took(member: &Member, host: &str) -> MemberResult {
    MemberResult {
        host: host.to_owned(),
        rank: match member.role {
            Role::Server => None,
            Role::Rank(rank) => Some(rank),
        },
        failed: match &member.end {
            End::Finished => None,
            End::Failed(why) => Some(why.clone()),
            End::Waiting => Some("it was still waiting after an hour".to_owned()),
        },
        ended_s: member.ended_ns as f64 / 1e9,
        frames: member.sent.frames,
        bytes: member.sent.bytes + member.sent.frames * HEADERS,
        retransmitted_frames: member.sent.retransmitted_frames,
        timeouts: member.timeouts,
        marks: member.marks,
    }
}

fn carried((from, to): (String, String), rate_bps: u64, passed: &Direction) -> LinkTraffic {
    LinkTraffic {
        from,
        to,
        rate_bps,
        bytes: passed.bytes,
        frames: passed.frames,
        overflowed: passed.overflowed,
        marked: passed.marked,
        longest_queue: passed.longest,
    }
}

impl LinkTraffic {
    /// Time to carry the bytes at the link's rate, in seconds.
    fn seconds(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.rate_bps as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.members.iter().filter(|member| member.rank.is_some());
        writeln!(f, "{}, {} members, simulated", self.scenario, count.count())?;
        match self.completed_s {
            Some(seconds) => {
                let closed = self.closed_s.unwrap_or(seconds);
                writeln!(f, "  done after {seconds:.3} s, closed after {closed:.3} s")?;
            }
            None => writeln!(f, "  never done")?,
        }
        let rounds: Vec<String> = self.rounds_s.iter().map(|s| format!("{s:.3}")).collect();
        writeln!(f, "  rounds, s: {}", rounds.join(" "))?;
        let sum = |of: fn(&MemberResult) -> u64| self.members.iter().map(of).sum::<u64>();
        writeln!(
            f,
            "  {} frames sent, {} of them retransmitted; {} chunks timed out; {} frames dropped by faults",
            sum(|member| member.frames),
            sum(|member| member.retransmitted_frames),
            sum(|member| member.timeouts),
            self.dropped
        )?;
        for member in &self.members {
            if let Some(why) = &member.failed {
                writeln!(f, "  {}: {why}", member.host)?;
            }
        }
        writeln!(f, "\nfullest links")?;
        for link in self.links.iter().take(LINKS) {
            let load_bps = link.bytes as f64 * 8.0 / self.ended_s.max(f64::MIN_POSITIVE);
            let ends = format!("{} → {}", link.from, link.to);
            write!(
                f,
                "  {ends:24}  {} bytes, {} of {} on average, {} waiting at most",
                link.bytes,
                show(load_bps),
                show_rate(link.rate_bps),
                link.longest_queue
            )?;
            match (link.overflowed, link.marked) {
                (0, 0) => writeln!(f)?,
                (lost, marked) => writeln!(f, ", {lost} frames lost in it, {marked} marked")?,
            }
        }
        if self.links.len() > LINKS {
            writeln!(f, "           and {} less full", self.links.len() - LINKS)?;
        }
        Ok(())
    }
}

/// Formats a rate in bits per second with three significant digits.
fn show(bps: f64) -> String {
    let digits = 10_f64.powi(bps.max(1.0).log10() as i32 - 2).max(1.0);
    show_rate(((bps / digits).round() * digits) as u64)
}
