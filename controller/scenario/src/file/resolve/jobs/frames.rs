//! Chooses the number of values in the frames of each job.

use parser_gen::FrameValues;

use crate::diagnostic::{Code, Sink};
use crate::file::schema::Raw;
use crate::model::job::{HEADERS, Job, ROCE_HEADERS, Transport};
use crate::model::topology::{Link, Topology};

/// Sets the number of values in the frames of each job: the declared number, or else the largest number that fits all links.
/// Jobs without a declared number share one number, because a switch's program sums frames of one size.
pub(super) fn frame_values(sink: &mut Sink<'_>, raw: &Raw, jobs: &mut [Job]) {
    let narrowest: Vec<Option<&Link>> = jobs
        .iter()
        .map(|job| narrowest(&raw.topology, job))
        .collect();
    let silent = jobs.iter().zip(&narrowest);
    let silent = silent.filter(|(job, _)| job.values_span.is_none() && !job.is_rdma());
    let mtu = silent
        .filter_map(|(_, link)| Some(link.as_ref()?.mtu))
        .min();
    let most = mtu.map_or(FrameValues::default(), largest_within);
    for (job, narrowest) in jobs.iter_mut().zip(narrowest) {
        let span = match job.values_span {
            Some(span) => span,
            // With RDMA, a packet is a message, and all messages have one size.
            None if job.is_rdma() => job.transport.span,
            None => {
                job.values = most;
                continue;
            }
        };
        let bytes = match job.transport.value {
            Transport::Udp => packet_bytes(job.values),
            Transport::Rdma => ROCE_HEADERS + 4 * u32::from(job.values.count()),
        };
        if let Some(link) = narrowest.filter(|link| link.mtu < bytes) {
            let [a, b] = &link.ends;
            let wants = match job.transport.value {
                Transport::Udp => "has",
                Transport::Rdma => "over RoCEv2 has",
            };
            let message = format!(
                "a packet of {} values {wants} {bytes} bytes, but the MTU of the link between `{a}` and `{b}` is {}",
                job.values.count(),
                link.mtu
            );
            let hint = match job.transport.value {
                Transport::Udp => format!(
                    "write `mtu: 9000` for the link, or `values: {}` for the job",
                    largest_within(link.mtu).count()
                ),
                Transport::Rdma => format!("write `mtu: {bytes}` or more for the link"),
            };
            sink.error(Code::Capacity, span, message).hint(hint);
        }
    }
    for (index, job) in jobs.iter().enumerate() {
        let meets = |other: &&Job| {
            let mut here = other.tree.iter();
            other.values != job.values && here.any(|summing| job.on(&summing.switch).is_some())
        };
        if let Some(other) = jobs[..index].iter().find(meets) {
            let message = format!(
                "jobs `{}` and `{}` share a switch, which sums frames of only one size, but their frames have {} and {} values",
                other.name,
                job.name,
                other.values.count(),
                job.values.count()
            );
            sink.error(
                Code::Contradiction,
                job.values_span.unwrap_or(job.span),
                message,
            )
            .hint("write the same `values` in both jobs");
        }
    }
}

/// Length in bytes of an aggregation packet with this many values, from the IP header on.
fn packet_bytes(values: FrameValues) -> u32 {
    HEADERS + 4 * u32::from(values.count())
}

/// The largest number of values with which an aggregation packet has at most `mtu` bytes.
fn largest_within(mtu: u32) -> FrameValues {
    let mut all = FrameValues::ALL.into_iter().rev();
    // A link's MTU is at least 576.
    all.find(|values| packet_bytes(*values) <= mtu)
        .unwrap_or(FrameValues::V32)
}

/// The link with the smallest MTU on the paths between a job's ranks and its root switch.
fn narrowest<'t>(topology: &'t Topology, job: &Job) -> Option<&'t Link> {
    let links = job.ranks.iter().flat_map(|rank| {
        let way = topology.way_up(rank, job.top()).unwrap_or_default();
        let nodes = std::iter::once(rank.as_str()).chain(way);
        let nodes: Vec<&str> = nodes.collect();
        let pairs = nodes
            .windows(2)
            .filter_map(|pair| topology.link(pair[0], pair[1]));
        pairs.collect::<Vec<&'t Link>>()
    });
    links.min_by_key(|link| link.mtu)
}
