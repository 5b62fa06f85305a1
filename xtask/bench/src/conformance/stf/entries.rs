//! Turns the names and values of an STF file into entries of our switch's tables.

use super::script::{Call, digits, wide_number};
use p4lang::runtime::{ActionCall, FieldMatch, Match, TableEntry, Value};
use pipeline::{FieldSpec, MatchKind, Switch, TableSpec};

/// The switch's table with this name, or the only table whose name ends with it.
pub fn table<'s>(switch: &'s Switch, name: &str) -> Result<&'s TableSpec, String> {
    find_named(switch.tables(), name, |t| &t.name).map_err(|what| format!("{what} table {name}"))
}

/// The item with exactly this name, otherwise the only item whose name ends with it.
pub fn find_named<'a, T: 'a>(
    all: impl Iterator<Item = &'a T>,
    name: &str,
    name_of: impl Fn(&T) -> &str,
) -> Result<&'a T, &'static str> {
    let all: Vec<&T> = all.filter(|t| name_of(t).ends_with(name)).collect();
    match (all.iter().find(|t| name_of(t) == name), &all[..]) {
        (Some(exact), _) => Ok(exact),
        (None, [only]) => Ok(only),
        (None, []) => Err("no such"),
        (None, _) => Err("more than one"),
    }
}

/// The action of a table, with its arguments, that an STF file names.
pub fn call(table: &TableSpec, call: &Call) -> Result<ActionCall, String> {
    let action = find_named(table.actions.iter(), &call.action, |a| &a.name)
        .map_err(|what| format!("{what} action {} in {}", call.action, table.name))?;
    let params = call
        .args
        .iter()
        .map(|(name, value)| Ok((name.clone(), wide_number(value)?)));
    Ok(ActionCall {
        name: action.name.clone(),
        params: params.collect::<Result<_, String>>()?,
    })
}

/// Table entry for an STF file's `add` command. Exact key fields that the command leaves out are 0.
pub fn entry(
    table: &TableSpec,
    priority: Option<i32>,
    keys: &[(String, String)],
    action: &Call,
) -> Result<TableEntry, String> {
    let mut given: Vec<Option<&str>> = vec![None; table.fields.len()];
    for (name, value) in keys {
        let at = field(&table.fields, name)
            .ok_or_else(|| format!("no key field {name} in {}", table.name))?;
        given[at] = Some(value);
    }
    let mut key = Vec::new();
    for (spec, value) in table.fields.iter().zip(given) {
        let value = match value {
            Some(value) => parse_match(spec, value)?,
            None if spec.kind == MatchKind::Exact => Match::exact(0),
            None => continue,
        };
        key.push(FieldMatch {
            field: spec.name.clone(),
            value,
        });
    }
    Ok(TableEntry {
        table: table.name.clone(),
        key,
        // The largest priority wins; ours start at 1, those of STF files at 0.
        priority: if table.wants_priority() {
            priority.unwrap_or(0) + 1
        } else {
            0
        },
        action: call(table, action)?,
    })
}

/// Index of the key field of this name. `a$0.f` is `a[0].f`; `h.valid` and `h.$valid$` are
/// `h.isValid()`; other names may be suffixes.
fn field(fields: &[FieldSpec], name: &str) -> Option<usize> {
    let name = indexed(name);
    let valid = name
        .strip_suffix(".$valid$")
        .or(name.strip_suffix(".$valid"))
        .or(name.strip_suffix(".valid"))
        .map(|header| [format!("{header}.isValid()"), format!("{header}.$valid$")]);
    let names = std::iter::once(name).chain(valid.into_iter().flatten());
    names.into_iter().find_map(|name| {
        let tail = format!(".{name}");
        let exact = fields.iter().position(|f| f.name == name);
        exact.or_else(|| fields.iter().rposition(|f| f.name.ends_with(&tail)))
    })
}

fn indexed(name: &str) -> String {
    let parts = name.split('.').map(|part| match part.split_once('$') {
        Some((stack, index))
            if !stack.is_empty()
                && !index.is_empty()
                && index.bytes().all(|b| b.is_ascii_digit()) =>
        {
            format!("{stack}[{index}]")
        }
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join(".")
}

fn parse_match(spec: &FieldSpec, text: &str) -> Result<Match, String> {
    match spec.kind {
        // Bits beyond the field are ignored, as in a mask.
        MatchKind::Exact => Ok(Match::exact(&wide_number(text)? & &spec.max())),
        MatchKind::Optional => Ok(Match::optional(wide_number(text)?)),
        MatchKind::Ternary => {
            let (value, mask) = match digits(text) {
                // A decimal number has no digits to omit.
                (_, 10) => (wide_number(text)?, spec.max()),
                _ => parse_masked(text)?,
            };
            let mask = &mask & &spec.max();
            Ok(Match::ternary(&value & &mask, mask))
        }
        MatchKind::Lpm => {
            let (value, prefix_len) = parse_prefix(text)?;
            let prefix_len = prefix_len.min(spec.width);
            let value = &value & &Value::prefix(spec.width, prefix_len);
            Ok(Match::lpm(value, prefix_len))
        }
        MatchKind::Range => {
            let (low, high) = text
                .split_once("->")
                .or(text.split_once(".."))
                .unwrap_or((text, text));
            Ok(Match::range(wide_number(low)?, wide_number(high)?))
        }
    }
}

/// Value and mask of a ternary match in an STF file: written digits count; `*` and missing digits do not.
fn parse_masked(text: &str) -> Result<(Value, Value), String> {
    let (digits, radix) = digits(text);
    let all = match radix {
        16 => 'f',
        8 => '7',
        2 => '1',
        _ => return Err(format!("a ternary value needs a prefix such as 0x: {text}")),
    };
    let mask = |digit: char| if digit == '*' { '0' } else { all };
    let mask: String = digits.chars().map(mask).collect();
    let value = |digits: &str| {
        let value = Value::from_str_radix(digits, radix);
        value.ok_or_else(|| format!("not a value: {text}"))
    };
    Ok((value(&digits.replace('*', "0"))?, value(&mask)?))
}

/// Value and length of a prefix in an STF file: `value/length`, or the digits before the stars.
fn parse_prefix(text: &str) -> Result<(Value, u32), String> {
    if let Some((value, length)) = text.split_once('/') {
        let length = length
            .parse()
            .map_err(|_| format!("not a prefix length: {length}"))?;
        return Ok((wide_number(value)?, length));
    }
    let (digits, radix) = digits(text);
    let bits = match radix {
        2 => 1,
        8 => 3,
        _ => 4,
    };
    let stars = digits.bytes().filter(|b| *b == b'*').count();
    let value = Value::from_str_radix(&digits.replace('*', "0"), radix)
        .ok_or_else(|| format!("not a value: {text}"))?;
    Ok((value, (digits.len() - stars) as u32 * bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, kind: MatchKind, width: u32) -> FieldSpec {
        FieldSpec {
            name: name.into(),
            kind,
            width,
            flips_sign: false,
        }
    }

    #[test]
    fn stars_do_not_count() {
        let field = spec("f", MatchKind::Ternary, 32);
        let ternary = |value, mask| Ok(Match::ternary(value, mask));
        assert_eq!(parse_match(&field, "0x****0202"), ternary(0x0202, 0xffff));
        assert_eq!(parse_match(&field, "0x25**"), ternary(0x2500, 0xff00));
        assert_eq!(parse_match(&field, "0b1*0"), ternary(0b100, 0b101));
        assert_eq!(parse_match(&field, "12"), ternary(12, 0xffff_ffff));
        assert!(parse_match(&field, "1*").is_err());
        let field = spec("f", MatchKind::Lpm, 32);
        let lpm = |value, prefix_len| Ok(Match::lpm(value, prefix_len));
        assert_eq!(parse_match(&field, "0x0a010065"), lpm(0x0a01_0065, 32));
        assert_eq!(parse_match(&field, "0x0a01****"), lpm(0x0a01_0000, 16));
        assert_eq!(parse_match(&field, "0x0a010065/8"), lpm(0x0a00_0000, 8));
    }

    #[test]
    fn field_names_may_be_suffixes() {
        let fields = [
            spec("hdr.extra[0].h", MatchKind::Exact, 8),
            spec("hdr.data.isValid()", MatchKind::Exact, 1),
            spec("meta.x.h", MatchKind::Exact, 8),
        ];
        assert_eq!(field(&fields, "extra$0.h"), Some(0));
        assert_eq!(field(&fields, "data.$valid$"), Some(1));
        assert_eq!(field(&fields, "hdr.data.valid"), Some(1));
        assert_eq!(field(&fields, "x.h"), Some(2));
        assert_eq!(field(&fields, "y"), None);
    }
}
