//! Application messages in P4: which elements a parser reads, and into which headers.
//!
//! A counted text with elements behind it has a header for each length that some filter lets pass; other lengths match
//! no flow. Digits, varints, and texts that a byte ends and that have elements behind them are read byte by byte. The
//! last text that filters test is read as deep as they compare it, in segments that end where a filter's text ends.

mod states;

use std::collections::{BTreeMap, BTreeSet};

use super::Program;
use crate::library::{Kind, Library, ProtocolId};
use crate::terms::{MatchKey, Ranges, Term, number_before};
use crate::writer::Writer;

pub(super) use states::write_states;

/// Maximum length of a text's header in bytes: it fits a match key of 128 bits.
const MAX_SEGMENT: usize = 16;

/// Parts of a message that the filters need, so that a parser reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reads {
    /// Index of the last element that the parser reads.
    depth: usize,
    /// Lengths of counted texts that some filter lets pass, for texts with elements behind them, by the text's element index.
    walked: BTreeMap<usize, BTreeSet<usize>>,
    /// Byte offsets in the last text at which its segments end.
    ends: BTreeSet<usize>,
    /// Indexes of numbers that filters compare, or that show whether a text is present.
    numbers: BTreeSet<usize>,
}

impl Reads {
    /// Parts of a message that the terms of all flows need.
    pub fn new<'a>(
        library: &Library,
        id: ProtocolId,
        terms: impl Iterator<Item = &'a Term> + Clone,
    ) -> Reads {
        let element = |key: &MatchKey| match key {
            MatchKey::There(of, index) | MatchKey::Field(of, index) if *of == id => Some(*index),
            MatchKey::AtLeast(of, index, _) | MatchKey::Byte(of, index, ..) if *of == id => {
                Some(*index)
            }
            _ => None,
        };
        let keys = || terms.clone().flat_map(Term::keys);
        let depth = keys().filter_map(element).max().unwrap_or(0);
        let mut reads = Reads {
            depth,
            ..Reads::default()
        };
        let elements = library.protocols[id].elements();
        for (index, element_here) in elements.iter().enumerate().take(depth + 1) {
            let Kind::Counted {
                less,
                max,
                walked: true,
            } = element_here.kind
            else {
                continue;
            };
            let number = number_before(library, id, index);
            let mut lengths = BTreeSet::new();
            let looking = terms
                .clone()
                .filter(|term| term.keys().filter_map(element).any(|of| of >= index));
            for term in looking {
                let allowed: Option<&Ranges> = term.get(&MatchKey::Field(id, number));
                lengths.extend((0..=max).filter(|length| {
                    let value = *length as u128 + u128::from(less);
                    allowed.is_none_or(|allowed| allowed.contains(value))
                }));
            }
            reads.walked.insert(index, lengths);
        }
        reads.numbers = keys()
            .filter_map(|key| match key {
                MatchKey::There(of, index) if *of == id => Some(*index),
                _ => None,
            })
            .collect();
        if let Some(Kind::Counted { walked: false, .. } | Kind::Until { .. }) =
            elements.get(depth).map(|element| &element.kind)
        {
            let ends = keys().filter_map(|key| match key {
                MatchKey::AtLeast(of, index, count) if *of == id && *index == depth => Some(*count),
                _ => None,
            });
            reads.ends = ends.collect();
            if matches!(elements[depth].kind, Kind::Until { .. }) {
                reads.ends.insert(1);
            }
            let deepest = reads.ends.last().copied().unwrap_or(0);
            reads.ends.extend(
                (1..)
                    .map(|n| n * MAX_SEGMENT)
                    .take_while(|end| *end < deepest),
            );
        }
        reads
    }

    /// Begin and end of each segment of the last text, in bytes from the text's beginning.
    fn segments(&self) -> impl Iterator<Item = (usize, usize)> {
        [0].into_iter()
            .chain(self.ends.iter().copied())
            .zip(self.ends.iter().copied())
    }
}

/// Instance of a P4 header for a part of a message.
struct Instance {
    ty: String,
    name: String,
    /// Whether the header only marks that something was read, and is not a part of the packet.
    is_mark: bool,
}

fn text_type(bytes: usize) -> String {
    format!("message_text_{bytes}_h")
}

const MARK: &str = "message_mark_h";

impl Program<'_> {
    fn elements(&self, id: ProtocolId) -> impl Iterator<Item = (usize, &Kind)> {
        let elements = self.library.protocols[id].elements().iter().enumerate();
        let depth = self.reads.get(&id).map_or(0, |reads| reads.depth);
        elements
            .take(depth + 1)
            .map(|(index, element)| (index, &element.kind))
    }

    /// Prefix of the names of an element's headers.
    fn stem(&self, id: ProtocolId, index: usize) -> String {
        let protocol = &self.library.protocols[id];
        match protocol.elements()[index].kind {
            Kind::Literal(_) => format!("{}_literal_{index}", protocol.name),
            _ => format!("{}_{}", protocol.name, protocol.fields[index].name),
        }
    }

    fn is_last(&self, id: ProtocolId, index: usize) -> bool {
        self.reads.get(&id).is_none_or(|reads| reads.depth == index)
    }

    fn here(&self, id: ProtocolId) -> String {
        format!("{}_here", self.library.protocols[id].name)
    }

    /// Header instances for the parts of a message, in wire order.
    fn message_instances(&self, id: ProtocolId) -> Vec<Instance> {
        let mut instances = vec![Instance {
            ty: MARK.to_owned(),
            name: self.here(id),
            is_mark: true,
        }];
        let Some(reads) = self.reads.get(&id) else {
            return instances;
        };
        let mut add = |ty: String, name: String| {
            instances.push(Instance {
                is_mark: ty == MARK,
                ty,
                name,
            });
        };
        for (index, kind) in self.elements(id) {
            let stem = self.stem(id, index);
            match kind {
                Kind::Literal(bytes) => add(text_type(bytes.len()), stem),
                Kind::Number { bits, .. } => add(text_type(*bits as usize / 8), stem),
                Kind::Fixed(bytes) => add(text_type(*bytes), stem),
                Kind::Decimal { max, .. } => {
                    (0..=*max).for_each(|n| add(text_type(1), format!("{stem}_{n}")));
                    add(MARK.to_owned(), format!("{stem}_read"));
                }
                Kind::Varint { max } => {
                    (0..*max).for_each(|n| add(text_type(1), format!("{stem}_{n}")));
                    add(MARK.to_owned(), format!("{stem}_read"));
                }
                Kind::Counted { walked: true, .. } => {
                    let lengths = reads.walked.get(&index).into_iter().flatten();
                    for length in lengths.filter(|length| **length > 0) {
                        add(text_type(*length), format!("{stem}_{length}"));
                    }
                    add(MARK.to_owned(), format!("{stem}_read"));
                }
                Kind::Until { max, .. } if !self.is_last(id, index) => {
                    (0..=*max).for_each(|n| add(text_type(1), format!("{stem}_{n}")));
                }
                Kind::Counted { .. } | Kind::Until { .. } => {
                    if matches!(kind, Kind::Counted { .. }) {
                        add(MARK.to_owned(), format!("{stem}_read"));
                    }
                    for (begin, end) in reads.segments() {
                        add(text_type(end - begin), format!("{stem}_{begin}_{end}"));
                    }
                }
            }
        }
        instances
    }

    /// P4 type and instance of each header of a message; with `emitted`, only of headers that are part of the packet.
    pub(super) fn message_headers(&self, id: ProtocolId, emitted: bool) -> Vec<(String, String)> {
        let instances = self.message_instances(id).into_iter();
        instances
            .filter(|instance| !(emitted && instance.is_mark))
            .map(|instance| (instance.ty, instance.name))
            .collect()
    }

    /// Name of the header that is valid if the message is present.
    pub(super) fn message_present(&self, id: ProtocolId) -> String {
        self.here(id)
    }

    /// Name of the header that is valid if an element was read or, for a last text, begun.
    pub(super) fn element_present(&self, id: ProtocolId, index: usize) -> String {
        let stem = self.stem(id, index);
        match &self.library.protocols[id].elements()[index].kind {
            Kind::Decimal { .. } | Kind::Varint { .. } | Kind::Counted { .. } => {
                format!("{stem}_read")
            }
            Kind::Until { .. } if self.is_last(id, index) => format!("{stem}_0_1"),
            Kind::Until { .. } => format!("{stem}_0"),
            _ => stem,
        }
    }

    /// Names of the headers that hold a number's bytes.
    pub(super) fn number_headers(&self, id: ProtocolId, index: usize) -> Vec<String> {
        let stem = self.stem(id, index);
        match &self.library.protocols[id].elements()[index].kind {
            Kind::Decimal { max, .. } => (0..=*max).map(|n| format!("{stem}_{n}")).collect(),
            Kind::Varint { max } => (0..*max).map(|n| format!("{stem}_{n}")).collect(),
            _ => vec![stem],
        }
    }

    /// Name of the header that holds a byte of a text, the header's length in bytes, and the byte's index in it.
    pub(super) fn byte_header(
        &self,
        id: ProtocolId,
        index: usize,
        length: usize,
        byte: usize,
    ) -> (String, usize, usize) {
        let stem = self.stem(id, index);
        match &self.library.protocols[id].elements()[index].kind {
            Kind::Fixed(all) => (stem, *all, byte),
            Kind::Counted { walked: true, .. } => (format!("{stem}_{length}"), length, byte),
            Kind::Until { .. } if !self.is_last(id, index) => (format!("{stem}_{byte}"), 1, 0),
            _ => {
                let mut segments = self.reads.get(&id).into_iter().flat_map(Reads::segments);
                let (begin, end) = segments
                    .find(|(begin, end)| (*begin..*end).contains(&byte))
                    .unwrap_or((byte, byte + 1));
                (format!("{stem}_{begin}_{end}"), end - begin, byte - begin)
            }
        }
    }

    /// Name of the header that is valid if `count` bytes of a text are present.
    pub(super) fn at_least(&self, id: ProtocolId, index: usize, count: usize) -> String {
        self.byte_header(id, index, 0, count - 1).0
    }

    fn reads_messages(&self) -> impl Iterator<Item = ProtocolId> {
        self.reads.keys().copied()
    }
}

/// Writes the P4 header types that messages need.
pub(super) fn write_types(program: &Program<'_>, w: &mut Writer) {
    let instances = program
        .reads_messages()
        .flat_map(|id| program.message_instances(id));
    let types: BTreeSet<String> = instances.map(|instance| instance.ty).collect();
    if types.contains(MARK) {
        w.line("// Marks that an element was read; not a part of the packet.");
        w.open(format!("header {MARK}"));
        w.line("bit<8> unused;");
        w.close();
        w.blank();
    }
    // A segment's header is the longest.
    for bytes in (1..=MAX_SEGMENT).filter(|bytes| types.contains(&text_type(*bytes))) {
        w.open(format!("header {}", text_type(bytes)));
        w.line(format!("bit<{}> text;", 8 * bytes));
        w.close();
        w.blank();
    }
}
