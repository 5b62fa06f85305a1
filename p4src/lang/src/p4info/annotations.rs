//! Reads the annotations that P4Info evaluates: names, ids, scopes, descriptions.

use super::{ActionScope, StructuredAnnotation};
use crate::ir;
use std::collections::BTreeSet;

pub(crate) fn is_hidden(annotations: &[ir::Annotation]) -> bool {
    annotations.iter().any(|a| a.name == "hidden")
}

/// The integer in the body of the annotation `name`; `None` if there is none.
pub(super) fn integer(annotations: &[ir::Annotation], name: &str) -> Option<u32> {
    let annotation = annotations.iter().find(|a| a.name == name)?;
    match annotation.literals.first()? {
        crate::ast::Literal::Int(value) => u32::try_from(value).ok(),
        _ => None,
    }
}

/// Names of annotations that have their own fields in P4Info.
const SAID: [&str; 4] = ["name", "id", "brief", "description"];

/// Structured annotations (`@name[…]`), without those that have their own fields in P4Info.
pub(super) fn structured(annotations: &[ir::Annotation]) -> Vec<StructuredAnnotation> {
    annotations
        .iter()
        .filter(|a| !SAID.contains(&a.name.as_str()))
        .filter_map(|a| {
            Some(StructuredAnnotation {
                name: a.name.clone(),
                body: a.structured.clone()?,
            })
        })
        .collect()
}

/// Annotations as text, without those that have their own fields in P4Info.
pub(super) fn annotation_texts(annotations: &[ir::Annotation]) -> Vec<String> {
    annotations
        .iter()
        .filter(|a| a.structured.is_none() && !SAID.contains(&a.name.as_str()))
        .map(|a| {
            if a.text.is_empty() {
                format!("@{}", a.name)
            } else {
                format!("@{}({})", a.name, a.text)
            }
        })
        .collect()
}

/// The string of the `@name("…")` annotation, or `name` if there is no such annotation.
pub(super) fn given_name(name: &str, annotations: &[ir::Annotation]) -> String {
    let given = annotations.iter().find(|a| a.name == "name");
    match given.and_then(|a| a.literals.first()) {
        Some(crate::ast::Literal::Str(given)) => given.clone(),
        _ => name.to_owned(),
    }
}

/// P4Info ids of an action's parameters, in order.
pub(super) fn param_ids<'p>(params: impl Iterator<Item = &'p ir::Param>) -> Vec<u32> {
    let given: Vec<_> = params.map(|p| integer(&p.annotations, "id")).collect();
    field_ids(&given)
}

/// Computes ids of fields or parameters: the id given by `@id`, and for the others numbers from 1 that no `@id` takes.
pub(super) fn field_ids(given: &[Option<u32>]) -> Vec<u32> {
    let mut taken: BTreeSet<u32> = given.iter().flatten().copied().collect();
    let mut next = 1u32;
    let number = |id: &Option<u32>| match id {
        Some(id) => {
            next += 1;
            *id
        }
        None => {
            while !taken.insert(next) {
                next += 1;
            }
            next
        }
    };
    given.iter().map(number).collect()
}

pub(super) fn scope(annotations: &[ir::Annotation]) -> ActionScope {
    let has = |name: &str| annotations.iter().any(|a| a.name == name);
    if has("tableonly") {
        ActionScope::TableOnly
    } else if has("defaultonly") {
        ActionScope::DefaultOnly
    } else {
        ActionScope::TableAndDefault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_ids_go_round_those_given() {
        assert_eq!(field_ids(&[None, None]), [1, 2]);
        assert_eq!(field_ids(&[None, Some(1), None]), [2, 1, 3]);
        assert_eq!(field_ids(&[Some(7), None]), [7, 2]);
    }
}
