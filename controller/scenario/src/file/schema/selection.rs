//! Reads `select`: which packets of a flow a fault selects.

use parser_gen::psn::MODULUS;

use super::per::Per;
use super::ranges::{Numbering, RANGES};
use super::reader::{self, Fields};
use super::shape::{Alternative, Object, Shape, may, needed};
use crate::diagnostic::{Code, Sink, Span, Spanned};
use crate::file::yaml::{Kind, Node};
use crate::model::decision;
use crate::model::selection::{Counted, GilbertElliott, Psn, Ranges, Selection, Share};

const SELECTIONS: [&str; 12] = [
    "always",
    "nth",
    "every",
    "first",
    "after",
    "ordinals",
    "burst",
    "pattern",
    "probability",
    "gilbert_elliott",
    "share",
    "psn",
];

/// The shape of `select`: one of [`SELECTIONS`], with its value.
pub(super) static SELECTION: Shape = Shape::Variant(|| {
    vec![
        Alternative::alone("always", "all"),
        Alternative::with("nth", ORDINAL, "this one, once"),
        Alternative::with("every", ORDINAL, "each n-th"),
        Alternative::with("first", ORDINAL, "this many from the first on"),
        Alternative::with("after", ORDINAL, "all after this many"),
        Alternative::with("ordinals", RANGES, "these: `[3, 10..20, 40..]`"),
        Alternative::with(
            "burst",
            Shape::Object(&BURST),
            "this many in a row, repeatedly",
        ),
        Alternative::with(
            "pattern",
            Shape::Text,
            "where there is a 1 in `\"0110\"`, over and over",
        ),
        Alternative::with(
            "probability",
            Shape::Probability,
            "each by itself, by chance",
        ),
        Alternative::with(
            "gilbert_elliott",
            Shape::Object(&GILBERT_ELLIOTT),
            "by chance, in a channel of two states",
        ),
        Alternative::with(
            "share",
            Shape::Probability,
            "all packets of a share of the keys that `per` names",
        ),
        Alternative::with(
            "psn",
            Shape::Object(&PSN),
            "data packets of each RDMA connection, by sequence number and retransmission round",
        ),
    ]
});

const ORDINAL: Shape = Shape::Integer(1, u32::MAX as u64);

static ORDINALS: Numbering = Numbering {
    key: "ordinals",
    one: "an ordinal",
    of: "packet",
    all: 1..=u32::MAX,
    hint: "packets are numbered from 1: 3, 10..20 (both included), 40..",
};

static PSN: Object = Object {
    what: "`psn`",
    keys: &[
        needed(
            "at",
            RANGES,
            "sequence numbers less the connection's first: `3`, `[0, 4..7, 100..]`",
        ),
        may(
            "round",
            RANGES,
            "in which rounds: one ends where a number does not follow the last; 1",
        ),
    ],
};

static RELATIVE: Numbering = Numbering {
    key: "at",
    one: "a relative PSN",
    of: "PSN",
    all: 0..=MODULUS - 1,
    hint: "they are numbered from 0, the connection's first, up to 16777215: 3, 10..20 (both included), 40..",
};

static ROUND: Numbering = Numbering {
    key: "round",
    one: "a round",
    of: "round",
    all: 1..=u32::MAX,
    hint: "rounds are numbered from 1: 2, 1..3 (both included), 2..",
};

static BURST: Object = Object {
    what: "`burst`",
    keys: &[
        needed("length", ORDINAL, "packets in a row"),
        may("start", ORDINAL, "the first of them").or(1),
        may("every", ORDINAL, "from one burst to the next; once"),
    ],
};

static GILBERT_ELLIOTT: Object = Object {
    what: "`gilbert_elliott`",
    keys: &[
        needed(
            "to_bad",
            Shape::Probability,
            "that the channel turns bad with a packet",
        ),
        needed("to_good", Shape::Probability, "that it turns good again"),
        may(
            "loss_bad",
            Shape::Probability,
            "that a packet is selected while it is bad",
        )
        .or_probability(1.0),
        may("loss_good", Shape::Probability, "the same while it is good").or_probability(0.0),
    ],
};

/// Maximum number of packets in a `pattern`.
const MAX_PATTERN: usize = 1024;
/// Maximum number of table entries in a fault unit's `outcome` table. One range of ordinals can take up to 62 entries.
const MAX_KEYS: usize = 4096;

/// Reads a selection. `per` is the key by which the flow's packets are divided; `None`: they are not.
pub(super) fn selection(sink: &mut Sink<'_>, node: &Node, per: Option<&Per>) -> Option<Selection> {
    if let Some(hint) = reader::bare_selection(sink, node) {
        let message = format!(
            "a selection must be a word or a mapping; found {}",
            node.describe()
        );
        sink.error(Code::WrongType, node.span, message).hint(hint);
        return None;
    }
    let variant = reader::variant(sink, node, "a selection", &SELECTIONS)?;
    let mut count = |what: &str, example: &str| {
        let node = variant.needed(sink, example)?;
        ordinal(sink, node, what)
    };
    let counted = match variant.name {
        "always" => {
            variant.nothing(sink);
            return Some(Selection::Always);
        }
        "nth" => Counted::nth(count("`nth`", "3")?),
        "every" => Counted::every(count("`every`", "5")?),
        "first" => Counted::first(count("`first`", "2")?),
        "after" => Counted::after(count("`after`", "100")?),
        "ordinals" => {
            let node = variant.needed(sink, "[3, 10..20]")?;
            Counted::once(ORDINALS.read(sink, node)?)
        }
        "burst" => {
            let example = "{length: 3, start: 10, every: 100}";
            let (node, fields) = variant.mapping(sink, &BURST, example)?;
            burst(sink, node, fields)?
        }
        "pattern" => {
            let node = variant.needed(sink, "\"0110\"")?;
            pattern(sink, node)?
        }
        "probability" => {
            let node = variant.needed(sink, "0.01")?;
            let p = reader::probability(sink, node, "a probability")?;
            if p.value == 0.0 {
                sink.warning(
                    Code::Suspicious,
                    p.span,
                    "probability 0: the fault never fires",
                );
                return Some(Selection::Never);
            }
            return Some(Selection::Probability {
                limit: limit(sink, p)?,
            });
        }
        "share" => {
            let node = variant.needed(sink, "10%")?;
            return share(sink, node, per);
        }
        "psn" => {
            let (node, fields) = variant.mapping(sink, &PSN, "{at: 3, round: 1}")?;
            return psn(sink, node, fields);
        }
        _ => {
            let example = "{to_bad: 1%, to_good: 30%}";
            let (_, fields) = variant.mapping(sink, &GILBERT_ELLIOTT, example)?;
            return gilbert_elliott(sink, fields);
        }
    };
    bounded(sink, node.span, counted)
}

fn ordinal(sink: &mut Sink<'_>, node: &Node, what: &str) -> Option<u32> {
    u32::try_from(reader::number(sink, node, what, &ORDINAL)?.value).ok()
}

fn bounded(sink: &mut Sink<'_>, span: Span, counted: Counted) -> Option<Selection> {
    let keys = counted.keys().len();
    if keys > MAX_KEYS {
        let message = format!(
            "this selection needs {keys} entries in a table of the switch, which has {MAX_KEYS}"
        );
        sink.error(Code::Capacity, span, message)
            .hint("name fewer packets: a single number needs one entry, and a range up to 62");
        return None;
    }
    Some(Selection::Counted(counted))
}

/// Reads the selection `psn`: `{at: 3, round: 1}`
fn psn(sink: &mut Sink<'_>, node: &Node, fields: Fields<'_>) -> Option<Selection> {
    // A missing key has been reported.
    let at = fields.get("at").map(|node| RELATIVE.read(sink, node));
    let rounds = match fields.get("round") {
        Some(node) => ROUND.read(sink, node),
        None => Some(vec![1..=1]),
    };
    let (at, rounds) = (Ranges::new(at??), Ranges::new(rounds?));
    let entries = at.as_slice().len() * rounds.as_slice().len();
    if entries > MAX_KEYS {
        let message = format!(
            "this selection needs {entries} entries in a table of the switch, which has {MAX_KEYS}"
        );
        sink.error(Code::Capacity, node.span, message).hint(
            "name fewer ranges: each range of `at` needs one entry for each range of `round`",
        );
        return None;
    }
    Some(Selection::Psn(Psn { at, rounds }))
}

fn burst(sink: &mut Sink<'_>, node: &Node, fields: Fields<'_>) -> Option<Counted> {
    let (start, length) = (fields.number(sink, "start"), fields.number(sink, "length"));
    let every = fields.optional_number(sink, "every")?;
    let (start, length): (u32, u32) = (start?.value, length?.value);
    let every = every.map_or(0, |every| every.value);
    let end = u64::from(start) + u64::from(length) - 1;
    if end > u64::from(u32::MAX) || (every != 0 && end > u64::from(every)) {
        let message = format!(
            "`burst` takes packets {start} to {end}, but numbering starts over after packet {every}"
        );
        sink.error(Code::OutOfRange, node.span, message)
            .hint(format!(
                "write `every: {end}` or more, or a smaller `length`"
            ));
        return None;
    }
    Some(Counted::burst(start, length, every))
}

fn pattern(sink: &mut Sink<'_>, node: &Node) -> Option<Counted> {
    let Kind::Text { value, .. } = &node.kind else {
        reader::wrong_type::<()>(sink, node, "`pattern` must be text of 0 and 1, in quotes");
        return None;
    };
    if let Some(stray) = value.chars().find(|c| !matches!(c, '0' | '1')) {
        let message = format!("`pattern` must consist of 0 and 1; found `{stray}`");
        sink.error(Code::OutOfRange, node.span, message)
            .hint("write for example `pattern: \"0110\"`");
        return None;
    }
    if value.is_empty() || value.len() > MAX_PATTERN {
        let message = format!(
            "`pattern` must have 1 to {MAX_PATTERN} digits; found {}",
            value.len()
        );
        sink.error(Code::Capacity, node.span, message)
            .hint("write for example `pattern: \"0110\"`");
        return None;
    }
    if !value.contains('1') {
        sink.error(
            Code::OutOfRange,
            node.span,
            "`pattern` selects nothing: it has no 1",
        )
        .hint("write a 1 for each packet to select, such as `pattern: \"0110\"`");
        return None;
    }
    let pattern: Vec<bool> = value.chars().map(|digit| digit == '1').collect();
    Some(Counted::pattern(&pattern))
}

/// Reads the selection `share`: `10%` of the keys `per`.
fn share(sink: &mut Sink<'_>, node: &Node, per: Option<&Per>) -> Option<Selection> {
    let p = reader::probability(sink, node, "a share")?;
    let wrong = match p.value {
        0.0 => Some((
            "a share of 0% selects nothing",
            "leave the fault out, or write a share above 0%",
        )),
        1.0 => Some((
            "a share of 100% selects every packet",
            "write `select: always`",
        )),
        _ => None,
    };
    if let Some((message, hint)) = wrong {
        sink.error(Code::OutOfRange, p.span, message).hint(hint);
        return None;
    }
    let Some(Per { key, of, .. }) = per else {
        sink.error(
            Code::MissingKey,
            node.span,
            "`share` needs `per`: it selects a share of the keys that `per` names",
        )
        .hint(
            "write `per: connection`, `per: source`, or `per: [ip.src, udp.sport]` beside `select`",
        );
        return None;
    };
    let limit = limit(sink, p)?;
    let (key, of) = (key.clone(), of.clone());
    Some(Selection::Share(Share { limit, key, of }))
}

fn gilbert_elliott(sink: &mut Sink<'_>, fields: Fields<'_>) -> Option<Selection> {
    let (to_bad, to_good) = (
        fields.probability(sink, "to_bad"),
        fields.probability(sink, "to_good"),
    );
    let loss_bad = fields.probability(sink, "loss_bad");
    let loss_good = fields.probability(sink, "loss_good");
    let positive = |sink: &mut Sink<'_>, p: Option<Spanned<f64>>, why: &str| {
        let p = p?;
        if p.value == 0.0 {
            sink.error(Code::OutOfRange, p.span, why);
            return None;
        }
        limit(sink, p)
    };
    let to_bad = positive(
        sink,
        to_bad,
        "with `to_bad` 0 the channel never turns bad; use `probability`",
    );
    let to_good = positive(
        sink,
        to_good,
        "with `to_good` 0 the channel never recovers; use `probability`",
    );
    let loss_bad = positive(
        sink,
        loss_bad,
        "with `loss_bad` 0 the bad state selects no packets; use `probability`",
    );
    let loss_good = match loss_good? {
        Spanned { value: 0.0, .. } => None,
        p => Some(limit(sink, p)?),
    };
    let (to_bad, to_good, loss_bad) = (to_bad?, to_good?, loss_bad?);
    Some(Selection::GilbertElliott(GilbertElliott {
        to_bad,
        to_good,
        loss_bad,
        loss_good,
    }))
}

/// Converts a probability greater than 0 to the greatest random draw that selects a packet; reports one that rounds to 0.
fn limit(sink: &mut Sink<'_>, p: Spanned<f64>) -> Option<u32> {
    let limit = decision::limit(p.value);
    if limit.is_none() {
        sink.error(
            Code::OutOfRange,
            p.span,
            format!(
                "{} is below 2^-32, the smallest probability that a switch can apply",
                p.value
            ),
        )
        .hint("write `0.00000003%` or more");
    }
    limit
}
