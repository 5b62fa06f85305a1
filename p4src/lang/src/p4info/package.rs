//! Builds the program's description from `@pkginfo`, `@platform_property`, `@brief` and `@description`.

use super::{Package, Platform};
use crate::ast::Literal;
use crate::ir::{Annotation, Structured};

/// Builds the program's description from the annotations of the package instance `main`.
pub(super) fn package(annotations: &[Annotation]) -> Package {
    let pkginfo = pairs(annotations, "pkginfo");
    let platform = pairs(annotations, "platform_property");
    let said = |key: &str| find(&pkginfo, key).unwrap_or_default();
    let number = |key: &str| find(&platform, key).and_then(|text| text.parse().ok());
    let (brief, description) = documentation(annotations);
    Package {
        name: said("name"),
        version: said("version"),
        organization: said("organization"),
        contact: said("contact"),
        url: said("url"),
        brief,
        description,
        annotations: super::annotations::annotation_texts(annotations)
            .into_iter()
            .filter(|a| !a.starts_with("@pkginfo") && !a.starts_with("@platform_property"))
            .collect(),
        platform: (!platform.is_empty()).then(|| Platform {
            multicast_group_table_size: number("multicast_group_table_size").unwrap_or(0),
            multicast_group_table_total_replicas: number("multicast_group_table_total_replicas")
                .unwrap_or(0),
            multicast_group_table_max_replicas_per_entry: number(
                "multicast_group_table_max_replicas_per_entry",
            )
            .unwrap_or(0),
        }),
    }
}

/// The texts of `@brief` and `@description`; each is empty without such an annotation.
pub(super) fn documentation(annotations: &[Annotation]) -> (String, String) {
    let said = |name: &str| {
        let annotation = annotations.iter().find(|a| a.name == name);
        match annotation.and_then(|a| a.literals.first()) {
            Some(Literal::Str(text)) => text.clone(),
            _ => String::new(),
        }
    };
    (said("brief"), said("description"))
}

fn find(pairs: &[(String, String)], key: &str) -> Option<String> {
    pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.clone())
}

/// The pairs (key, value) of `@name(k = v, …)` or `@name[k = v, …]`; string values are without their quotes.
fn pairs(annotations: &[Annotation], name: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for annotation in annotations.iter().filter(|a| a.name == name) {
        if let Some(Structured::Map(items)) = &annotation.structured {
            found.extend(items.iter().map(|(key, value)| {
                let value = match value {
                    Literal::Int(n) => n.to_string(),
                    Literal::Str(s) => s.clone(),
                    Literal::Bool(b) => b.to_string(),
                };
                (key.clone(), value)
            }));
            continue;
        }
        for pair in outside_strings(&annotation.text, ',') {
            let mut sides = outside_strings(pair, '=').into_iter();
            if let (Some(key), Some(value)) = (sides.next(), sides.next()) {
                let value = value.trim();
                let bare = value
                    .strip_prefix('"')
                    .and_then(|v| v.strip_suffix('"'))
                    .unwrap_or(value);
                found.push((key.trim().to_owned(), bare.to_owned()));
            }
        }
    }
    found
}

/// The pieces of a text, split at the separators that are outside of string literals.
fn outside_strings(text: &str, separator: char) -> Vec<&str> {
    let (mut inside, mut escaped) = (false, false);
    text.split(|c: char| {
        let cuts = c == separator && !inside;
        match c {
            '"' if !escaped => inside = !inside,
            _ => {}
        }
        escaped = c == '\\' && !escaped;
        cuts
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_inside_strings_do_not_cut() {
        assert_eq!(
            outside_strings(r#"a = "x,y\"," , b = 2"#, ','),
            [r#"a = "x,y\"," "#, " b = 2"]
        );
    }
}
