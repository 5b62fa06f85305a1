//! Runs generated P4 text: parser states, table keys and the deparser, as far as the generator writes them.
//!
//! A second reading of the text, independent of p4lang, and of the generator's own structures.

use std::collections::{BTreeMap, BTreeSet};

use p4lang::runtime::{Match, TableEntry, Value};

const COMMON: [&str; 3] = [
    // As in main.p4 of PSA and v1model.
    "typedef bit<48> time_ns_t;\n",
    include_str!("../../../../p4src/common/types.p4"),
    include_str!("../../../../p4src/common/headers.p4"),
];

#[derive(Debug)]
pub struct Program {
    constants: BTreeMap<String, u128>,
    /// Type to fields, with offset and width in bits.
    headers: BTreeMap<String, Vec<(String, usize, usize)>>,
    /// Instance to type; stacks have one instance per element.
    instances: BTreeMap<String, String>,
    stacks: BTreeSet<String>,
    states: BTreeMap<String, State>,
    /// Name and keys (name, expression) of each table, in the order in which they are applied.
    tables: Vec<(String, Vec<(String, String)>)>,
    emits: Vec<String>,
}

#[derive(Debug, Default)]
struct State {
    note: Option<String>,
    extracts: Vec<String>,
    on: Vec<String>,
    cases: Vec<(Vec<Keyset>, String)>,
}

#[derive(Debug)]
enum Keyset {
    Any,
    Range(String, String),
    Mask(String, String),
}

/// Result of a parser.
#[derive(Debug)]
pub struct Parsed<'a> {
    program: &'a Program,
    /// Instance to its bytes.
    headers: BTreeMap<String, Vec<u8>>,
    rest: Vec<u8>,
    pub note: u128,
    port: u32,
}

impl Program {
    /// Reads the text, and the parser with this name.
    pub fn new(text: &str, parser: &str) -> Program {
        let mut program = Program {
            constants: BTreeMap::new(),
            headers: BTreeMap::new(),
            instances: BTreeMap::new(),
            stacks: BTreeSet::new(),
            states: BTreeMap::new(),
            tables: Vec::new(),
            emits: Vec::new(),
        };
        let source: String = COMMON
            .iter()
            .copied()
            .chain([text])
            .map(without_comments)
            .collect();
        let tokens = tokens(&source);
        let mut widths: BTreeMap<String, usize> = BTreeMap::new();
        let mut at = 0;
        let mut within = String::new();
        while at < tokens.len() {
            let t = |n: usize| tokens.get(at + n).map_or("", String::as_str);
            match t(0) {
                "typedef" => {
                    let (width, used) = width(&tokens[at + 1..], &widths);
                    widths.insert(t(1 + used).to_owned(), width);
                    at += 1 + used;
                }
                "const" if t(1) != "default_action" => {
                    let (_, used) = width(&tokens[at + 1..], &widths);
                    if let Some(value) = number(t(3 + used)) {
                        program.constants.insert(t(1 + used).to_owned(), value);
                    }
                    at += 3 + used;
                }
                "header" => {
                    let name = t(1).to_owned();
                    let mut fields = Vec::new();
                    let mut offset = 0;
                    at += 3;
                    while tokens[at] != "}" {
                        let (width, used) = width(&tokens[at..], &widths);
                        fields.push((tokens[at + used].clone(), offset, width));
                        offset += width;
                        at += used + 2;
                    }
                    program.headers.insert(name, fields);
                }
                "struct" if t(1) == "headers_t" => {
                    at += 3;
                    while tokens[at] != "}" {
                        let ty = tokens[at].clone();
                        if tokens[at + 1] == "[" {
                            let count = number(&tokens[at + 2]).expect("a size") as usize;
                            let name = tokens[at + 4].clone();
                            for n in 0..count {
                                program.instances.insert(format!("{name}[{n}]"), ty.clone());
                            }
                            program.stacks.insert(name);
                            at += 6;
                        } else {
                            program.instances.insert(tokens[at + 1].clone(), ty);
                            at += 3;
                        }
                    }
                }
                "parser" | "control" => within = t(1).to_owned(),
                "state" if within == parser => {
                    let name = t(1).to_owned();
                    at += 3;
                    let state = state(&tokens, &mut at);
                    assert!(
                        program.states.insert(name.clone(), state).is_none(),
                        "state {name} is there twice"
                    );
                }
                "pkt.emit" => program
                    .emits
                    .push(t(2).trim_start_matches("hdr.").to_owned()),
                "table" => program.tables.push((t(1).to_owned(), Vec::new())),
                "key" => {
                    at += 3;
                    while tokens[at] != "}" {
                        let mut expression = String::new();
                        while tokens[at] != ":" {
                            expression.push_str(&tokens[at]);
                            at += 1;
                        }
                        // `: kind @ name ( "…" ) ;`
                        let name = tokens[at + 5].trim_matches('"').to_owned();
                        let (_, keys) = program.tables.last_mut().expect("a table");
                        keys.push((name, expression));
                        at += 8;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        for (name, state) in &program.states {
            for (_, target) in &state.cases {
                let known = target == "accept" || program.states.contains_key(target);
                assert!(known, "state {name} leads to {target}, which is not there");
            }
        }
        program
    }

    pub fn num_states(&self) -> usize {
        self.states.len()
    }

    /// States that no path reaches.
    pub fn unreachable(&self) -> Vec<&str> {
        let mut seen = BTreeSet::from(["start"]);
        let mut todo = vec!["start"];
        while let Some(state) = todo.pop() {
            for (_, target) in self.states.get(state).map_or(&[][..], |state| &state.cases) {
                if seen.insert(target.as_str()) {
                    todo.push(target);
                }
            }
        }
        self.states
            .keys()
            .map(String::as_str)
            .filter(|state| !seen.contains(state))
            .collect()
    }

    pub fn parse(&self, frame: &[u8], port: u32) -> Parsed<'_> {
        let mut parsed = Parsed {
            program: self,
            headers: BTreeMap::new(),
            rest: frame.to_vec(),
            note: 0,
            port,
        };
        let mut at = "start";
        'states: while at != "accept" {
            let state = &self.states[at];
            if let Some(note) = &state.note {
                parsed.note = self.value_of(note);
            }
            for extract in &state.extracts {
                // A mark is valid without bytes.
                if let Some(mark) = extract.strip_prefix('!') {
                    parsed.headers.insert(mark.to_owned(), vec![0]);
                    continue;
                }
                let instance = match extract.strip_suffix(".next") {
                    None => extract.clone(),
                    Some(stack) => (0..)
                        .map(|n| format!("{stack}[{n}]"))
                        .find(|name| !parsed.headers.contains_key(name))
                        .expect("a free element"),
                };
                let ty = self
                    .instances
                    .get(&instance)
                    .unwrap_or_else(|| panic!("no header {instance}"));
                let bits: usize = self.headers[ty].iter().map(|(_, _, width)| width).sum();
                if parsed.rest.len() < bits / 8 {
                    break 'states;
                }
                let tail = parsed.rest.split_off(bits / 8);
                let head = std::mem::replace(&mut parsed.rest, tail);
                assert!(
                    parsed.headers.insert(instance.clone(), head).is_none(),
                    "{instance} extracted twice"
                );
            }
            let values: Vec<u128> = state.on.iter().map(|on| parsed.value(on)).collect();
            at = state
                .cases
                .iter()
                .find(|(keys, _)| {
                    keys.iter().zip(&values).all(|(key, value)| match key {
                        Keyset::Any => true,
                        Keyset::Range(low, high) => {
                            (self.value_of(low)..=self.value_of(high)).contains(value)
                        }
                        Keyset::Mask(bits, mask) => {
                            value & self.value_of(mask) == self.value_of(bits)
                        }
                    })
                })
                .map(|(_, target)| target.as_str())
                .expect("every select has a default");
        }
        parsed
    }

    fn value_of(&self, text: &str) -> u128 {
        number(text).unwrap_or_else(|| {
            *self
                .constants
                .get(text)
                .unwrap_or_else(|| panic!("no constant {text}"))
        })
    }
}

impl Parsed<'_> {
    fn is_valid(&self, instance: &str) -> bool {
        self.headers.contains_key(instance)
    }

    fn value(&self, expression: &str) -> u128 {
        if let Some(valid) = expression
            .strip_prefix("hdr.")
            .and_then(|e| e.strip_suffix(".isValid()"))
        {
            assert!(
                self.program.instances.contains_key(valid),
                "no header {valid}"
            );
            return u128::from(self.is_valid(valid));
        }
        if expression == "meta.port" {
            return u128::from(self.port);
        }
        let path = expression
            .strip_prefix("hdr.")
            .unwrap_or_else(|| panic!("what is {expression}?"));
        let (instance, field) = path.split_once('.').expect("a field");
        let ty = &self.program.instances[instance];
        let (_, offset, width) = self.program.headers[ty]
            .iter()
            .find(|(name, _, _)| name == field)
            .unwrap_or_else(|| panic!("no field {expression}"));
        match self.headers.get(instance) {
            // Undefined in P4; all ones reveals entries that depend on it.
            None => u128::MAX >> (128 - width),
            Some(bytes) => (*offset..offset + width).fold(0, |value, bit| {
                value << 1 | u128::from(bytes[bit / 8] >> (7 - bit % 8) & 1)
            }),
        }
    }

    /// Class that the tables find with these entries.
    pub fn class(&self, entries: &[TableEntry]) -> usize {
        let (mut state, mut class) = (0, 0);
        for (table, keys) in &self.program.tables {
            let own = entries
                .iter()
                .filter(|entry| entry.table.ends_with(&format!(".{table}")));
            let hits: Vec<_> = own.filter(|entry| self.fits(keys, entry, state)).collect();
            let Some(hit) = hits.iter().max_by_key(|entry| entry.priority) else {
                continue;
            };
            let best = hits
                .iter()
                .filter(|entry| entry.priority == hit.priority)
                .count();
            assert_eq!(best, 1, "{table}: several entries of one priority match");
            let (_, value) = &hit.action.params[0];
            let value: u32 = value.to().expect("a small number");
            if hit.action.name.ends_with(".step") {
                state = value;
            } else {
                (class, state) = (value as usize, 0);
            }
        }
        class
    }

    fn fits(&self, keys: &[(String, String)], entry: &TableEntry, state: u32) -> bool {
        entry.key.iter().all(|field| {
            let (_, expression) = keys
                .iter()
                .find(|(name, _)| *name == field.field)
                .unwrap_or_else(|| panic!("{} has no key {}", entry.table, field.field));
            let found = match expression.as_str() {
                "state" => u128::from(state),
                expression => self.value(expression),
            };
            match &field.value {
                Match::Exact(value) | Match::Optional(value) => *value == found,
                Match::Ternary { value, mask } => {
                    assert!(
                        value.is_within(mask),
                        "{}: bits outside the mask",
                        field.field
                    );
                    &Value::from(found) & mask == *value
                }
                Match::Range { low, high } => (low..=high).contains(&&found.into()),
                Match::Lpm { .. } => panic!("no LPM is generated"),
            }
        })
    }

    /// The packet as the deparser writes it.
    pub fn deparsed(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for instance in &self.program.emits {
            if self.program.stacks.contains(instance) {
                for n in 0.. {
                    match self.headers.get(&format!("{instance}[{n}]")) {
                        Some(element) => bytes.extend(element),
                        None => break,
                    }
                }
            }
            bytes.extend(self.headers.get(instance).into_iter().flatten());
        }
        bytes.extend(&self.rest);
        bytes
    }
}

fn state(tokens: &[String], at: &mut usize) -> State {
    let mut state = State::default();
    loop {
        match tokens[*at].as_str() {
            "meta.parse_note" => {
                state.note = Some(tokens[*at + 2].clone());
                *at += 4;
            }
            word if word.ends_with(".setValid") => {
                let mark = word
                    .trim_start_matches("hdr.")
                    .trim_end_matches(".setValid");
                state.extracts.push(format!("!{mark}"));
                *at += 4;
            }
            "pkt.extract" => {
                state
                    .extracts
                    .push(tokens[*at + 2].trim_start_matches("hdr.").to_owned());
                *at += 5;
            }
            "transition" if tokens[*at + 1] == "select" => {
                *at += 3;
                while tokens[*at] != ")" {
                    if tokens[*at] != "," {
                        state.on.push(tokens[*at].clone());
                    }
                    *at += 1;
                }
                *at += 2;
                while tokens[*at] != "}" {
                    let mut keys = Vec::new();
                    while tokens[*at] != ":" {
                        match tokens[*at].as_str() {
                            "(" | ")" | "," | "default" => {}
                            "_" => keys.push(Keyset::Any),
                            "&" => {
                                *at += 3;
                                let mask = tokens[*at].clone();
                                if let Some(Keyset::Range(bits, _)) = keys.pop() {
                                    keys.push(Keyset::Mask(bits, mask));
                                }
                            }
                            ".." => {
                                *at += 1;
                                let high = tokens[*at].clone();
                                if let Some(Keyset::Range(_, end)) = keys.last_mut() {
                                    *end = high;
                                }
                            }
                            value => keys.push(Keyset::Range(value.to_owned(), value.to_owned())),
                        }
                        *at += 1;
                    }
                    state.cases.push((keys, tokens[*at + 1].clone()));
                    *at += 3;
                }
                return state;
            }
            "transition" => {
                state.cases.push((Vec::new(), tokens[*at + 1].clone()));
                return state;
            }
            other => panic!("what is `{other}` in a state?"),
        }
    }
}

/// Width of a type and the number of its tokens.
fn width(tokens: &[String], named: &BTreeMap<String, usize>) -> (usize, usize) {
    if tokens[0] == "bit" {
        (number(&tokens[2]).expect("a width") as usize, 4)
    } else {
        (
            *named
                .get(&tokens[0])
                .unwrap_or_else(|| panic!("no type {}", tokens[0])),
            1,
        )
    }
}

fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn without_comments(text: &str) -> String {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or("").to_owned() + "\n")
        .collect()
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let end = if first == '"' {
            rest[1..].find('"').map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("..") {
            2
        } else if is_word(first) {
            let run = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            rest[..run].find("..").unwrap_or(run)
        } else {
            first.len_utf8()
        };
        tokens.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    tokens
}
