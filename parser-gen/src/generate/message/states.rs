//! Writes the P4 parser states that read a message.

use std::collections::{BTreeMap, BTreeSet};

use super::super::Program;
use super::super::notes::COMPLETE;
use super::Reads;
use crate::library::{Kind, ProtocolId};
use crate::writer::{Transition, Writer, extract};

/// Writes the parser states that read a message as deep as the filters test it.
pub(in super::super) fn write_states(program: &Program<'_>, id: ProtocolId, w: &mut Writer) {
    let Some(reads) = program.reads.get(&id) else {
        return;
    };
    let mut walker = Walker {
        program,
        id,
        reads,
        name: program.library.protocols[id].name.clone(),
        written: BTreeSet::new(),
        w,
    };
    walker.element(0, None);
}

struct Walker<'a> {
    program: &'a Program<'a>,
    id: ProtocolId,
    reads: &'a Reads,
    name: String,
    /// Names of the parser states that are already written.
    written: BTreeSet<String>,
    w: &'a mut Writer,
}

/// Transitions of a parser state by the byte that it has read: (select value, next state).
type Ways = Vec<(String, String)>;

impl Walker<'_> {
    fn kind(&self, index: usize) -> &Kind {
        &self.program.library.protocols[self.id].elements()[index].kind
    }

    fn state(&mut self, name: &str, statements: &[String], transition: &Transition) {
        if self.written.insert(name.to_owned()) {
            self.w.state(name, statements, transition);
        }
    }

    /// Name of the first parser state of an element. `length` is that of the next counted text, once it is known.
    fn entry(&self, index: usize, length: Option<usize>) -> String {
        let at = if index == 0 {
            String::new()
        } else {
            format!("_{index}")
        };
        let length = length.map_or(String::new(), |length| format!("_for_{length}"));
        format!("parse_{}{at}{length}", self.name)
    }

    /// Name of the parser state behind an element; writes the states of the next element first.
    fn behind(&mut self, index: usize, length: Option<usize>) -> String {
        let next = if index == self.reads.depth {
            COMPLETE.to_owned()
        } else {
            self.element(index + 1, length);
            self.entry(index + 1, length)
        };
        if index > 0 {
            return next;
        }
        // The message is present as soon as its first element is.
        let begun = match length {
            None => format!("parse_{}_begun", self.name),
            Some(length) => format!("parse_{}_begun_for_{length}", self.name),
        };
        let here = set_valid(&self.program.here(self.id));
        self.state(&begun, &[here], &Transition::To(next));
        begun
    }

    /// Name of the parser state behind a number that is not the length of any text that filters let pass.
    fn given_up(&mut self, index: usize) -> String {
        if index > 0 {
            return COMPLETE.to_owned();
        }
        let begun = format!("parse_{}_begun_only", self.name);
        let here = set_valid(&self.program.here(self.id));
        self.state(&begun, &[here], &Transition::to(COMPLETE));
        begun
    }

    fn element(&mut self, index: usize, length: Option<usize>) {
        let entry = self.entry(index, length);
        if self.written.contains(&entry) {
            return;
        }
        let stem = self.program.stem(self.id, index);
        let mut statements = Vec::new();
        if index == 0 {
            self.w.line(
                "// A message that differs from the filters' format does not match, whatever the reason.",
            );
            statements.push("meta.parse_note = NOTE_NONE;".to_owned());
        }
        match self.kind(index).clone() {
            Kind::Literal(bytes) => {
                statements.push(extract(&stem));
                let next = self.behind(index, length);
                let value = bytes
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>();
                let cases = vec![(vec![format!("0x{value}")], next)];
                let on = format!("hdr.{stem}.text");
                self.state(
                    &entry,
                    &statements,
                    &Transition::select(&[&on], cases, COMPLETE),
                );
            }
            Kind::Fixed(_) => {
                statements.push(extract(&stem));
                let next = self.behind(index, None);
                self.state(&entry, &statements, &Transition::To(next));
            }
            Kind::Number { bits, signed } => {
                statements.push(extract(&stem));
                let transition = match self.counts(index) {
                    None if signed => {
                        let negative = format!("{0:#x} &&& {0:#x}", 1_u64 << (bits - 1));
                        let cases = vec![(vec![negative], self.given_up(index))];
                        let next = self.behind(index, None);
                        Transition::select(&[&format!("hdr.{stem}.text")], cases, &next)
                    }
                    None => Transition::To(self.behind(index, None)),
                    Some((less, lengths)) => {
                        let cases = lengths.iter().map(|length| {
                            let next = self.behind(index, Some(*length));
                            (vec![(length + less as usize).to_string()], next)
                        });
                        let cases = cases.collect();
                        let otherwise = self.given_up(index);
                        Transition::select(&[&format!("hdr.{stem}.text")], cases, &otherwise)
                    }
                };
                self.state(&entry, &statements, &transition);
            }
            Kind::Decimal { .. } | Kind::Varint { .. } => {
                self.numeral(index, &entry, statements);
            }
            Kind::Counted { walked: true, .. } => {
                let length = length.unwrap_or(0);
                if length > 0 {
                    statements.push(extract(&format!("{stem}_{length}")));
                }
                statements.push(set_valid(&format!("{stem}_read")));
                let next = self.behind(index, None);
                self.state(&entry, &statements, &Transition::To(next));
            }
            Kind::Until { ends, stops, max } if index < self.reads.depth => {
                let next = self.behind(index, None);
                for byte in 0..=max {
                    let name = |byte: usize| match byte {
                        0 => entry.clone(),
                        byte => format!("{entry}_byte_{byte}"),
                    };
                    let mut statements = if byte == 0 {
                        statements.clone()
                    } else {
                        Vec::new()
                    };
                    statements.push(extract(&format!("{stem}_{byte}")));
                    let mut cases: Vec<(Vec<String>, String)> = ends
                        .iter()
                        .map(|end| {
                            let stops = stops.contains(end);
                            let to = if stops {
                                COMPLETE.to_owned()
                            } else {
                                next.clone()
                            };
                            (vec![format!("{end:#04x}")], to)
                        })
                        .collect();
                    let mut otherwise = if byte < max {
                        name(byte + 1)
                    } else {
                        COMPLETE.to_owned()
                    };
                    if index == 0 && byte == 0 {
                        // The message is present with its first byte, whatever that is.
                        let begun = format!("{entry}_first");
                        let on = format!("hdr.{stem}_0.text");
                        let select =
                            Transition::select(&[&on], std::mem::take(&mut cases), &otherwise);
                        let here = set_valid(&self.program.here(self.id));
                        self.state(&begun, &[here], &select);
                        otherwise = begun;
                    }
                    let on = format!("hdr.{stem}_{byte}.text");
                    let transition = if cases.is_empty() {
                        Transition::To(otherwise)
                    } else {
                        Transition::select(&[&on], cases, &otherwise)
                    };
                    self.state(&name(byte), &statements, &transition);
                }
            }
            Kind::Counted { .. } | Kind::Until { .. } => {
                let mut segments: Vec<String> = self
                    .reads
                    .segments()
                    .map(|(begin, end)| extract(&format!("{stem}_{begin}_{end}")))
                    .collect();
                if matches!(self.kind(index), Kind::Counted { .. }) {
                    segments.insert(0, set_valid(&format!("{stem}_read")));
                } else if index == 0 && !segments.is_empty() {
                    segments.insert(1, set_valid(&self.program.here(self.id)));
                }
                statements.extend(segments);
                self.state(&entry, &statements, &Transition::to(COMPLETE));
            }
        }
    }

    /// For a number that counts a text: the amount to subtract, and the lengths that are read; `None` if no text needs it.
    fn counts(&self, number: usize) -> Option<(u32, BTreeSet<usize>)> {
        let mut index = number + 1;
        while index <= self.reads.depth {
            match self.kind(index) {
                Kind::Literal(_) => index += 1,
                Kind::Counted {
                    less, walked: true, ..
                } => {
                    return Some((*less, self.reads.walked.get(&index)?.clone()));
                }
                _ => return None,
            }
        }
        None
    }

    /// Writes the parser states of a decimal number or varint, which read it byte by byte.
    fn numeral(&mut self, index: usize, entry: &str, statements: Vec<String>) {
        let kind = self.kind(index).clone();
        let mut known: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        let counts = self.counts(index);
        if let Some((less, lengths)) = &counts {
            for length in lengths {
                let next = self.behind(index, Some(*length));
                known.insert(spelt(&kind, *length as u32 + less), next);
            }
        }
        // Other numbers are read to their ends only if a filter tests for their presence.
        let goes_on = counts.is_none() || index == 0 || self.reads.numbers.contains(&index);
        let other = goes_on.then(|| match counts {
            None => self.behind(index, None),
            Some(_) => self.given_up(index),
        });
        let numeral = NumeralStates {
            kind,
            stem: self.program.stem(self.id, index),
            entry: entry.to_owned(),
            known,
            other,
        };
        self.numeral_state(&numeral, &[], false, &statements);
    }

    /// Writes the state behind the bytes `before` of a numeral, and returns its name. `is_other`: they begin no known number.
    fn numeral_state(
        &mut self,
        of: &NumeralStates,
        before: &[u8],
        is_other: bool,
        statements: &[String],
    ) -> String {
        let at = before.len();
        let name = if at == 0 {
            of.entry.clone()
        } else if is_other {
            let zero = if before == b"0" { "_zero" } else { "" };
            format!("{}_byte_{at}{zero}", of.entry)
        } else {
            let spelt: String = before.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}_is_{spelt}", of.entry)
        };
        if self.written.contains(&name) {
            return name;
        }
        let mut ways: Ways = Vec::new();
        let mut taken = BTreeSet::new();
        if !is_other {
            let spelt = of.known.keys().filter(|spelt| spelt.starts_with(before));
            let next: BTreeSet<u8> = spelt.filter_map(|spelt| spelt.get(at).copied()).collect();
            for byte in next {
                taken.insert(byte);
                let so_far = [before, &[byte]].concat();
                let to = match of.known.get(&so_far) {
                    Some(next) => self.read(&of.stem, next),
                    None => self.numeral_state(of, &so_far, false, &[]),
                };
                ways.push((format!("{byte:#04x}"), to));
            }
        }
        if let Some(next) = &of.other {
            for (low, high, ends) in followers(&of.kind, before) {
                let to = if ends {
                    self.read(&of.stem, next)
                } else {
                    let so_far = [before, &[low]].concat();
                    self.numeral_state(of, &so_far, true, &[])
                };
                let range = if low == high {
                    format!("{low:#04x}")
                } else {
                    format!("{low:#04x}..{high:#04x}")
                };
                if !(low == high && taken.contains(&low)) {
                    ways.push((range, to));
                }
            }
        }
        let instance = format!("{}_{at}", of.stem);
        let mut all = statements.to_vec();
        all.push(extract(&instance));
        let cases = ways.into_iter().map(|(on, to)| (vec![on], to)).collect();
        let on = format!("hdr.{instance}.text");
        self.state(&name, &all, &Transition::select(&[&on], cases, COMPLETE));
        name
    }

    /// Writes the parser state that marks a number as read, and returns its name.
    fn read(&mut self, stem: &str, next: &str) -> String {
        let name = format!("{}_read_then_{next}", stem);
        let mark = set_valid(&format!("{stem}_read"));
        self.state(&name, &[mark], &Transition::to(next));
        name
    }
}

struct NumeralStates {
    kind: Kind,
    stem: String,
    entry: String,
    /// Names of the parser states behind known numbers, by the numbers' bytes.
    known: BTreeMap<Vec<u8>, String>,
    /// Name of the parser state behind all other numbers; `None` if they are not read.
    other: Option<String>,
}

/// Bytes of a written number, the byte that ends it included.
fn spelt(kind: &Kind, number: u32) -> Vec<u8> {
    if let Kind::Decimal { end, .. } = kind {
        let mut bytes = number.to_string().into_bytes();
        bytes.push(*end);
        return bytes;
    }
    let mut left = number;
    let mut bytes = Vec::new();
    while left >= 0x80 {
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    bytes
}

/// Bytes that may follow the bytes `before` in a number, as ranges (first, last), and whether they end the number.
fn followers(kind: &Kind, before: &[u8]) -> Vec<(u8, u8, bool)> {
    let at = before.len();
    match kind {
        Kind::Decimal { max, end } => {
            let is_zero = at == 1 && before == b"0";
            let mut ways = Vec::new();
            if at == 0 {
                ways.extend([(b'0', b'0', false), (b'1', b'9', false)]);
            } else if at < *max && !is_zero {
                ways.push((b'0', b'9', false));
            }
            // The end of a known number has a state of its own.
            ways.extend((at > 0).then_some((*end, *end, true)));
            ways
        }
        Kind::Varint { max } => {
            let least = u8::from(at > 0);
            let mut ways = vec![(least, 0x7f, true)];
            ways.extend((at + 1 < *max).then_some((0x80, 0xff, false)));
            ways
        }
        _ => Vec::new(),
    }
}

fn set_valid(instance: &str) -> String {
    format!("hdr.{instance}.setValid();")
}
