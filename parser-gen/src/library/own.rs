//! Protocol files of a user: sorts them behind their carriers, and checks the limits of a generated parser.

use super::error::{LibraryError, located};
use super::schema::{Declared, EdgeFile, ProtocolFile, parse};

/// Protocol file that a user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolSource {
    /// Name of the user's protocol file, for messages.
    pub file: String,
    /// YAML text of the protocol file.
    pub text: String,
}

/// Maximum size of a user's protocol file in bytes. Handwritten files are smaller, and each line may become parser states.
const MAX_BYTES: usize = 64 * 1024;
/// Maximum number of fields or elements in one protocol.
const MAX_FIELDS: usize = 64;
/// Maximum number of words in a header with options: a count of four bits, as in IPv4 and TCP.
const MAX_WORDS: u32 = 15;

/// Orders protocol files: the shipped files, then the user's, each behind all files that can carry its protocol.
pub(super) fn in_wire_order<'a>(
    shipped: &[(&'a str, &'a str)],
    own: &'a [ProtocolSource],
) -> Result<Vec<(&'a str, &'a str)>, LibraryError> {
    let mut all = shipped.to_vec();
    let mut names: Vec<String> = Vec::new();
    for (file, text) in shipped {
        names.push(parse(file, text)?.name);
    }
    let mut waiting: Vec<(&ProtocolSource, ProtocolFile)> = Vec::new();
    for source in own {
        let wrong = |message| located(&source.file, &source.text, message);
        if source.text.len() > MAX_BYTES {
            let message = format!(
                "the file has {} bytes; the maximum is {MAX_BYTES}",
                source.text.len()
            );
            return Err(wrong(message));
        }
        let parsed = parse(&source.file, &source.text)?;
        bearable(&parsed, &names).map_err(wrong)?;
        if carries(&parsed, &parsed) {
            let name = &parsed.name;
            return Err(wrong(format!(
                "`{name}` is carried by itself, so a parser would loop"
            )));
        }
        names.push(parsed.name.clone());
        waiting.push((source, parsed));
    }
    while !waiting.is_empty() {
        let free = |(_, file): &(_, ProtocolFile)| !waiting.iter().any(|(_, by)| carries(by, file));
        let Some(ready) = waiting.iter().position(free) else {
            let names = waiting.iter().map(|(_, file)| format!("`{}`", file.name));
            let names = names.collect::<Vec<_>>().join(", ");
            let message = format!("{names}: each is carried by another, so a parser would loop");
            let (source, _) = waiting[0];
            return Err(located(&source.file, &source.text, message));
        };
        let (source, _) = waiting.remove(ready);
        all.push((&source.file, &source.text));
    }
    Ok(all)
}

fn carries(before: &ProtocolFile, after: &ProtocolFile) -> bool {
    let leads = |edge: &EdgeFile| edge.to.as_deref() == Some(after.name.as_str());
    before.next.iter().any(leads) || after.carried_by.iter().any(|by| by.by == before.name)
}

/// Checks the rules that hold for a user's file only: no declarations of p4src/common, and no names that could be confused with
/// those of other protocols in the P4 text.
fn bearable(file: &ProtocolFile, others: &[String]) -> Result<(), String> {
    let name = &file.name;
    if file.root || file.metadata.is_some() {
        return Err("remove `root` and `metadata`: a packet begins with Ethernet".to_owned());
    }
    if others.contains(name) {
        return Err(format!(
            "protocol `{name}` already exists: a file cannot redefine it"
        ));
    }
    let within = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('_'));
    if let Some(other) = others
        .iter()
        .find(|other| within(name, other) || within(other, name))
    {
        let message = "their headers' names could be the same";
        return Err(format!("`{name}` and `{other}` begin alike: {message}"));
    }
    let is_value = |name: &str| {
        let number = name.strip_prefix("values");
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if name == "hold" || is_value(name) {
        return Err(format!("`{name}` is a header of every program"));
    }
    let fields = file.fields.iter().map(|field| field.name.as_str());
    let elements = file.message.iter().flatten();
    let elements: Vec<&str> = elements
        .filter_map(|element| {
            let named = [
                &element.number,
                &element.decimal,
                &element.varint,
                &element.text,
            ];
            named.into_iter().find_map(|name| name.as_deref())
        })
        .collect();
    for name in &elements {
        // Names that the generator gives to the parts of a message: `message_headers`.
        let part = |rest: &str| {
            rest == "read"
                || rest
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte == b'_')
        };
        let of = |other: &&&str| {
            name.strip_prefix(**other)
                .and_then(|rest| rest.strip_prefix('_'))
        };
        if let Some(other) = elements.iter().find(|other| of(other).is_some_and(part)) {
            return Err(format!("`{name}` names a part of `{other}`: rename it"));
        }
        if *name == "here" || name.strip_prefix("literal_").is_some_and(part) {
            return Err(format!("`{name}` names a part of each message: rename it"));
        }
    }
    for word in fields.chain(elements).chain([name.as_str()]) {
        if p4lang::lexer::is_reserved(word) {
            return Err(format!("`{word}` is a reserved word of P4"));
        }
    }
    let count = file
        .fields
        .len()
        .max(file.message.as_ref().map_or(0, Vec::len));
    if count > MAX_FIELDS {
        return Err(format!(
            "{count} fields or elements; the maximum is {MAX_FIELDS}"
        ));
    }
    if let Some(header) = &file.header {
        if header.declared != Declared::Generated || header.values {
            return Err("remove `declared` and `values`: only p4src/common uses them".to_owned());
        }
        if header.type_name != format!("{name}_h") {
            return Err(format!(
                "the header's type must be `{name}_h`, not `{}`",
                header.type_name
            ));
        }
    }
    if let Some(options) = file
        .options
        .as_ref()
        .filter(|options| options.max > MAX_WORDS)
    {
        let found = options.max;
        return Err(format!(
            "`options`: `max` is at most {MAX_WORDS} words; found {found}"
        ));
    }
    Ok(())
}
