//! Reads the workload `idle`: weir starts no programs, only the user's own traffic runs.

use super::RawWorkload;
use crate::diagnostic::Sink;
use crate::file::schema::reader;
use crate::file::schema::shape::{DURATION, Object, needed};
use crate::file::yaml::Node;
use crate::model::workload::Workload;

pub(super) static IDLE: Object = Object {
    what: "`idle`",
    keys: &[needed("for", DURATION, "how long")],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<RawWorkload> {
    let fields = reader::fields(sink, node, &IDLE)?;
    let workload = Workload::Idle {
        for_ns: fields.number(sink, "for")?.value,
    };
    Some(RawWorkload {
        workload,
        hosts: Vec::new(),
        switches: Vec::new(),
        file: None,
    })
}
