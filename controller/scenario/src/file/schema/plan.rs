//! Reads the section `plan`: the planner that decides which switches sum gradients.

use planner::Method;

use super::reader;
use super::shape::{Object, Shape, needed};
use crate::diagnostic::{Sink, Spanned};
use crate::file::yaml::Node;

pub(super) static PLAN: Object = Object {
    what: "`plan`",
    keys: &[needed(
        "by",
        Shape::Word(&Method::INSTALLED),
        "the planner that chooses the switches that sum a `training`, and the paths of its frames; `grid` counts answers, `grid-push` only what workers send",
    )],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<Spanned<Method>> {
    let fields = reader::fields(sink, node, &PLAN)?;
    let planner = Method::from_name(fields.word(sink, "by")?)?;
    Some(Spanned::new(planner, fields.get("by")?.span))
}
