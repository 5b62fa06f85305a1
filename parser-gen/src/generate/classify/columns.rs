//! What a table matches: a column per header field, in which one or several levels of the diagram have their bits.

use super::super::Program;
use super::super::resp::{command, segment};
use super::pieces::{Piece, Style};
use crate::filter::typing::max_value;
use crate::library::{Body, ProtocolId};
use crate::terms::MatchKey;

/// Fields up to this width are matched by ranges; wider ones by prefixes.
const MAX_RANGE_BITS: u32 = 16;

/// A key field, in P4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    /// What is matched.
    pub expression: String,
    /// Its name in P4Info.
    pub name: String,
    pub bits: u32,
}

/// Where a level's values stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Index of the column.
    pub column: usize,
    /// Bits of the column below those of the level.
    pub shift: u32,
    pub bits: u32,
    pub style: Style,
}

/// The columns of a diagram's levels, and each level's place in them.
pub(super) fn of(program: &Program<'_>, levels: &[MatchKey]) -> (Vec<Column>, Vec<Place>) {
    let mut columns: Vec<Column> = Vec::new();
    let mut places = Vec::new();
    for key in levels {
        let (column, shift, bits) = describe(program, *key);
        let style = match key {
            MatchKey::CommandByte(..) | MatchKey::KeyByte(_) => Style::Byte,
            _ if bits <= MAX_RANGE_BITS => Style::Range,
            _ => Style::Prefix,
        };
        let known = columns.iter().position(|other| *other == column);
        let column = known.unwrap_or_else(|| {
            columns.push(column);
            columns.len() - 1
        });
        places.push(Place {
            column,
            shift,
            bits,
            style,
        });
    }
    (columns, places)
}

/// What a row asks of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cell {
    Any,
    Range(u128, u128),
    Mask(u128, u128),
}

impl Cell {
    /// With what is asked of one of the column's levels as well.
    pub fn with(self, piece: Piece, place: Place) -> Cell {
        match (self, piece) {
            (_, Piece::Range(low, high)) => Cell::Range(low, high),
            (cell, Piece::Any) => cell,
            (Cell::Mask(value, mask), Piece::Mask(more, bits)) => {
                Cell::Mask(value | more << place.shift, mask | bits << place.shift)
            }
            (_, Piece::Mask(value, mask)) => Cell::Mask(value << place.shift, mask << place.shift),
        }
    }

    /// Whether one value passes.
    pub fn is_single(self, bits: u32) -> bool {
        match self {
            Cell::Any => false,
            Cell::Range(low, high) => low == high,
            Cell::Mask(_, mask) => mask == max_value(bits),
        }
    }
}

/// The column that tells whether a header is there.
pub(super) fn presence(program: &Program<'_>, id: ProtocolId) -> Column {
    describe(program, MatchKey::Present(id)).0
}

/// The mask of a single value.
pub(super) fn all_ones(bits: u32) -> u128 {
    max_value(bits)
}

/// The column of a key, how far from its low end, and how many bits.
fn describe(program: &Program<'_>, key: MatchKey) -> (Column, u32, u32) {
    let valid = |instance: &str| format!("hdr.{instance}.isValid()");
    let column = |expression: String, name: String, bits: u32| Column {
        expression,
        name,
        bits,
    };
    let whole = |column: Column| {
        let bits = column.bits;
        (column, 0, bits)
    };
    let text = |instance: String, name: String, length: usize, index: usize| {
        let expression = format!("hdr.{instance}.text");
        let below = 8 * (length - 1 - index) as u32;
        (column(expression, name, 8 * length as u32), below, 8)
    };
    match key {
        MatchKey::Present(id) => {
            let protocol = &program.library.protocols[id];
            let expression = match protocol.body {
                Body::Resp(_) => "redis".to_owned(),
                _ => valid(&protocol.name),
            };
            whole(column(expression, protocol.filter.clone(), 1))
        }
        MatchKey::Field(id, index) => {
            let protocol = &program.library.protocols[id];
            let field = &protocol.fields[index];
            let name = field
                .filter
                .as_ref()
                .map_or(&field.name, |filter| &filter.name);
            let instance = match &protocol.body {
                Body::Metadata { instance } => instance.clone(),
                _ => format!("hdr.{}", protocol.name),
            };
            let expression = format!("{instance}.{}", field.name);
            whole(column(expression, name.clone(), field.bits))
        }
        MatchKey::CommandLength(length) => whole(column(
            valid(&command(length)),
            format!("redis.command.has_{length}"),
            1,
        )),
        MatchKey::CommandByte(length, index) => {
            let name = format!("redis.command.text_{length}");
            text(command(length), name, length, index)
        }
        MatchKey::KeyPresent => whole(column("redis_key".to_owned(), "redis.key".to_owned(), 1)),
        MatchKey::KeyAtLeast(length) => {
            // Segments end where filters' texts do, so there is one that ends here.
            let begin = program
                .reads
                .segments()
                .find(|(_, end)| *end == length)
                .map_or(0, |(begin, _)| begin);
            let name = format!("redis.key.has_{length}");
            whole(column(valid(&segment((begin, length))), name, 1))
        }
        MatchKey::KeyLengthByte(index) => {
            let field = ["first", "second", "third"][index.min(2)];
            whole(column(
                format!("hdr.redis_key_length.{field}"),
                format!("redis.key.length_{field}"),
                8,
            ))
        }
        MatchKey::KeyByte(index) => {
            let (begin, end) = program
                .reads
                .segments()
                .find(|(begin, end)| (*begin..*end).contains(&index))
                .unwrap_or((index, index + 1));
            let name = format!("redis.key.text_{begin}_{end}");
            text(segment((begin, end)), name, end - begin, index - begin)
        }
    }
}
