//! Names in messages and hints.

/// The candidate that a misspelt name most likely meant.
#[must_use]
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // At least one letter must be right.
    let allowed = (name.chars().count() / 3)
        .max(1)
        .min(name.chars().count().saturating_sub(1));
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::osa_distance(&name.to_lowercase(), &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `a`, `b` and `c`.
#[must_use]
pub fn enumerate_names<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
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
    }
}
