//! RESP in P4: states unrolled over the lengths.
//!
//! A command is `*N\r\n$L\r\nCOMMAND\r\n$K\r\nKEY\r\n…`. A length is read as a header of four bytes: marker and, for one
//! digit, CR LF; for two digits CR, with LF in a header of its own; for three, CR LF in a header of its own. Each command
//! length has its own header, so that a command name is one field. Of the key, the bytes are extracted that some filter
//! names, in segments that end where a filter's text ends; a key shorter than a segment's end leaves it invalid.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::Program;
use super::parsers::COMPLETE;
use super::writer::{Transition, Writer, extract};
use crate::library::Resp;
use crate::terms::{MatchKey, Term};

/// How many bytes of a key the filters name: the ends of the segments, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyReads {
    ends: Vec<usize>,
}

impl KeyReads {
    pub fn of(flows: &[Vec<Term>]) -> KeyReads {
        let ends: BTreeSet<usize> = flows
            .iter()
            .flatten()
            .flat_map(|term| term.keys())
            .filter_map(|key| match key {
                MatchKey::KeyAtLeast(length) => Some(*length),
                _ => None,
            })
            .collect();
        KeyReads {
            ends: ends.into_iter().collect(),
        }
    }

    /// Begin and end of every segment.
    pub fn segments(&self) -> impl Iterator<Item = (usize, usize)> {
        [0].into_iter()
            .chain(self.ends.iter().copied())
            .zip(self.ends.iter().copied())
    }

    /// How many bytes of a key of `length` bytes are read.
    fn depth(&self, length: usize) -> usize {
        self.ends
            .iter()
            .copied()
            .filter(|end| *end <= length)
            .max()
            .unwrap_or(0)
    }

    fn max(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

pub(super) fn command(length: usize) -> String {
    format!("redis_command_{length}")
}

pub(super) fn segment((begin, end): (usize, usize)) -> String {
    format!("redis_key_{begin}_{end}")
}

/// Powers of two that make up what remains of a key.
const REST_SIZES: [usize; 5] = [16, 8, 4, 2, 1];

fn rest(size: usize) -> String {
    format!("redis_key_rest_{size}")
}

/// Type and instance of each header, in wire order.
pub(super) fn instances(resp: Resp, reads: &KeyReads) -> Vec<(String, String)> {
    let mut instances: Vec<(String, String)> = Vec::new();
    let mut add = |ty: &str, name: &str| instances.push((ty.to_owned(), name.to_owned()));
    add("redis_number_h", "redis_elements");
    add("redis_byte_h", "redis_elements_lf");
    add("redis_line_end_h", "redis_elements_crlf");
    add("redis_number_h", "redis_command_length");
    add("redis_byte_h", "redis_command_length_lf");
    for length in 1..=resp.max_command {
        add(&format!("redis_text_{length}_h"), &command(length));
    }
    add("redis_line_end_h", "redis_command_end");
    add("redis_number_h", "redis_key_length");
    add("redis_byte_h", "redis_key_length_lf");
    add("redis_line_end_h", "redis_key_length_crlf");
    for (begin, end) in reads.segments() {
        add(
            &format!("redis_text_{}_h", end - begin),
            &segment((begin, end)),
        );
    }
    for size in rest_sizes(resp, reads) {
        add(&format!("redis_text_{size}_h"), &rest(size));
    }
    add("redis_line_end_h", "redis_key_end");
    add("redis_number_h", "redis_value_length");
    add("redis_line_end_h", "redis_value_length_crlf");
    instances
}

/// Which rests occur, largest first.
fn rest_sizes(resp: Resp, reads: &KeyReads) -> Vec<usize> {
    let rests: Vec<usize> = (0..=resp.max_key)
        .map(|length| length - reads.depth(length))
        .collect();
    REST_SIZES
        .into_iter()
        .filter(|size| rests.iter().any(|rest| rest & size != 0))
        .collect()
}

pub(super) fn write_types(program: &Program<'_>, w: &mut Writer) {
    w.line("// A length in RESP: `*3` CR LF, `$12` CR, `$123`. What is missing of the line's end follows in its own header.");
    w.open("header redis_number_h");
    for field in ["marker", "first", "second", "third"] {
        w.line(format!("bit<8> {field};"));
    }
    w.close();
    w.blank();
    w.open("header redis_byte_h");
    w.line("bit<8> text;");
    w.close();
    w.blank();
    w.open("header redis_line_end_h");
    w.line("bit<16> text;");
    w.close();
    w.blank();
    let mut sizes = BTreeSet::new();
    for protocol in &program.library.protocols {
        if let crate::library::Body::Resp(resp) = protocol.body {
            sizes.extend(1..=resp.max_command);
            sizes.extend(program.reads.segments().map(|(begin, end)| end - begin));
            sizes.extend(rest_sizes(resp, &program.reads));
        }
    }
    for size in sizes {
        w.open(format!("header redis_text_{size}_h"));
        w.line(format!("bit<{}> text;", 8 * size));
        w.close();
        w.blank();
    }
    for (name, value) in [
        ("STAR", "0x2a"),
        ("DOLLAR", "0x24"),
        ("CR", "0x0d"),
        ("LF", "0x0a"),
    ] {
        w.line(format!("const bit<8> RESP_{name} = {value};"));
    }
    w.line("const bit<16> RESP_LINE_END = 0x0d0a;");
    w.blank();
}

const UNPARSEABLE: &str = "note_redis_unparseable";
const UNREAD: &str = "note_redis_unread";

/// The select keys of a length: marker, then three bytes.
fn number_keys(marker: &str, digits: &[RangeInclusive<u8>]) -> Vec<String> {
    let mut keys = vec![marker.to_owned()];
    keys.extend(digits.iter().map(|range| {
        let (low, high) = (0x30 + range.start(), 0x30 + range.end());
        if low == high {
            format!("{low:#04x}")
        } else {
            format!("{low:#04x}..{high:#04x}")
        }
    }));
    let ending = ["RESP_CR", "RESP_LF"].iter().take(3 - digits.len());
    keys.extend(ending.map(|name| (*name).to_owned()));
    keys
}

/// The digits of one length.
fn exact_digits(length: usize) -> Vec<RangeInclusive<u8>> {
    length
        .to_string()
        .bytes()
        .map(|b| b - b'0')
        .map(|d| d..=d)
        .collect()
}

fn number_fields(instance: &str) -> [String; 4] {
    ["marker", "first", "second", "third"].map(|field| format!("hdr.{instance}.{field}"))
}

fn select_number(instance: &str, cases: Vec<(Vec<String>, String)>) -> Transition {
    let on = number_fields(instance);
    Transition::select(&[&on[0], &on[1], &on[2], &on[3]], cases, UNPARSEABLE)
}

fn select_line_end(instance: &str, next: &str, otherwise: &str) -> Transition {
    let on = format!("hdr.{instance}.text");
    Transition::select(
        &[&on],
        vec![(vec!["RESP_LINE_END".to_owned()], next.to_owned())],
        otherwise,
    )
}

fn select_lf(instance: &str, next: &str) -> Transition {
    let on = format!("hdr.{instance}.text");
    Transition::select(
        &[&on],
        vec![(vec!["RESP_LF".to_owned()], next.to_owned())],
        UNPARSEABLE,
    )
}

pub(super) fn write_states(resp: Resp, reads: &KeyReads, w: &mut Writer) {
    write_command_states(resp, w);
    w.line("// Of a key, only what the filters name is read.");
    write_key_states(reads, w);
    w.line("// Of three elements (SET), short keys are read whole, so that the third one's length is seen as well.");
    write_whole_key_states(resp, reads, w);
}

fn write_command_states(resp: Resp, w: &mut Writer) {
    w.line("// *N: how many elements.");
    let digit = 0..=9;
    w.state(
        "parse_redis",
        &[
            "meta.parse_note = NOTE_REDIS_TRUNCATED;".to_owned(),
            extract("redis_elements"),
        ],
        &select_number(
            "redis_elements",
            vec![
                (
                    number_keys("RESP_STAR", &[1..=9]),
                    "parse_redis_command_length".to_owned(),
                ),
                (
                    number_keys("RESP_STAR", &[1..=9, digit.clone()]),
                    "parse_redis_elements_lf".to_owned(),
                ),
                (
                    number_keys("RESP_STAR", &[1..=9, digit.clone(), digit.clone()]),
                    "parse_redis_elements_crlf".to_owned(),
                ),
            ],
        ),
    );
    w.state(
        "parse_redis_elements_lf",
        &[extract("redis_elements_lf")],
        &select_lf("redis_elements_lf", "parse_redis_command_length"),
    );
    w.state(
        "parse_redis_elements_crlf",
        &[extract("redis_elements_crlf")],
        &select_line_end("redis_elements_crlf", "parse_redis_command_length", UNREAD),
    );

    w.line("// $L: the length of the command's name.");
    let mut cases = Vec::new();
    for length in 1..=resp.max_command {
        let digits = exact_digits(length);
        cases.push((
            number_keys("RESP_DOLLAR", &digits),
            format!("parse_redis_command_{length}"),
        ));
    }
    cases.push((
        number_keys("RESP_DOLLAR", &[1..=9, digit.clone()]),
        UNREAD.to_owned(),
    ));
    cases.push((
        number_keys("RESP_DOLLAR", &[1..=9, digit.clone(), digit]),
        UNREAD.to_owned(),
    ));
    w.state(
        "parse_redis_command_length",
        &[extract("redis_command_length")],
        &select_number("redis_command_length", cases),
    );
    for length in 1..=resp.max_command {
        let state = format!("parse_redis_command_{length}");
        let (statements, next) = if length < 10 {
            (
                vec![extract(&command(length))],
                Transition::to("parse_redis_command_end"),
            )
        } else {
            (
                vec![
                    extract("redis_command_length_lf"),
                    extract(&command(length)),
                ],
                select_lf("redis_command_length_lf", "parse_redis_command_end"),
            )
        };
        w.state(&state, &statements, &next);
    }
    // One element has no key; three are followed further.
    let case = |first: &str, second: &str, state: &str| {
        let keys = ["RESP_LINE_END", first, second].map(str::to_owned).to_vec();
        (keys, state.to_owned())
    };
    w.state(
        "parse_redis_command_end",
        &[extract("redis_command_end")],
        &Transition::select(
            &[
                "hdr.redis_command_end.text",
                "hdr.redis_elements.first",
                "hdr.redis_elements.second",
            ],
            vec![
                case("0x31", "RESP_CR", COMPLETE),
                case("0x33", "RESP_CR", "parse_redis_key_length_of_3"),
                case("_", "_", "parse_redis_key_length"),
            ],
            UNPARSEABLE,
        ),
    );
}

/// The state that reads the first `depth` bytes of a key.
fn key_state(depth: usize) -> String {
    if depth == 0 {
        COMPLETE.to_owned()
    } else {
        format!("parse_redis_key_{depth}")
    }
}

fn segments_to(reads: &KeyReads, depth: usize) -> Vec<String> {
    reads
        .segments()
        .filter(|(_, end)| *end <= depth)
        .map(|range| extract(&segment(range)))
        .collect()
}

fn write_key_states(reads: &KeyReads, w: &mut Writer) {
    let mut cases: Vec<(Vec<String>, String)> = Vec::new();
    let mut two_digits = BTreeSet::new();
    for (range, depth) in runs(reads, 0, 9) {
        cases.push((number_keys("RESP_DOLLAR", &[range]), key_state(depth)));
    }
    // Depths end at 16, so they differ only below 20.
    for (range, depth) in runs(reads, 10, 19) {
        cases.push((
            number_keys("RESP_DOLLAR", &[1..=1, range]),
            format!("parse_redis_key_{depth}_lf"),
        ));
        two_digits.insert(depth);
    }
    let max = reads.max();
    cases.extend(long_key_cases(reads));
    two_digits.insert(max);
    w.state(
        "parse_redis_key_length",
        &[extract("redis_key_length")],
        &select_number("redis_key_length", cases),
    );
    for depth in two_digits {
        w.state(
            &format!("parse_redis_key_{depth}_lf"),
            &[extract("redis_key_length_lf")],
            &select_lf("redis_key_length_lf", &key_state(depth)),
        );
    }
    w.state(
        &format!("parse_redis_key_{max}_crlf"),
        &[extract("redis_key_length_crlf")],
        &select_line_end("redis_key_length_crlf", &key_state(max), UNREAD),
    );
    for depth in &reads.ends {
        w.state(
            &key_state(*depth),
            &segments_to(reads, *depth),
            &Transition::to(COMPLETE),
        );
    }
}

/// Keys of 20 bytes and more.
fn long_key_cases(reads: &KeyReads) -> Vec<(Vec<String>, String)> {
    let max = reads.max();
    vec![
        (
            number_keys("RESP_DOLLAR", &[2..=9, 0..=9]),
            format!("parse_redis_key_{max}_lf"),
        ),
        (
            number_keys("RESP_DOLLAR", &[1..=9, 0..=9, 0..=9]),
            format!("parse_redis_key_{max}_crlf"),
        ),
    ]
}

/// Runs of last digits with equal depth, for lengths from `low` to `high`.
fn runs(reads: &KeyReads, low: usize, high: usize) -> Vec<(RangeInclusive<u8>, usize)> {
    let mut runs: Vec<(RangeInclusive<u8>, usize)> = Vec::new();
    for (length, digit) in (low..=high).zip(0..) {
        let depth = reads.depth(length);
        match runs.last_mut() {
            Some((range, last)) if *last == depth => *range = *range.start()..=digit,
            _ => runs.push((digit..=digit, depth)),
        }
    }
    runs
}

/// The state that reads a key of this length.
fn whole_key_state(length: usize) -> String {
    format!("parse_redis_whole_key_{length}")
}

fn write_whole_key_states(resp: Resp, reads: &KeyReads, w: &mut Writer) {
    let mut cases: Vec<(Vec<String>, String)> = Vec::new();
    for length in 0..=resp.max_key {
        let digits = exact_digits(length);
        cases.push((
            number_keys("RESP_DOLLAR", &digits),
            if length < 10 {
                whole_key_state(length)
            } else {
                format!("{}_lf", whole_key_state(length))
            },
        ));
    }
    for length in resp.max_key + 1..=19 {
        let digits = exact_digits(length);
        let depth = reads.depth(length);
        let state = if digits.len() == 1 {
            key_state(depth)
        } else {
            format!("parse_redis_key_{depth}_lf")
        };
        cases.push((number_keys("RESP_DOLLAR", &digits), state));
    }
    cases.extend(long_key_cases(reads));
    w.state(
        "parse_redis_key_length_of_3",
        &[extract("redis_key_length")],
        &select_number("redis_key_length", cases),
    );
    for length in 0..=resp.max_key {
        let state = whole_key_state(length);
        if length >= 10 {
            w.state(
                &format!("{state}_lf"),
                &[extract("redis_key_length_lf")],
                &select_lf("redis_key_length_lf", &state),
            );
        }
        let depth = reads.depth(length);
        let mut statements = segments_to(reads, depth);
        let sizes = REST_SIZES
            .iter()
            .filter(|size| (length - depth) & **size != 0);
        statements.extend(sizes.map(|size| extract(&rest(*size))));
        w.state(&state, &statements, &Transition::to("parse_redis_key_end"));
    }
    w.state(
        "parse_redis_key_end",
        &[extract("redis_key_end")],
        &select_line_end("redis_key_end", "parse_redis_value_length", UNPARSEABLE),
    );
    w.state(
        "parse_redis_value_length",
        &[extract("redis_value_length")],
        &select_number(
            "redis_value_length",
            vec![
                (number_keys("RESP_DOLLAR", &[0..=9]), COMPLETE.to_owned()),
                (
                    number_keys("RESP_DOLLAR", &[1..=9, 0..=9]),
                    COMPLETE.to_owned(),
                ),
                (
                    number_keys("RESP_DOLLAR", &[1..=9, 0..=9, 0..=9]),
                    "parse_redis_value_length_crlf".to_owned(),
                ),
            ],
        ),
    );
    w.state(
        "parse_redis_value_length_crlf",
        &[extract("redis_value_length_crlf")],
        &Transition::to(COMPLETE),
    );
}
