//! Refuses a fault's keys (`per`, such as connections) that a target cannot distinguish, or for which it has no register cells.

use super::TargetModel;
use crate::diagnostic::{Code, Sink};
use crate::model::Scenario;
use crate::model::selection::Selection;

pub(super) fn check(sink: &mut Sink<'_>, scenario: &Scenario, target: &TargetModel) {
    for fault in &scenario.faults {
        if let Some(keys) = fault.keys.as_ref().filter(|_| !target.numbers_keys) {
            let message = format!(
                "this target cannot count the packets of {}: weir does not generate code that stores a counter per key there",
                keys.of
            );
            sink.error(Code::Effect, keys.span, message).hint(match &fault.selection {
                Selection::Psn(_) => "use the embedded switch or BMv2; on Tofino, the filter of a flow can name one sequence number: `roce.psn == 1000`",
                _ => "use the embedded switch or BMv2; on Tofino, a fault can select a share of the keys: `select: {share: 10%}`",
            });
        }
        if let Selection::Share(share) = &fault.selection
            && share.key.is_both_ways()
            && !target.numbers_keys
        {
            let message = format!(
                "this target cannot count both directions of a connection together, as fault `{}` asks: it cannot compare two header fields with each other",
                fault.id
            );
            sink.error(Code::Effect, fault.span, message)
                .hint("use the embedded switch or BMv2; or declare one fault per direction with `per: connection`");
        }
    }
}
