//! Protocol files of a user: the walkthrough of docs/protocols.md and headers that carry each other, executed; and refused
//! files.

use crate::common::Random;
use crate::common::bench::{ARCHES, Bench, expected};
use parser_gen::{Filter, Flow, Library, Options, ProtocolSource, generate};

const MEMO: &str = include_str!("../../../testbeds/scenarios/protocols/memo.yaml");

const SHIM: &str = "
name: shim
filter: shim
about: what stands before a cell
header: {type: shim_h}
fields:
  - {name: version, bits: 4, filter: shim.version, about: x}
  - {name: spare, bits: 4}
  - {name: kind, bits: 8, filter: shim.kind, about: x}
select: [version, kind]
carried_by:
  - {by: udp, when: [9999]}
";

const CELL: &str = "
name: cell
filter: cell
about: x
header: {type: cell_h}
fields:
  - {name: id, bits: 16, filter: cell.id, about: x}
  - {name: to, bits: 32, filter: cell.to, type: ipv4, about: x}
carried_by:
  - {by: shim, when: [1, any]}
";

fn source(file: &str, text: &str) -> ProtocolSource {
    ProtocolSource {
        file: file.to_owned(),
        text: text.to_owned(),
    }
}

/// The carried file comes before its carrier: the order does not matter.
fn library() -> Library {
    let files = [
        ("cell.yaml", CELL),
        ("memo.yaml", MEMO),
        ("shim.yaml", SHIM),
    ];
    Library::with(&files.map(|(file, text)| source(file, text))).expect("a library")
}

fn frame(random: &mut Random) -> Vec<u8> {
    let mut any = |of: &[u8]| of[random.below(of.len())];
    let (is_udp, is_there) = (any(&[0, 1]) == 1, any(&[0, 1, 1, 1]) == 1);
    let mut payload = match is_udp {
        true => vec![
            any(&[0x10, 0x11, 0x20]),
            any(&[1, 2]),
            0,
            any(&[7, 8]),
            10,
            0,
            0,
            any(&[1, 2]),
        ],
        false => {
            let author: &[u8] =
                [&b"ann"[..], b"bob", b"sixteen-bytes-xx"][usize::from(any(&[0, 1, 2]))];
            let mut note = b"MEMO".to_vec();
            note.extend([any(&[1, 2]), author.len() as u8]);
            note.extend(author);
            note.extend(format!("{}\n", u32::from(any(&[0, 9, 100, 250])) * 3).bytes());
            note.extend([&b"urgent: x\n"[..], b"url\n", b"no\n"][usize::from(any(&[0, 1, 2]))]);
            note
        }
    };
    if any(&[0, 0, 0, 1]) == 1 {
        let at = random.below(payload.len());
        payload[at] ^= 1 << random.below(8);
    }
    if random.below(4) == 0 {
        payload.truncate(random.below(payload.len() + 1));
    }
    let port: u16 = match (is_udp, is_there) {
        (true, true) => 9999,
        (false, true) => 7070,
        _ => 81,
    };
    let mut frame = vec![
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64,
    ];
    frame.extend([
        if is_udp { 17 } else { 6 },
        0,
        0,
        10,
        0,
        0,
        1,
        10,
        0,
        0,
        2,
        0x9C,
        0x40,
    ]);
    frame.extend(port.to_be_bytes());
    match is_udp {
        true => frame.extend([0; 4]),
        false => frame.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 0xFF, 0xFF, 0, 0, 0, 0]),
    }
    frame.extend(payload);
    frame
}

#[test]
fn the_switch_reads_protocols_of_the_users_on_all_architectures() {
    let library = library();
    let filters = [
        r#"memo.author == "ann""#,
        "memo.priority >= 500",
        r#"memo.author == "bob" && memo.title startswith "ur""#,
        "memo.version != 1",
        "shim.kind == 1",
        "cell.id == 7 && cell.to == 10.0.0.1",
        "cell || shim.version == 2",
        "!memo",
    ];
    let flows: Vec<Flow> = filters
        .iter()
        .enumerate()
        .map(|(n, text)| Flow {
            name: format!("f{n}"),
            filter: Filter::parse(&library, text).unwrap_or_else(|error| panic!("{error}")),
        })
        .collect();
    let generated = generate(&library, &flows, &Options::default()).expect("generates");
    let mut benches = ARCHES.map(|arch| Bench::new(arch, &generated));
    let mut random = Random(5);
    let mut met = vec![0; filters.len()];
    for _ in 0..3000 {
        let frame = frame(&mut random);
        let expected = expected(&library, &flows, &frame);
        for (bench, arch) in benches.iter_mut().zip(ARCHES) {
            let (class, _) = bench.send(&frame);
            let found = &generated.classes().sets()[class];
            assert_eq!(found, &expected, "{arch:?} {frame:02x?}\n{}", generated.p4);
        }
        expected.iter().for_each(|flow| met[*flow] += 1);
    }
    assert!(met.iter().all(|met| *met > 20), "{met:?}");
}

#[test]
fn the_walk_through_is_the_shipped_file() {
    let page = include_str!("../../../docs/protocols.md");
    assert!(page.contains(MEMO), "not in docs/protocols.md:\n{MEMO}");
}

/// A user's file with the name of a shipped one is another file.
#[test]
fn a_file_called_as_a_shipped_one_is_pointed_at_itself() {
    let text = MEMO.replace("[7070]", "[http]");
    let error = Library::with(&[source("tcp.yaml", &text)]).expect_err("no number");
    assert_eq!(
        (error.file.as_str(), error.line, error.column),
        ("tcp.yaml", 12, 22)
    );
}

#[test]
fn numbers_that_count_a_text_say_how_much_may_be_taken_away() {
    for (number, most) in [
        ("{number: n, bits: 8}", 255_u64),
        ("{number: n, bits: 16, signed: true}", 32_767),
        ("{decimal: n, max: 2, until: [\":\"]}", 99),
        ("{varint: n, max: 1}", 127),
    ] {
        let of = |less: u64| {
            let text = format!(
                "name: t\nfilter: t\nabout: t\nmessage:\n  - {number}\n  - {{text: x, length: n, less: {less}, max: 4, filter: t.x, about: x}}\n\
                 carried_by: [{{by: tcp, when: [7070]}}]\n"
            );
            Library::with(&[source("t.yaml", &text)])
        };
        // The number's maximum, minus `less`, bounds the text.
        let library = of(most - 2).expect("two bytes are left");
        assert_eq!(library.field("t.x").map(|field| field.max_bytes), Some(2));
        let error = of(most).expect_err(number).to_string();
        assert!(error.contains(&format!("at most {most}")), "{error}");
    }
}

#[test]
fn what_nothing_carries_is_known_and_no_filter_names_it() {
    let alone = MEMO.split("carried_by:").next().expect("a file");
    let library = Library::with(&[source("memo.yaml", alone)]).expect("a library");
    assert_eq!(library.uncarried(), ["memo"]);
    for filter in ["memo", "tcp && memo.version == 1"] {
        let error = Filter::parse(&library, filter).expect_err(filter);
        assert_eq!(
            error.kind.to_string(),
            "no packet has `memo`: no protocol carries it"
        );
        assert_eq!(
            &filter[error.span],
            if filter == "memo" {
                "memo"
            } else {
                "memo.version"
            }
        );
    }
    // A packet has a protocol only if its carrier is carried as well.
    let carrier = "name: outer\nfilter: outer\nabout: o\nheader: {type: outer_h}\nfields: [{name: kind, bits: 8}]\n\
                   select: [kind]\nnext: [{when: [1], to: memo}]\n";
    let lost = [source("memo.yaml", alone), source("outer.yaml", carrier)];
    let library = Library::with(&lost).expect("a library");
    assert_eq!(library.uncarried(), ["outer", "memo"]);
    let carried = format!("{carrier}carried_by: [{{by: udp, when: [7071]}}]\n");
    let whole = [source("memo.yaml", alone), source("outer.yaml", &carried)];
    let library = Library::with(&whole).expect("a library");
    assert!(library.uncarried().is_empty());
    assert!(Filter::parse(&library, "memo.version == 1").is_ok());
}

#[test]
fn a_string_for_a_text_of_fixed_length_has_it() {
    let text = MEMO.replace("length: author_len, max: 16", "bytes: 4");
    let library = Library::with(&[source("memo.yaml", &text)]).expect("a library");
    for (filter, is_read) in [
        ("memo.author == \"anna\"", true),
        ("memo.author startswith \"an\"", true),
        ("memo.author == \"ann\"", false),
        ("memo.author in {\"anna\", \"ann\"}", false),
        ("memo.author != \"ann\"", false),
    ] {
        assert_eq!(Filter::parse(&library, filter).is_ok(), is_read, "{filter}");
    }
}

#[test]
fn what_is_refused_is_said_with_its_place() {
    let cases: &[(&str, &str, &str, &str)] = &[
        // (file, text to replace, replacement, message)
        (
            "memo",
            "name: memo ",
            "name: redis ",
            "memo.yaml:1:7: protocol `redis` already exists: a file cannot redefine it",
        ),
        (
            "memo",
            "name: memo ",
            "name: redis_key ",
            "memo.yaml:1:7: `redis_key` and `redis` begin alike: their headers' names could be the same",
        ),
        (
            "memo",
            "name: memo ",
            "name: values0 ",
            "memo.yaml:1:7: `values0` is a header of every program",
        ),
        (
            "memo",
            "name: memo ",
            "name: table ",
            "memo.yaml:1:7: `table` is a reserved word of P4",
        ),
        (
            "memo",
            "text: title",
            "text: in",
            "memo.yaml:10:12: `in` is a reserved word of P4",
        ),
        (
            "memo",
            "text: title",
            "text: author_read",
            "memo.yaml:10:12: `author_read` names a part of `author`: rename it",
        ),
        (
            "memo",
            "filter: memo   ",
            "filter: kafka  ",
            "memo.yaml:6:40: filter name `memo.version` must begin with `kafka.`",
        ),
        (
            "memo",
            "{by: tcp, when: [7070]}",
            "{by: tcp, when: [6379]}",
            "memo.yaml:12:10: carried_by: with these values `tcp` carries `redis` already",
        ),
        (
            "memo",
            "{by: tcp, when: [7070]}",
            "{by: tcp, when: [70000]}",
            "memo.yaml:12:22: carried_by: `70000` does not fit the 16 bits of `dst_port`, which selects what follows `tcp`",
        ),
        (
            "memo",
            "{by: tcp, when: [7070]}",
            "{by: tcp, when: [memo]}",
            "memo.yaml:12:22: carried_by: `memo` is neither a number nor `any`; `dst_port`, a number, selects what follows `tcp`",
        ),
        (
            "memo",
            "{by: tcp, when: [7070]}",
            "{by: tcp, when: [-1]}",
            "memo.yaml:12:21: carried_by[0].when: each of `when` is a number from 0 on, or `any`",
        ),
        (
            "memo",
            "length: author_len",
            "length: author_len, less: 16384",
            "memo.yaml:8:12: message: `author`: `less: 16384` leaves no bytes: `author_len` is at most 16383",
        ),
        (
            "memo",
            "{by: tcp,",
            "{by: sctp,",
            "memo.yaml:12:10: carried_by: protocol `sctp` does not exist",
        ),
        (
            "memo",
            "length: author_len",
            "length: author",
            "memo.yaml:8:12: message: `author`: `length: author` must name the number before it; only literals may stand between",
        ),
        (
            "memo",
            "max: 32",
            "max: 4000000",
            "memo.yaml:10:12: message: `title`: `max` must be 1 to 64",
        ),
        (
            "shim",
            "{by: udp, when: [9999]}",
            "{by: shim, when: [1, 1]}",
            "shim.yaml:2:7: `shim` is carried by itself, so a parser would loop",
        ),
        (
            "shim",
            "{by: udp, when: [9999]}",
            "{by: cell, when: []}",
            "cell.yaml:2:7: `cell`, `shim`: each is carried by another, so a parser would loop",
        ),
        (
            "shim",
            "type: shim_h",
            "type: ipv4_h",
            "shim.yaml:5:16: the header's type must be `shim_h`, not `ipv4_h`",
        ),
        (
            "shim",
            "type: shim_h",
            "type: shim_h, declared: common",
            "shim.yaml:5:24: remove `declared` and `values`: only p4src/common uses them",
        ),
        (
            "shim",
            "bits: 4}",
            "bits: 5}",
            "shim.yaml:1:1: the fields sum to 17 bits, which is not whole bytes",
        ),
        (
            "shim",
            "about: what",
            "root: true\nabout: what",
            "shim.yaml:4:1: remove `root` and `metadata`: a packet begins with Ethernet",
        ),
        (
            "shim",
            "select:",
            "options: {length: kind, first_word: 1, max: 4000000000, malformed: truncated}\nselect:",
            "shim.yaml:10:1: `options`: `max` is at most 15 words; found 4000000000",
        ),
        (
            "shim",
            "select:",
            "chooses:",
            "shim.yaml:10:1: unknown field `chooses`",
        ),
    ];
    let mut wrong = Vec::new();
    for (name, from, to, said) in cases {
        let files = [("cell", CELL), ("memo", MEMO), ("shim", SHIM)].map(|(file, text)| {
            let text = match file == *name {
                true => {
                    assert!(text.contains(from), "{from} is not in {file}");
                    text.replacen(from, to, 1)
                }
                false => text.to_owned(),
            };
            source(&format!("{file}.yaml"), &text)
        });
        let error = Library::with(&files).expect_err(said).to_string();
        if !error.starts_with(said) {
            wrong.push(format!("{error}\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let long = source("long.yaml", &format!("name: long\n{}", "#".repeat(70_000)));
    let error = Library::with(&[long]).expect_err("too long").to_string();
    assert_eq!(
        error,
        "long.yaml:1:1: the file has 70011 bytes; the maximum is 65536"
    );
}
