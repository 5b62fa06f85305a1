//! Elements of messages: the parts of an application message behind the headers, some of which have no fixed length.

use super::FieldType;
use super::schema::ElementFile;

/// Maximum length in bytes of a fixed text, or of a counted text with elements behind it: one value of a table's key.
const MAX_COUNTED: usize = 16;
/// Maximum length in bytes of a counted text at the end of a message, or of a text that a byte ends.
const MAX_TEXT: usize = 64;
/// Maximum number of digits of a decimal number, and of bytes of a varint.
const MAX_NUMERAL: usize = 4;

/// Element of an application message: a literal, a number or a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    pub kind: Kind,
    /// Whether the text consists of DNS labels; filters write their lengths as dots.
    pub labels: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Exactly these bytes; if the message has other bytes, its parse ends here.
    Literal(Vec<u8>),
    /// Big-endian number of `bits` bits, whole bytes.
    ///
    /// `signed`: the number is signed; no element follows a negative number.
    Number { bits: u32, signed: bool },
    /// Decimal digits, at most `max`, without a leading zero, and the byte `end` that ends them.
    Decimal { max: usize, end: u8 },
    /// Number in seven bits per byte, lowest first, top bit set if more bytes follow; as few bytes as possible, at most `max`.
    Varint { max: usize },
    /// Text of this fixed number of bytes.
    Fixed(usize),
    /// Text whose length in bytes is the number before it minus `less`. `walked`: elements follow; at most `max` bytes.
    Counted { less: u32, max: usize, walked: bool },
    /// Text up to one of the bytes `ends`, which is consumed too. No element follows behind one of `stops`, a subset of `ends`.
    Until {
        ends: Vec<u8>,
        stops: Vec<u8>,
        max: usize,
    },
}

impl Kind {
    /// Maximum length of the text in bytes; 0 for an element that is not a text.
    pub fn max_bytes(&self) -> usize {
        match self {
            Kind::Fixed(max) | Kind::Counted { max, .. } | Kind::Until { max, .. } => *max,
            _ => 0,
        }
    }

    /// Bytes that end the text; empty for an element that no byte ends.
    pub fn ends(&self) -> &[u8] {
        match self {
            Kind::Until { ends, .. } => ends,
            _ => &[],
        }
    }

    /// Width in bits of the element's number as filters compare it.
    pub fn bits(&self) -> u32 {
        match self {
            Kind::Number { bits, .. } => *bits,
            // 9999 needs 14 bits.
            Kind::Decimal { max, .. } => [4, 7, 10, 14][(*max - 1).min(3)],
            Kind::Varint { max } => 7 * *max as u32,
            _ => 0,
        }
    }

    /// Largest value of the element's number for which elements may follow; 0 for an element that is not a number.
    fn most(&self) -> u64 {
        match self {
            Kind::Number { bits, signed } => u64::MAX >> (64 - *bits + u32::from(*signed)),
            Kind::Decimal { max, .. } => 10_u64.pow(*max as u32) - 1,
            Kind::Varint { max } => (1 << (7 * *max)) - 1,
            _ => 0,
        }
    }

    fn is_number(&self) -> bool {
        matches!(
            self,
            Kind::Number { .. } | Kind::Decimal { .. } | Kind::Varint { .. }
        )
    }
}

/// Parses an element of a protocol file: its name, kind and field type, or an error message.
pub(super) fn element(
    file: &ElementFile,
    before: Option<(&str, &Kind)>,
    is_last: bool,
) -> Result<(String, Element, FieldType), String> {
    let mut kinds = [
        ("literal", &file.literal),
        ("number", &file.number),
        ("decimal", &file.decimal),
        ("varint", &file.varint),
        ("text", &file.text),
    ]
    .into_iter()
    .filter_map(|(kind, value)| value.as_ref().map(|value| (kind, value)));
    let (Some((kind, name)), None) = (kinds.next(), kinds.next()) else {
        return Err(
            "an element must be `literal`, `number`, `decimal`, `varint` or `text`".to_owned(),
        );
    };
    let allowed: &[&str] = match kind {
        "literal" => &[],
        "number" => &["bits", "signed"],
        "decimal" => &["max", "until"],
        "varint" => &["max"],
        _ => &[
            "bytes",
            "max",
            "until",
            "until_last",
            "length",
            "less",
            "ignore_case",
            "labels",
        ],
    };
    let given = [
        ("bits", file.bits.is_some()),
        ("bytes", file.bytes.is_some()),
        ("max", file.max.is_some()),
        ("signed", file.signed),
        ("until", file.until.is_some()),
        ("until_last", file.until_last.is_some()),
        ("length", file.length.is_some()),
        ("less", file.less > 0),
        ("ignore_case", file.ignore_case),
        ("labels", file.labels),
    ];
    for (key, _) in given.iter().filter(|(_, given)| *given) {
        if !allowed.contains(key) {
            return Err(format!("`{name}`: a {kind} has no `{key}`"));
        }
    }
    let max = |limit: usize| match file.max {
        Some(max) if (1..=limit).contains(&max) => Ok(max),
        _ => Err(format!("`{name}`: `max` must be 1 to {limit}")),
    };
    let ends = |of: &Option<Vec<String>>| -> Result<Vec<u8>, String> {
        let ends = of.iter().flatten();
        let single = |end: &String| match end.as_bytes() {
            [byte] => Ok(*byte),
            _ => Err(format!("`{name}`: each of `until` must be one byte")),
        };
        ends.map(single).collect()
    };
    let parsed = match kind {
        "literal" if (1..=16).contains(&name.len()) => Kind::Literal(name.clone().into_bytes()),
        "literal" => return Err("a literal must have 1 to 16 bytes".to_owned()),
        "number" => match file.bits {
            Some(bits @ (8 | 16 | 24 | 32 | 48 | 64)) => Kind::Number {
                bits,
                signed: file.signed,
            },
            _ => return Err(format!("`{name}`: `bits` must be 8, 16, 24, 32, 48 or 64")),
        },
        "decimal" => match ends(&file.until)?.as_slice() {
            [end] if !end.is_ascii_digit() => Kind::Decimal {
                max: max(MAX_NUMERAL)?,
                end: *end,
            },
            _ => {
                return Err(format!(
                    "`{name}`: `until` must be the one byte that ends the digits"
                ));
            }
        },
        "varint" => Kind::Varint {
            max: max(MAX_NUMERAL)?,
        },
        _ => match (file.bytes, &file.length, &file.until) {
            (Some(bytes @ 1..=MAX_COUNTED), None, None) => Kind::Fixed(bytes),
            (None, Some(length), None) => match before {
                Some((number, kind)) if number == length && kind.is_number() => {
                    let most = kind.most();
                    let longest = most.saturating_sub(file.less.into());
                    if longest == 0 {
                        return Err(format!(
                            "`{name}`: `less: {}` leaves no bytes: `{length}` is at most {most}",
                            file.less
                        ));
                    }
                    let max = max(if is_last { MAX_TEXT } else { MAX_COUNTED })?;
                    Kind::Counted {
                        less: file.less,
                        max: usize::try_from(longest).map_or(max, |longest| max.min(longest)),
                        walked: !is_last,
                    }
                }
                _ => {
                    return Err(format!(
                        "`{name}`: `length: {length}` must name the number before it; only literals may stand between"
                    ));
                }
            },
            (None, None, Some(until)) if !until.is_empty() => {
                let stops = ends(&file.until_last)?;
                Kind::Until {
                    ends: [ends(&file.until)?, stops.clone()].concat(),
                    stops,
                    max: max(MAX_TEXT)?,
                }
            }
            _ => {
                return Err(format!(
                    "`{name}`: a text needs `bytes` (1 to {MAX_COUNTED}), `length` and `max`, or `until` and `max`"
                ));
            }
        },
    };
    if file.labels && !matches!(parsed, Kind::Until { .. }) {
        return Err(format!("`{name}`: `labels` need `until: [\"\\0\"]`"));
    }
    let ty = match (&parsed, file.ignore_case) {
        (kind, _) if kind.is_number() => FieldType::Unsigned,
        (_, true) => FieldType::Name,
        _ => FieldType::Text,
    };
    let element = Element {
        kind: parsed,
        labels: file.labels,
    };
    Ok((name.clone(), element, ty))
}
