//! Match columns of a table: one per header field. A column holds the bits of one or several levels of the decision diagram.

use super::super::Program;
use super::pieces::{Piece, Style};
use crate::library::max_value;
use crate::library::{Body, Kind, ProtocolId};
use crate::terms::MatchKey;

/// Maximum width in bits of fields that are matched by ranges; wider ones are matched by prefixes.
const MAX_RANGE_BITS: u32 = 16;

/// Match column of a table: a key field, in P4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    /// P4 expression that the column matches.
    pub expression: String,
    /// Name of the key field in P4Info.
    pub name: String,
    pub bits: u32,
}

/// Position of the values of a diagram's level in the columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LevelColumns {
    /// Indexes of the columns: one, or one for each byte of a number.
    pub columns: Vec<usize>,
    /// Number of bits in the column below the bits of the level.
    shift: u32,
    /// Largest value that the level's key can have.
    pub max: u128,
    pub bits: u32,
    pub style: Style,
}

/// Columns of a diagram's levels, and each level's position in them.
pub(super) fn assign(
    program: &Program<'_>,
    levels: &[MatchKey],
) -> (Vec<Column>, Vec<LevelColumns>) {
    let mut columns: Vec<Column> = Vec::new();
    let mut places = Vec::new();
    for key in levels {
        let found = describe(program, *key);
        let known = found.columns.into_iter().map(|column| {
            let known = columns.iter().position(|other| *other == column);
            known.unwrap_or_else(|| {
                columns.push(column);
                columns.len() - 1
            })
        });
        places.push(LevelColumns {
            columns: known.collect(),
            shift: found.shift,
            max: key.largest(program.library),
            bits: found.bits,
            style: found.style,
        });
    }
    (columns, places)
}

/// Narrows a row's cells in a level's columns to the values of a piece.
pub(super) fn ask(cells: &mut [Cell], piece: Piece, place: &LevelColumns) {
    let column = place.columns[0];
    cells[column] = match (cells[column], piece) {
        (_, Piece::Range(low, high)) => Cell::Range(low, high),
        (cell, Piece::Any) => cell,
        (Cell::Mask(value, mask), Piece::Mask(more, bits)) => {
            Cell::Mask(value | more << place.shift, mask | bits << place.shift)
        }
        (_, Piece::Mask(value, mask)) => Cell::Mask(value << place.shift, mask << place.shift),
        (_, Piece::Numeral(numeral)) => {
            let bytes = place.columns.iter().zip(numeral.bytes).take(numeral.length);
            for (column, (low, high)) in bytes {
                cells[*column] = Cell::Range(low.into(), high.into());
            }
            return;
        }
    };
}

/// Values of one column that a row matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    Any,
    Range(u128, u128),
    Mask(u128, u128),
}

impl Cell {
    /// Whether the cell matches exactly one value of `bits` bits.
    pub fn is_single(self, bits: u32) -> bool {
        match self {
            Cell::Any => false,
            Cell::Range(low, high) => low == high,
            Cell::Mask(_, mask) => mask == max_value(bits),
        }
    }
}

/// Column that tests whether the packet has the protocol's header.
pub(super) fn presence(program: &Program<'_>, id: ProtocolId) -> Column {
    let protocol = &program.library.protocols[id];
    valid(&protocol.name, protocol.filter.clone())
}

/// Mask of `bits` ones, which matches a single value.
pub(super) fn all_ones(bits: u32) -> u128 {
    max_value(bits)
}

struct Described {
    columns: Vec<Column>,
    shift: u32,
    bits: u32,
    style: Style,
}

fn valid(instance: &str, name: String) -> Column {
    Column {
        expression: format!("hdr.{instance}.isValid()"),
        name,
        bits: 1,
    }
}

/// Columns of a match key, the position of its bits in the columns, and the number of bits.
fn describe(program: &Program<'_>, key: MatchKey) -> Described {
    let whole = |column: Column| {
        let bits = column.bits;
        let style = if bits <= MAX_RANGE_BITS {
            Style::Range
        } else {
            Style::Prefix
        };
        Described {
            columns: vec![column],
            shift: 0,
            bits,
            style,
        }
    };
    // The field's name in filters; without one, its own name behind its protocol's.
    let name = |id: ProtocolId, index: usize| {
        let protocol = &program.library.protocols[id];
        let field = &protocol.fields[index];
        match &field.filter {
            Some(filter) => filter.name.clone(),
            None => format!("{}.{}", protocol.filter, field.name),
        }
    };
    match key {
        MatchKey::Present(id) => {
            let protocol = &program.library.protocols[id];
            let instance = match protocol.body {
                Body::Message(_) => program.message_present(id),
                _ => protocol.name.clone(),
            };
            whole(valid(&instance, protocol.filter.clone()))
        }
        MatchKey::There(id, index) => {
            let instance = program.element_present(id, index);
            whole(valid(&instance, format!("{}.is_there", name(id, index))))
        }
        MatchKey::AtLeast(id, index, count) => {
            let instance = program.at_least(id, index, count);
            whole(valid(&instance, format!("{}.has_{count}", name(id, index))))
        }
        MatchKey::Field(id, index) => {
            let protocol = &program.library.protocols[id];
            let field = &protocol.fields[index];
            let kind = protocol.elements().get(index).map(|element| &element.kind);
            let style = match kind {
                Some(Kind::Decimal { max, end }) => Style::Decimal {
                    max: *max,
                    end: *end,
                },
                Some(Kind::Varint { max }) => Style::Varint { max: *max },
                Some(_) => {
                    let instance = program.number_headers(id, index).remove(0);
                    return whole(Column {
                        expression: format!("hdr.{instance}.text"),
                        name: name(id, index),
                        bits: field.bits,
                    });
                }
                None => {
                    let instance = match &protocol.body {
                        Body::Metadata { instance } => instance.clone(),
                        _ => format!("hdr.{}", protocol.name),
                    };
                    let known = field
                        .filter
                        .as_ref()
                        .map_or(&field.name, |filter| &filter.name);
                    return whole(Column {
                        expression: format!("{instance}.{}", field.name),
                        name: known.clone(),
                        bits: field.bits,
                    });
                }
            };
            let byte = |(number, instance): (usize, String)| Column {
                expression: format!("hdr.{instance}.text"),
                name: format!("{}.byte_{number}", name(id, index)),
                bits: 8,
            };
            let headers = program.number_headers(id, index);
            Described {
                columns: headers.into_iter().enumerate().map(byte).collect(),
                shift: 0,
                bits: field.bits,
                style,
            }
        }
        MatchKey::Byte(id, index, length, byte) => {
            let (instance, bytes, at) = program.byte_header(id, index, length, byte);
            let suffix = instance
                .rsplit('_')
                .take_while(|part| part.parse::<usize>().is_ok());
            let mut suffix: Vec<&str> = suffix.collect();
            suffix.reverse();
            let column = Column {
                expression: format!("hdr.{instance}.text"),
                name: [name(id, index), ".text".to_owned()].concat()
                    + &suffix
                        .iter()
                        .map(|part| format!("_{part}"))
                        .collect::<String>(),
                bits: 8 * bytes as u32,
            };
            Described {
                columns: vec![column],
                shift: 8 * (bytes - 1 - at) as u32,
                bits: 8,
                style: Style::Byte,
            }
        }
    }
}
