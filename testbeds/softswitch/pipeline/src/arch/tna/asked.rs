//! Requests of a packet at the end of ingress: to the traffic manager, the deparser and the packet generator.

use super::half::Half;
use super::multicast::Request;
use crate::arch::region::Field;

/// The blocks of ingress, and their results other than the packet.
#[derive(Debug)]
pub(super) struct Ingress {
    pub(super) half: Half,
    pub(super) pktgen: Field,
    pub(super) pktgen_address: Field,
    pub(super) pktgen_length: Field,
    pub(super) tm: ForTm,
}

/// Fields of `ingress_intrinsic_metadata_for_tm_t`; the first three with their validities.
#[derive(Debug, Default)]
pub(super) struct ForTm {
    pub(super) unicast: Own,
    pub(super) group_a: Own,
    pub(super) group_b: Own,
    pub(super) bypass_egress: Field,
    pub(super) deflect_on_drop: Field,
    pub(super) colour: Field,
    pub(super) copy_to_cpu: Field,
    pub(super) cos: Field,
    pub(super) cos_for_cpu: Field,
    pub(super) qid: Field,
    pub(super) hash1: Field,
    pub(super) hash2: Field,
    pub(super) xid: Field,
    pub(super) yid: Field,
    pub(super) rid: Field,
}

/// A field and its validity.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) field: Field,
    pub(super) valid: Field,
}

impl Own {
    fn get(&self, frame: &[u64]) -> Option<u32> {
        (self.valid.get(frame) != 0).then(|| self.field.get(frame) as u32)
    }
}

impl Ingress {
    /// The fields that decide about a packet after ingress: fields with a validity only if valid, and fields about copies
    /// only if there are copies that need them. `generates`: the deparser has made a header for the packet generator.
    pub(super) fn deciding(&self, frame: &[u64], generates: bool) -> Vec<(Field, &'static str)> {
        let tm = &self.tm;
        let mut fields = vec![(self.half.drop_ctl.bits(3), "drop_ctl")];
        if generates {
            fields.push((self.pktgen, "pktgen"));
            if self.pktgen.get(frame) != 0 {
                let place = [
                    (self.pktgen_address, "pktgen_address"),
                    (self.pktgen_length, "pktgen_length"),
                ];
                fields.extend(place);
            }
        }
        let drop = self.half.drop_ctl.get(frame);
        let has = |own: &Own| drop & 1 == 0 && own.get(frame).is_some();
        let (unicast, groups) = (has(&tm.unicast), has(&tm.group_a) || has(&tm.group_b));
        let mut to_cpu = false;
        if drop & 2 == 0 {
            fields.push((tm.copy_to_cpu, "copy_to_cpu"));
            to_cpu = tm.copy_to_cpu.get(frame) != 0;
        }
        if unicast {
            let decisive = [
                (tm.unicast.field, "ucast_egress_port"),
                (tm.deflect_on_drop, "deflect_on_drop"),
            ];
            fields.extend(decisive);
        }
        for (group, name) in [(&tm.group_a, "mcast_grp_a"), (&tm.group_b, "mcast_grp_b")] {
            if has(group) {
                fields.push((group.field, name));
            }
        }
        if groups {
            let decisive = [
                (tm.hash1, "level1_mcast_hash"),
                (tm.hash2, "level2_mcast_hash"),
                (tm.xid, "level1_exclusion_id"),
                (tm.yid, "level2_exclusion_id"),
                (tm.rid, "rid"),
            ];
            fields.extend(decisive);
        }
        if unicast || groups || to_cpu {
            let decisive = [
                (tm.bypass_egress, "bypass_egress"),
                (tm.qid, "qid"),
                (tm.colour, "packet_color"),
            ];
            fields.extend(decisive);
        }
        fields
    }

    /// The request of ingress to the traffic manager.
    pub(super) fn request(&self, frame: &[u64]) -> Request {
        let tm = &self.tm;
        Request {
            unicast: tm.unicast.get(frame),
            groups: [tm.group_a.get(frame), tm.group_b.get(frame)],
            copy_to_cpu: tm.copy_to_cpu.get(frame) != 0,
            bypass: tm.bypass_egress.get(frame) != 0,
            deflects: tm.deflect_on_drop.get(frame) != 0,
            colour: tm.colour.get(frame),
            cos: tm.cos.get(frame),
            cos_for_cpu: tm.cos_for_cpu.get(frame),
            qid: tm.qid.get(frame),
            hashes: [tm.hash1.get(frame), tm.hash2.get(frame)],
            xid: tm.xid.get(frame) as u16,
            yid: tm.yid.get(frame) as u16,
            rid: tm.rid.get(frame) as u16,
        }
    }
}
