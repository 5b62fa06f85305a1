//! Suggestions for a name that is not a field or protocol of this library: in a filter, and where one field is expected.

use super::{Meaning, meaning};
use crate::filter::syntax::{Comparison, Condition, Literal, LiteralKind};
use crate::library::Library;

/// Suggestion for an unknown name, which a filter tests by `condition`.
pub(in crate::filter) fn for_filter(
    library: &Library,
    name: &str,
    condition: &Condition,
) -> Option<String> {
    if name.ends_with(']') {
        return Some("only `tcp.payload` and `udp.payload` have bytes to compare".to_owned());
    }
    let equals = match condition {
        Condition::Compare {
            operator: Comparison::Equal,
            literal,
            ..
        } => number(literal),
        _ => None,
    };
    if let Some(meaning) = meaning(library, name) {
        return Some(match (meaning, equals) {
            (Meaning::Ends([from, to]), _) => {
                let (asked, joined) = match condition {
                    Condition::Compare {
                        operator: Comparison::NotEqual,
                        ..
                    } => (written(condition), "&&"),
                    _ => (written(condition), "||"),
                };
                format!("either end is written `({from}{asked} {joined} {to}{asked})`")
            }
            (Meaning::Flags(flags), Some(value)) if value >> flags.len() == 0 => {
                format!("each flag is a field: write `{}`", exactly(&flags, value))
            }
            (Meaning::Flags(flags), _) => each_flag(&flags),
            (Meaning::TypeOfService, Some(value)) if value < 256 => {
                let (dscp, ecn) = (value >> 2, value & 3);
                format!("it is two fields: write `ip.dscp == {dscp} && ip.ecn == {ecn}`")
            }
            (Meaning::TypeOfService, _) => TYPE_OF_SERVICE.to_owned(),
            (Meaning::Version, Some(4)) => "write `ip` for IPv4".to_owned(),
            (Meaning::Version, Some(6)) => "write `ipv6` for IPv6".to_owned(),
            (Meaning::Version, _) => "write `ip` for IPv4, `ipv6` for IPv6".to_owned(),
            (Meaning::HeaderLength(field), Some(bytes)) if bytes % 4 == 0 => {
                format!(
                    "write `{field} == {}`: it counts words of four bytes",
                    bytes / 4
                )
            }
            (Meaning::HeaderLength(field), _) => header_length(&field),
            (Meaning::Length(counts), _) => format!("write `ip.len`, which {counts}"),
            (Meaning::Protocol(name), _) => format!("write `{name}`"),
            (Meaning::Service(filter), _) => {
                format!("weir does not read it; packets to and from its port are `{filter}`")
            }
            (Meaning::Fields(names), _) => format!("write {}", either(&names)),
            (Meaning::NoField(why), _) => why.to_owned(),
        });
    }
    let protocols = || {
        let protocols = library.protocols().iter();
        protocols.map(|protocol| protocol.filter.as_str())
    };
    let fields = || library.fields().map(|field| field.name);
    if let Some(near) = nearest(library, name, fields().chain(protocols())) {
        return Some(format!("did you mean `{near}`?"));
    }
    let protocol = name.split('.').next().unwrap_or(name);
    Some(match protocols().any(|known| known == protocol) {
        true => of_protocol(protocol, fields()),
        false => {
            "docs/filters.md lists the protocols; one of your own is a file (docs/protocols.md)"
                .to_owned()
        }
    })
}

/// Suggestion for an unknown name where one field is expected, compared with `value`, if any. `fits` accepts allowed fields.
pub(in crate::filter) fn for_field(
    library: &Library,
    name: &str,
    value: Option<u128>,
    fits: &dyn Fn(&str) -> bool,
) -> Option<String> {
    let fitting = |names: Vec<String>| -> Vec<String> {
        names.into_iter().filter(|name| fits(name)).collect()
    };
    let known = meaning(library, name).and_then(|meaning| match (meaning, value) {
        (Meaning::Flags(flags), _) if !fits(&flags[0]) => None,
        (Meaning::Flags(flags), Some(value)) if value >> flags.len() == 0 && value > 0 => {
            let set = bits(&flags, value).filter_map(|(flag, is_set)| is_set.then_some(flag));
            let set: Vec<String> = set.map(|flag| format!("`{flag}: 1`")).collect();
            Some(format!(
                "each flag is a field: write {}, and 0 for flags that must be off",
                set.join(", ")
            ))
        }
        (Meaning::Flags(flags), _) => Some(each_flag(&flags)),
        (Meaning::TypeOfService, _) if !fits("ip.dscp") => None,
        (Meaning::TypeOfService, Some(value)) if value < 256 => {
            let (dscp, ecn) = (value >> 2, value & 3);
            Some(format!(
                "it is two fields: write `ip.dscp: {dscp}` and `ip.ecn: {ecn}`"
            ))
        }
        (Meaning::TypeOfService, _) => Some(TYPE_OF_SERVICE.to_owned()),
        (Meaning::HeaderLength(field), _) => fits(&field).then(|| header_length(&field)),
        (Meaning::Length(counts), _) => {
            fits("ip.len").then(|| format!("the length in a header is `ip.len`, which {counts}"))
        }
        (Meaning::Ends(ends), _) => match fitting(ends.to_vec()).as_slice() {
            [] => None,
            ends => Some(format!("name one end: {}", either(ends))),
        },
        (Meaning::Fields(names), _) => match fitting(names).as_slice() {
            [] => None,
            names => Some(format!("write {}", either(names))),
        },
        (Meaning::NoField(why), _) => Some(why.to_owned()),
        (Meaning::Version | Meaning::Protocol(_) | Meaning::Service(_), _) => None,
    });
    let fields = || {
        let names = library.fields().map(|field| field.name);
        names.filter(|name| fits(name))
    };
    known
        .or_else(|| {
            Some(format!(
                "did you mean `{}`?",
                nearest(library, name, fields())?
            ))
        })
        .or_else(|| {
            let protocol = super::protocol(name.split('.').next().unwrap_or(name));
            let mut own = fields().filter(|field| field.split('.').next() == Some(protocol));
            own.next()?;
            Some(of_protocol(protocol, fields()))
        })
}

const TYPE_OF_SERVICE: &str = "it is two fields: `ip.dscp`, its upper six bits, and `ip.ecn`";

fn header_length(field: &str) -> String {
    format!("write `{field}`, which counts words of four bytes")
}

/// Formats names as `a`, or as `a` or `b`.
fn either(names: &[String]) -> String {
    let ticked = names.iter().map(|name| format!("`{name}`"));
    ticked.collect::<Vec<_>>().join(" or ")
}

fn of_protocol<'a>(protocol: &str, fields: impl Iterator<Item = &'a str>) -> String {
    let own = fields.filter(|field| field.split('.').next() == Some(protocol));
    let own: Vec<&str> = own.collect();
    format!("the fields of `{protocol}` are {}", own.join(", "))
}

fn each_flag(flags: &[String]) -> String {
    let names = flags.iter().map(|flag| format!("`{flag}`"));
    format!(
        "each flag is a field: {}",
        names.collect::<Vec<_>>().join(", ")
    )
}

/// Each flag's field name, and whether its bit is set in `value`; the last flag is the lowest bit.
fn bits(flags: &[String], value: u128) -> impl Iterator<Item = (&str, bool)> {
    let count = flags.len();
    let numbered = flags.iter().enumerate();
    numbered.map(move |(index, flag)| (flag.as_str(), value >> (count - 1 - index) & 1 == 1))
}

/// Filter that matches if exactly the flags in `value` are set.
fn exactly(flags: &[String], value: u128) -> String {
    let (on, off): (Vec<_>, Vec<_>) = bits(flags, value).partition(|(_, is_set)| *is_set);
    let names = |of: Vec<(&str, bool)>| -> Vec<String> {
        of.into_iter().map(|(flag, _)| flag.to_owned()).collect()
    };
    let (mut parts, off) = (names(on), names(off));
    match off.as_slice() {
        [] => {}
        [one] => parts.push(format!("!{one}")),
        several => parts.push(format!("!({})", several.join(" || "))),
    }
    parts.join(" && ")
}

/// Filter that matches if some, all or none of the flags in a mask are set, as in `tcp.flags & 0x12 != 0`.
pub(super) fn masked(flags: &[String], mask: u128, wanted: Mask) -> Option<String> {
    if mask == 0 || mask >> flags.len() != 0 {
        return None;
    }
    let set = bits(flags, mask).filter_map(|(flag, is_set)| is_set.then_some(flag));
    let set: Vec<&str> = set.collect();
    Some(match (set.as_slice(), wanted) {
        ([one], Mask::Some | Mask::All) => (*one).to_owned(),
        ([one], Mask::None) => format!("!{one}"),
        (several, Mask::Some) => format!("({})", several.join(" || ")),
        (several, Mask::None) => format!("!({})", several.join(" || ")),
        (several, Mask::All) => format!("({})", several.join(" && ")),
    })
}

/// How many bits of a mask must be set for a comparison to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mask {
    Some,
    All,
    None,
}

pub(super) fn number_of(word: &str) -> Option<u128> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

fn number(literal: &Literal) -> Option<u128> {
    match &literal.kind {
        LiteralKind::Word(word) => number_of(word),
        LiteralKind::Text(_) => None,
    }
}

/// Condition as written behind a field's name; `…` if there is no condition.
fn written(condition: &Condition) -> String {
    let value = |literal: &Literal| match &literal.kind {
        LiteralKind::Word(word) => word.clone(),
        LiteralKind::Text(bytes) => format!("\"{}\"", bytes.escape_ascii()),
    };
    match condition {
        Condition::Bare => " == …".to_owned(),
        Condition::Compare {
            operator, literal, ..
        } => format!(" {} {}", operator.text(), value(literal)),
        Condition::In { items } => {
            let items = items.iter().map(|item| match &item.high {
                Some(high) => format!("{}..{}", value(&item.low), value(high)),
                None => value(&item.low),
            });
            format!(" in {{{}}}", items.collect::<Vec<_>>().join(", "))
        }
        Condition::StartsWith { literal, .. } => format!(" startswith {}", value(literal)),
    }
}

/// Candidate whose name differs in only one component, and in few letters of it; of several equally near candidates,
/// the one whose beginning and end agree most. A field of another protocol is not taken for a misspelling.
fn nearest<'a>(
    library: &Library,
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let is_protocol = |name: &str| {
        let mut protocols = library.protocols().iter();
        protocols.any(|known| known.filter == super::protocol(name))
    };
    let alike = |candidate: &str| {
        let head = name
            .bytes()
            .zip(candidate.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        let tail = name
            .bytes()
            .rev()
            .zip(candidate.bytes().rev())
            .take_while(|(a, b)| a == b)
            .count();
        head + tail
    };
    let distance = |candidate: &str| {
        if name.split('.').count() != candidate.split('.').count() {
            return None;
        }
        let parts = name.split('.').zip(candidate.split('.'));
        let mut different = parts.filter(|(written, known)| written != known);
        let (Some((written, known)), None) = (different.next(), different.next()) else {
            return None;
        };
        if name.starts_with(written) && is_protocol(written) {
            return None;
        }
        let distance = strsim::osa_distance(written, known);
        let length = written.chars().count();
        // At least one letter must be right.
        let allowed = (length / 3).max(1).min(length.saturating_sub(1));
        (distance <= allowed).then_some(distance)
    };
    candidates
        .filter_map(|candidate| {
            let distance = distance(candidate)?;
            Some((distance, std::cmp::Reverse(alike(candidate)), candidate))
        })
        .min()
        .map(|(_, _, candidate)| candidate)
}
