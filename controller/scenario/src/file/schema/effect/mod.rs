//! Reads `effect`: what a fault does to a packet that it selects. One file for each effect with parameters.

mod corrupt;
mod delay;
mod distribution;
mod duplicate;
mod rate;
mod reorder;
mod set;
mod truncate;

use super::reader::{self, Variant};
use super::shape::{Alternative, Shape};
use crate::diagnostic::{Code, Sink};
use crate::file::yaml::{Kind, Node};
use crate::model::disruption::Does;
use crate::model::effect::{Drop, Effect, Observe, Reset};
use crate::model::protocols::Protocols;

type Reader = fn(&mut Sink<'_>, &Protocols, &Variant<'_>) -> Option<Effect>;

/// The syntax of an effect in the file.
struct EffectSyntax {
    /// The effect's keyword in the file, such as `drop`.
    word: &'static str,
    /// A few words on the effect, for users.
    about: &'static str,
    /// The shape of the keyword's value; `None` if the effect takes no value.
    shape: Option<&'static Shape>,
    /// An example of the keyword's value; empty if the value is optional.
    example: &'static str,
    /// The function that reads the keyword's value, and reports errors in it.
    read: Reader,
}

impl EffectSyntax {
    /// Declares an effect without a value.
    const fn alone(word: &'static str, about: &'static str, read: Reader) -> EffectSyntax {
        EffectSyntax {
            word,
            about,
            shape: None,
            example: "",
            read,
        }
    }
}

/// The syntax of all effects, in the order in which messages list them.
const KINDS: &[EffectSyntax] = &[
    EffectSyntax::alone("drop", "the packet ends", |_, _, _| {
        Some(Effect::Drop(Drop))
    }),
    delay::KIND,
    duplicate::KIND,
    EffectSyntax::alone(
        "observe",
        "it is counted and listed, and nothing happens to it",
        |_, _, _| Some(Effect::Observe(Observe)),
    ),
    set::KIND,
    corrupt::KIND,
    EffectSyntax::alone(
        "reset",
        "it becomes the reset of its TCP connection",
        |_, _, _| Some(Effect::Reset(Reset)),
    ),
    rate::RATE,
    rate::POLICE,
    truncate::KIND,
    reorder::KIND,
];

pub(super) static EFFECT: Shape = Shape::Variant(|| {
    let kinds = KINDS.iter();
    let ways = kinds.map(|kind| Alternative {
        word: kind.word,
        payload: kind.shape.map(Shape::At),
        may_be_alone: kind.example.is_empty(),
        about: kind.about,
    });
    ways.collect()
});

pub(super) fn effect(sink: &mut Sink<'_>, protocols: &Protocols, node: &Node) -> Option<Effect> {
    // Disruptions have been separated before; messages also list their words.
    let words = KINDS.iter().map(|kind| kind.word);
    let words: Vec<&str> = words.chain(Does::WORDS).collect();
    let written = reader::variant(sink, node, "an effect", &words)?;
    let kind = KINDS.iter().find(|kind| kind.word == written.name)?;
    let which = |share: &str| format!("`select: {{probability: {share}}}`");
    if let Some((span, share)) = written.share(sink, kind.shape) {
        let message = format!(
            "`{share}` is a share of packets: it belongs in `select`, not in `{}`",
            kind.word
        );
        let effect = match kind.example {
            "" => kind.word.to_owned(),
            example => format!("{{{}: {example}}}", kind.word),
        };
        let is_example = kind.example.contains(|c: char| c.is_ascii_digit());
        let write = if is_example {
            "write for example"
        } else {
            "write"
        };
        let hint = format!(
            "{write} `effect: {effect}` and, beside it, {}",
            which(&share)
        );
        sink.error(Code::WrongType, span, message).hint(hint);
        return None;
    }
    if let (None, Some(payload)) = (kind.shape, written.payload.as_deref())
        && !matches!(payload.kind, Kind::Null)
    {
        let message = format!(
            "`{}` takes no value; found {}",
            kind.word,
            payload.describe()
        );
        let hint = format!(
            "to choose the packets that it hits, write beside it for example {}",
            which("5%")
        );
        sink.error(Code::WrongType, payload.span, message)
            .hint(hint);
        return None;
    }
    (kind.read)(sink, protocols, &written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_those_of_the_effects() {
        let all = Effect::samples();
        assert_eq!(all.len(), KINDS.len());
        for (i, a) in all.iter().enumerate() {
            assert_eq!(a.word(), KINDS[i].word);
            for b in &all[..i] {
                assert_ne!(a.word(), b.word());
            }
        }
    }
}
