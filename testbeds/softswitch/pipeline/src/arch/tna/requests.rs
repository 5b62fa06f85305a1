//! Requests of a packet at the end of ingress: to the traffic manager, the deparser and the packet generator.

use super::half::Half;
use super::multicast::Request;
use crate::arch::region::MetaField;

/// The blocks of ingress, and the metadata fields for the traffic manager and the packet generator.
#[derive(Debug)]
pub(super) struct TnaIngress {
    pub(super) half: Half,
    pub(super) pktgen: MetaField,
    pub(super) pktgen_address: MetaField,
    pub(super) pktgen_length: MetaField,
    pub(super) tm: TmFields,
}

/// Fields of `ingress_intrinsic_metadata_for_tm_t`; the first three are each valid or invalid on their own.
#[derive(Debug, Default)]
pub(super) struct TmFields {
    pub(super) unicast: ValidField,
    pub(super) group_a: ValidField,
    pub(super) group_b: ValidField,
    pub(super) bypass_egress: MetaField,
    pub(super) deflect_on_drop: MetaField,
    pub(super) colour: MetaField,
    pub(super) copy_to_cpu: MetaField,
    pub(super) cos: MetaField,
    pub(super) cos_for_cpu: MetaField,
    pub(super) qid: MetaField,
    pub(super) hash1: MetaField,
    pub(super) hash2: MetaField,
    pub(super) xid: MetaField,
    pub(super) yid: MetaField,
    pub(super) rid: MetaField,
}

/// A metadata field that has its own validity.
#[derive(Debug, Default)]
pub(super) struct ValidField {
    pub(super) field: MetaField,
    pub(super) valid: MetaField,
}

impl ValidField {
    fn get(&self, frame: &[u64]) -> Option<u32> {
        (self.valid.get(frame) != 0).then(|| self.field.get(frame) as u32)
    }
}

impl TnaIngress {
    /// The metadata fields that decide about a packet after ingress. Invalid fields are left out, as are fields about copies if
    /// there is no copy that needs them. `generates`: the deparser has made a header for the packet generator.
    pub(super) fn deciding(
        &self,
        frame: &[u64],
        generates: bool,
    ) -> Vec<(MetaField, &'static str)> {
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
        let has = |own: &ValidField| drop & 1 == 0 && own.get(frame).is_some();
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

    /// The copies that ingress requests from the traffic manager in its metadata.
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
