//! The traffic manager: makes unicast, multicast (by two trees), CPU and mirrored copies, independently of each other.
//!
//! A tree has two levels. Its nodes (L1) have a replication id and optionally an exclusion id (XID); a packet whose
//! `level1_exclusion_id` equals it skips the node. A node's ports and LAGs (L2) are skipped if the packet's `rid` is the
//! node's and its `level2_exclusion_id` prunes the port.

use super::Tna;
use crate::arch::core::Core;
use crate::arch::tofino::MirrorSession;
use crate::queues::Waited;
use crate::stats::DropReason;

/// The destinations and queueing data that ingress or a mirror session requests for a packet's copies.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Request {
    pub(crate) unicast: Option<u32>,
    pub(crate) groups: [Option<u32>; 2],
    pub(crate) copy_to_cpu: bool,
    pub(crate) bypass: bool,
    pub(crate) deflects: bool,
    pub(crate) colour: u64,
    pub(crate) cos: u64,
    pub(crate) cos_for_cpu: u64,
    pub(crate) qid: u64,
    pub(crate) hashes: [u64; 2],
    pub(crate) xid: u16,
    pub(crate) yid: u16,
    pub(crate) rid: u16,
}

impl Request {
    pub(super) fn is_empty(&self) -> bool {
        self.unicast.is_none() && self.groups == [None; 2] && !self.copy_to_cpu
    }
}

/// A copy of a packet on its way to egress, with its intrinsic metadata.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EgressCopy {
    pub(crate) port: u32,
    pub(crate) rid: u16,
    /// Whether the copy is the first that its multicast node makes.
    pub(crate) rid_first: bool,
    pub(crate) qid: u64,
    pub(crate) cos: u64,
    pub(crate) bypass: bool,
    pub(crate) passes: u32,
    /// Color of the copy, as in `MeterColor_t`.
    pub(crate) colour: u64,
    /// Whether the copy goes to the deflection queue if its own queue refuses it.
    pub(crate) deflects: bool,
    /// Whether the copy went to the deflection queue.
    pub(crate) deflected: bool,
    /// Times and queue lengths of the copy's stay in its queue.
    pub(crate) waited: Waited,
    /// Congestion of the copy's queue (0 none to 3 extreme) when the copy joined it, and when it left.
    pub(crate) congestion: (u64, u64),
}

fn pick<T>(members: &[T], hash: u64) -> Option<&T> {
    let at = hash.checked_rem(members.len() as u64)?;
    members.get(at as usize)
}

impl Tna {
    /// Sends all copies that a request asks for to egress: unicast, both multicast trees, CPU.
    pub(super) fn replicate(
        &self,
        core: &mut Core,
        now_ns: u64,
        request: &Request,
        bytes: &[u8],
        passes: u32,
    ) {
        let copy = EgressCopy {
            qid: request.qid,
            cos: request.cos,
            bypass: request.bypass,
            colour: request.colour,
            passes,
            ..EgressCopy::default()
        };
        let mut made = 0;
        if let Some(port) = request.unicast {
            made += 1;
            let deflects = request.deflects;
            let copy = EgressCopy {
                port,
                deflects,
                ..copy
            };
            self.enqueue(core, now_ns, copy, bytes);
        }
        for group in request.groups.into_iter().flatten() {
            let copies = core.multicast_copies(group, request, copy);
            if copies.is_none() {
                core.stats.drop(DropReason::EmptyGroup);
            }
            made += copies.as_ref().map_or(1, Vec::len);
            for copy in copies.unwrap_or_default() {
                self.enqueue(core, now_ns, copy, bytes);
            }
        }
        if request.copy_to_cpu {
            let port = core.tofino.cpu_port(core.config.cpu_port);
            let cos = request.cos_for_cpu;
            made += 1;
            let copy = EgressCopy {
                port,
                cos,
                rid_first: true,
                ..copy
            };
            self.enqueue(core, now_ns, copy, bytes);
        }
        // No copy was requested, or exclusions pruned all of them.
        if made == 0 {
            core.stats.drop(DropReason::EmptyGroup);
        }
        core.stats.copied(made);
    }

    /// Sends a copy of a packet to the destinations of a mirror session, with the mirror header in front.
    pub(super) fn mirror(
        &self,
        core: &mut Core,
        now_ns: u64,
        session: u64,
        bytes: &[u8],
        passes: u32,
    ) {
        let id = u32::try_from(session).unwrap_or(u32::MAX);
        if let Some(session) = core.tofino.mirror_session(id).cloned() {
            let MirrorSession {
                port,
                groups,
                copy_to_cpu,
                rid,
                exclusion,
                hashes,
                qid,
                cos,
                colour,
                max_length,
            } = session;
            let request = Request {
                unicast: port,
                groups: groups.map(|g| g.map(u32::from)),
                copy_to_cpu,
                rid,
                xid: exclusion.0,
                yid: exclusion.1,
                hashes: hashes.map(u64::from),
                qid: qid.into(),
                cos: cos.into(),
                cos_for_cpu: cos.into(),
                colour: colour.into(),
                bypass: false,
                deflects: false,
            };
            let length = max_length.map_or(bytes.len(), |n| bytes.len().min(n as usize));
            self.replicate(core, now_ns, &request, &bytes[..length], passes);
            return;
        }
        // Sessions that P4Runtime created; 0 is reserved.
        let found = (id != 0).then(|| core.replication.session(id, core.config.cpu_port));
        let Some(session) = found.flatten().filter(|s| !s.replicas.is_empty()) else {
            core.stats.drop(DropReason::NoSession);
            return;
        };
        core.stats.copied(session.replicas.len());
        for replica in session.replicas.iter() {
            let copy = EgressCopy {
                port: core.tofino.port_of(replica.port, core.config.cpu_port),
                rid: replica.instance,
                cos: session.class.into(),
                passes,
                ..EgressCopy::default()
            };
            self.enqueue(core, now_ns, copy, session.cut(bytes));
        }
    }
}

impl Core {
    /// The copies of a multicast tree, node by node; `None` if the tree does not exist or is empty.
    fn multicast_copies(
        &self,
        group: u32,
        request: &Request,
        copy: EgressCopy,
    ) -> Option<Vec<EgressCopy>> {
        let mut copies = Vec::new();
        let Some(tree) = self.tofino.tree(group) else {
            // A group that P4Runtime created: one node per replica.
            let replicas = self.replication.group(group).filter(|r| !r.is_empty())?;
            for replica in replicas.iter() {
                let port = self.tofino.port_of(replica.port, self.config.cpu_port);
                let (rid, rid_first) = (replica.instance, true);
                if request.rid != rid || !self.tofino.prunes(request.yid, port) {
                    copies.push(EgressCopy {
                        port,
                        rid,
                        rid_first,
                        ..copy
                    });
                }
            }
            return Some(copies);
        };
        let chosen = tree.ecmp.iter();
        let chosen = chosen.filter_map(|nodes| pick(nodes, request.hashes[0]));
        for node in tree.nodes.iter().chain(chosen) {
            if node.xid == Some(request.xid) {
                continue;
            }
            let lags = node.lags.iter();
            let lags = lags.filter_map(|ports| pick(ports, request.hashes[1]));
            let mut rid_first = true;
            for port in node.ports.iter().chain(lags) {
                if request.rid == node.rid && self.tofino.prunes(request.yid, *port) {
                    continue;
                }
                let first = std::mem::take(&mut rid_first);
                copies.push(EgressCopy {
                    port: *port,
                    rid: node.rid,
                    rid_first: first,
                    ..copy
                });
            }
        }
        Some(copies)
    }
}
