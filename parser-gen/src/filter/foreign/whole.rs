//! Translates whole filters of tcpdump, iptables and Wireshark into this language; offers only valid filters.

use super::hint::{Mask, masked, number_of};
use super::{Meaning, flags};
use crate::filter::Filter;
use crate::library::Library;

/// Valid filter that an invalid text of another tool's language probably means.
pub(in crate::filter) fn rewritten(library: &Library, text: &str) -> Option<String> {
    let pieces = pieces(text);
    let candidates = [
        Some(respelled(library, &pieces)),
        tcpdump(&pieces),
        iptables(text),
    ];
    let mut candidates = candidates.into_iter().flatten();
    candidates.find(|candidate| Filter::read(library, candidate).is_ok())
}

/// Splits a filter's text into words with their brackets, strings, and operator signs.
fn pieces(text: &str) -> Vec<&str> {
    let is_sign = |c: char| matches!(c, '=' | '!' | '<' | '>' | '&' | '|');
    let mut pieces = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            '(' | ')' | '{' | '}' | ',' => 1,
            '!' if !rest.starts_with("!=") => 1,
            c if is_sign(c) => rest.find(|c| !is_sign(c)).unwrap_or(rest.len()),
            _ => {
                let is_end = |c: char| {
                    c.is_whitespace() || is_sign(c) || matches!(c, '(' | ')' | '{' | '}' | ',')
                };
                rest.find(is_end).unwrap_or(rest.len())
            }
        };
        pieces.push(&rest[..end]);
        rest = rest[end..].trim_start();
    }
    pieces
}

fn joined(pieces: &[String]) -> String {
    let mut text = String::new();
    for piece in pieces {
        let is_close = matches!(piece.as_str(), ")" | "}" | ",");
        let is_open = text.is_empty() || text.ends_with(['(', '{', '!']);
        if !is_close && !is_open {
            text.push(' ');
        }
        text.push_str(piece);
    }
    text
}

/// Rewrites Wireshark's words for operators, sets without commas, single signs of C, and masks of flags in this language.
fn respelled(library: &Library, pieces: &[&str]) -> String {
    let mut out: Vec<String> = Vec::new();
    let (mut at, mut in_set) = (0, false);
    while at < pieces.len() {
        if let Some((length, filter)) = mask(library, &pieces[at..]) {
            out.push(filter);
            at += length;
            continue;
        }
        let piece = pieces[at];
        let is_value = !matches!(piece, "{" | "}" | "," | "..");
        let before = out.last().map_or("", String::as_str);
        if in_set && is_value && !matches!(before, "{" | "," | "..") {
            out.push(",".to_owned());
        }
        in_set = piece == "{" || in_set && piece != "}";
        let own = match piece {
            "eq" | "=" | "===" => "==",
            "ne" | "<>" => "!=",
            "lt" => "<",
            "gt" => ">",
            "le" => "<=",
            "ge" => ">=",
            "&" | "AND" => "&&",
            "|" | "OR" => "||",
            "NOT" => "!",
            other => other,
        };
        out.push(own.to_owned());
        at += 1;
    }
    joined(&out)
}

/// Translates a mask of flags, as in `tcp.flags & 2 != 0`, `(tcp.flags & 2) == 2` or `tcp[tcpflags]
/// & (tcp-syn|tcp-ack) != 0`. Returns how many pieces the mask takes, and the filter.
fn mask(library: &Library, pieces: &[&str]) -> Option<(usize, String)> {
    let group = |piece: &str| match piece {
        "tcp[13]" | "tcp[tcpflags]" => flags(library, "tcp.flags"),
        name => flags(library, name),
    };
    let is_open = *pieces.first()? == "(";
    let mut at = usize::from(is_open);
    let Some(Meaning::Flags(all)) = group(pieces.get(at)?) else {
        return None;
    };
    if *pieces.get(at + 1)? != "&" {
        return None;
    }
    at += 2;
    let bit = |word: &str| match word.strip_prefix("tcp-") {
        Some(name) => {
            let index = all
                .iter()
                .position(|flag| flag.rsplit('.').next() == Some(name));
            Some(1 << (all.len() - 1 - index?))
        }
        None => number_of(word),
    };
    let mut value = 0;
    if pieces.get(at) == Some(&"(") {
        at += 1;
        loop {
            value |= bit(pieces.get(at)?)?;
            at += 2;
            match *pieces.get(at - 1)? {
                "|" => {}
                ")" => break,
                _ => return None,
            }
        }
    } else {
        value = bit(pieces.get(at)?)?;
        at += 1;
    }
    if is_open {
        if pieces.get(at) != Some(&")") {
            return None;
        }
        at += 1;
    }
    let wanted = match (
        pieces.get(at).copied(),
        pieces.get(at + 1).and_then(|word| bit(word)),
    ) {
        (Some("!=" | ">"), Some(0)) => Mask::Some,
        (Some("=" | "=="), Some(0)) => Mask::None,
        (Some("=" | "=="), Some(all)) if all == value => Mask::All,
        (None | Some("&&" | "||" | "and" | "or" | ")"), _) => {
            return Some((at, masked(&all, value, Mask::Some)?));
        }
        _ => return None,
    };
    Some((at + 2, masked(&all, value, wanted)?))
}

/// Translates a tcpdump filter such as `tcp port 80 and not src host 10.0.0.1`.
fn tcpdump(pieces: &[&str]) -> Option<String> {
    let mut out: Vec<String> = Vec::new();
    let mut rest = pieces.iter().copied().peekable();
    let mut is_tcpdump = false;
    while let Some(piece) = rest.next() {
        if matches!(
            piece,
            "and" | "or" | "not" | "&&" | "||" | "!" | "(" | ")" | "&" | "|"
        ) {
            out.push(
                match piece {
                    "and" | "&" => "&&",
                    "or" | "|" => "||",
                    "not" => "!",
                    own => own,
                }
                .to_owned(),
            );
            continue;
        }
        let is_protocol = matches!(piece, "ip" | "ip6" | "tcp" | "udp" | "icmp" | "arp");
        let next = match is_protocol {
            true => rest.next_if(|next| is_primitive(next)),
            false => Some(piece),
        };
        let Some(word) = next else {
            let own = if piece == "ip6" { "ipv6" } else { piece };
            out.push(own.to_owned());
            continue;
        };
        let (end, kind) = match word {
            "src" | "dst" => (Some(word), rest.next_if(|next| is_primitive(next))),
            kind => (None, Some(kind)),
        };
        let value = rest.next()?;
        let fields: Vec<String> = match kind.unwrap_or("host") {
            "host" | "net" => {
                let protocol = if value.contains(':') { "ipv6" } else { "ip" };
                both(end, ["src", "dst"])
                    .map(|end| format!("{protocol}.{end} == {value}"))
                    .collect()
            }
            kind @ ("port" | "portrange") => {
                let asked = match kind {
                    "port" => format!("== {value}"),
                    _ => {
                        let (low, high) = value.split_once('-')?;
                        format!("in {{{low}..{high}}}")
                    }
                };
                let protocols = match piece {
                    "tcp" | "udp" => vec![piece],
                    _ => vec!["tcp", "udp"],
                };
                let of = |protocol: &str| {
                    let ends = both(end, ["sport", "dport"]);
                    let fields = ends.map(|end| format!("{protocol}.{end} {asked}"));
                    fields.collect::<Vec<_>>()
                };
                protocols.into_iter().flat_map(of).collect()
            }
            _ => return None,
        };
        is_tcpdump = true;
        out.push(match fields.as_slice() {
            [one] => one.clone(),
            several => format!("({})", several.join(" || ")),
        });
    }
    is_tcpdump.then(|| joined(&out))
}

fn is_primitive(word: &str) -> bool {
    matches!(word, "src" | "dst" | "host" | "net" | "port" | "portrange")
}

/// Name of the field for the given end of a connection, or of the fields for both ends if none is given.
fn both<'a>(end: Option<&str>, [from, to]: [&'a str; 2]) -> impl Iterator<Item = &'a str> {
    let ends = match end {
        Some("src") => [Some(from), None],
        Some(_) => [None, Some(to)],
        None => [Some(from), Some(to)],
    };
    ends.into_iter().flatten()
}

/// Translates an iptables rule such as `-p tcp -s 10.0.0.1 --dport 80`.
fn iptables(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let mut protocol = "tcp";
    let mut parts = Vec::new();
    while let Some(option) = words.next() {
        if !option.starts_with('-') {
            return None;
        }
        let value = words.next()?;
        let asked = match value.split_once(':') {
            Some((low, high)) => format!("in {{{low}..{high}}}"),
            None if value.contains(',') => format!("in {{{}}}", value.replace(',', ", ")),
            None => format!("== {value}"),
        };
        match option {
            "-p" | "--protocol" => {
                protocol = value;
                parts.push(value.to_owned());
            }
            "-s" | "--source" | "--src" => parts.push(format!("ip.src == {value}")),
            "-d" | "--destination" | "--dst" => parts.push(format!("ip.dst == {value}")),
            "--sport" | "--source-port" | "--sports" => {
                parts.push(format!("{protocol}.sport {asked}"));
            }
            "--dport" | "--destination-port" | "--dports" => {
                parts.push(format!("{protocol}.dport {asked}"));
            }
            // Module and verdict do not restrict packets.
            "-m" | "--match" | "-j" | "--jump" | "-A" | "-I" => {}
            _ => return None,
        }
    }
    let names_a_field = |part: &String| part.starts_with(&format!("{protocol}."));
    if parts.iter().any(names_a_field) {
        parts.retain(|part| part != protocol);
    }
    (!parts.is_empty()).then(|| parts.join(" && "))
}
