//! `plan`: who says where gradients are summed.

use super::reader;
use super::shape::{Object, Shape, needed};
use crate::diagnostic::{Sink, Spanned};
use crate::gradient::Planner;
use crate::yaml::Node;

pub(super) static PLAN: Object = Object {
    what: "`plan`",
    keys: &[needed(
        "by",
        Shape::Word(&Planner::NAMES),
        "the planner that says which switches sum a `training`, and which way its frames go",
    )],
};

pub(super) fn read(sink: &mut Sink<'_>, node: &Node) -> Option<Spanned<Planner>> {
    let fields = reader::fields(sink, node, &PLAN)?;
    let node = fields.get("by")?;
    let written = reader::variant(sink, node, "`by`", &Planner::NAMES)?;
    written.nothing(sink);
    let planner = Planner::of(written.name)?;
    Some(Spanned::new(planner, node.span))
}
