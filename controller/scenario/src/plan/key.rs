//! Refuses keys that a target cannot distinguish, or has no cells for.

use super::TargetModel;
use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::selection::Selection;

pub(super) fn check(sink: &mut Sink<'_>, scenario: &Scenario, target: &TargetModel) {
    for fault in &scenario.faults {
        if let Some(keys) = fault.keys.as_ref().filter(|_| !target.numbers_keys) {
            let message = format!(
                "this target cannot number the packets of {}: their cells would be looked for in registers stage by stage, and no text of it is written",
                keys.of
            );
            sink.error(Code::Effect, keys.span, message).hint(match &fault.selection {
                Selection::Psn(_) => "the embedded switch and BMv2 can; on Tofino a flow can have one number as it stands in packets: `roce.psn == 1000`",
                _ => "the embedded switch and BMv2 can; on Tofino a share of keys can be hit: `select: {share: 10%}`",
            });
        }
        if let Selection::Share(share) = &fault.selection
            && share.key.is_both_ways()
            && !target.numbers_keys
        {
            let message = format!(
                "this target cannot take both directions of a connection for one, as fault `{}` asks: the order of the two ends is found by comparing fields, and its gateways compare a field with numbers alone",
                fault.id
            );
            sink.error(Code::Effect, fault.span, message)
                .hint("the embedded switch and BMv2 can; or give each direction a fault of its own: `per: connection`");
        }
    }
}
