//! Lists of names for messages, and suggestions for misspelt names.

use super::{Code, Diagnostic, Sink, Spanned};

/// The candidate that a misspelt name most likely means; `None` if no candidate is near. In a dotted name only one component
/// may be misspelt, because each component carries its own meaning.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let candidates = candidates.into_iter();
    candidates
        .filter_map(|candidate| Some((distance(name, candidate)?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Number of wrong letters of a name compared with a candidate; `None` if the names differ too much for a typo.
fn distance(name: &str, candidate: &str) -> Option<usize> {
    let (name, candidate) = (name.to_lowercase(), candidate.to_lowercase());
    if name.split('.').count() != candidate.split('.').count() {
        return None;
    }
    let parts = name.split('.').zip(candidate.split('.'));
    let mut different = parts.filter(|(written, known)| written != known);
    let Some((written, known)) = different.next() else {
        return Some(0);
    };
    if different.next().is_some() {
        return None;
    }
    // At least one letter must be right.
    let length = written.chars().count();
    let allowed = (length / 3).max(1).min(length.saturating_sub(1));
    let distance = strsim::osa_distance(written, known);
    (distance <= allowed).then_some(distance)
}

/// A list of names for a message: `a`, `b` and `c`.
#[must_use]
pub fn enumerate_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    all(&ticked(names))
}

/// Maximum number of list items that are written out; the rest is only counted.
const FEW: usize = 5;

/// At most five names for a message, and the number of the others: `a`, `b`, `c`, `d`, `e` and 55 more.
#[must_use]
pub fn few_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    few(ticked(names))
}

/// A list for a message: at most five of the items, unchanged, and the number of the others.
#[must_use]
pub fn few(mut listed: Vec<String>) -> String {
    // A single further item is as short as its count.
    if listed.len() > FEW + 1 {
        let more = format!("{} more", listed.len() - FEW);
        listed.truncate(FEW);
        listed.push(more);
    }
    all(&listed)
}

fn ticked<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    names.into_iter().map(|name| format!("`{name}`")).collect()
}

fn all(listed: &[String]) -> String {
    match listed.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// Reports an undeclared name, and suggests the nearest declared name.
pub(crate) fn unknown<'s, 'a>(
    sink: &'s mut Sink<'_>,
    what: &str,
    name: &Spanned<String>,
    candidates: impl Iterator<Item = &'a str> + Clone,
) -> &'s mut Diagnostic {
    let hint = match nearest(&name.value, candidates.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if candidates.clone().next().is_none() => format!("the file declares no {what}"),
        None => format!("declared: {}", few_names(candidates)),
    };
    sink.error(
        Code::UnknownName,
        name.span,
        format!("no {what} is called `{}`", name.value),
    )
    .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_finds_typos_and_nothing_else() {
        let names = ["effect", "select", "flows"];
        assert_eq!(nearest("efect", names), Some("effect"));
        assert_eq!(nearest("slecet", names), Some("select"));
        assert_eq!(nearest("Flow", names), Some("flows"));
        assert_eq!(nearest("colour", names), None);
        let dotted = ["flow.out.sent", "flow.out.longest", "command.cl.exit"];
        assert_eq!(nearest("flow.out.snet", dotted), Some("flow.out.sent"));
        assert_eq!(nearest("flow.ot.sent", dotted), Some("flow.out.sent"));
        for other in [
            "flow.out.p99",
            "command.cl.time",
            "flow.sent",
            "flow.ot.snet",
        ] {
            assert_eq!(nearest(other, dotted), None, "{other}");
        }
    }

    #[test]
    fn of_many_names_five_are_listed() {
        let names: Vec<String> = (1..=60).map(|number| format!("h{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(few_names(names[..3].to_vec()), "`h1`, `h2` and `h3`");
        assert!(few_names(names[..6].to_vec()).ends_with("and `h6`"));
        assert_eq!(few_names(names), "`h1`, `h2`, `h3`, `h4`, `h5` and 55 more");
    }
}
