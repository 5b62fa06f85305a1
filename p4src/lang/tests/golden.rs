//! Our P4Info against the files that p4c wrote for its public samples. Reads a checkout of p4lang/p4c that somebody put in
//! `P4C_DIR`; none of it is kept here.

#![allow(clippy::disallowed_methods)] // The crate is pure; its tests read programs and clocks.

use p4lang::p4info::*;
use p4lang::{Options, compile};
use std::path::Path;

/// A message in protobuf's text format: fields in order.
#[derive(Debug, Default)]
struct Message(Vec<(String, Value)>);

#[derive(Debug)]
enum Value {
    Scalar(String),
    Message(Message),
}

impl Message {
    fn parse(lines: &mut dyn Iterator<Item = &str>) -> Message {
        let mut fields = Vec::new();
        while let Some(line) = lines.next() {
            let line = line.trim();
            if line == "}" {
                break;
            }
            if let Some(name) = line.strip_suffix(" {") {
                fields.push((name.to_owned(), Value::Message(Message::parse(lines))));
            } else if let Some((name, value)) = line.split_once(": ") {
                let value = value.trim_matches('"').replace("\\\"", "\"");
                fields.push((name.to_owned(), Value::Scalar(value)));
            }
        }
        Message(fields)
    }

    fn all<'m, 'n>(&'m self, name: &'n str) -> impl Iterator<Item = &'m Message> + use<'m, 'n> {
        self.0.iter().filter_map(move |(n, v)| match v {
            Value::Message(m) if n == name => Some(m),
            _ => None,
        })
    }

    fn message(&self, name: &str) -> Option<&Message> {
        self.all(name).next()
    }

    fn scalars(&self, name: &str) -> Vec<&str> {
        let fields = self.0.iter().filter_map(|(n, v)| match v {
            Value::Scalar(s) if n == name => Some(s.as_str()),
            _ => None,
        });
        fields.collect()
    }

    fn scalar(&self, name: &str) -> &str {
        self.scalars(name).first().copied().unwrap_or("")
    }
}

fn golden_preamble(m: &Message) -> String {
    let none = Message::default();
    let p = m.message("preamble").unwrap_or(&none);
    format!(
        "{} {} {} {:?}",
        p.scalar("id"),
        p.scalar("name"),
        p.scalar("alias"),
        p.scalars("annotations")
    )
}

/// What p4c says of a program, a line an object.
fn golden_lines(info: &Message) -> Vec<String> {
    let mut out = Vec::new();
    for t in info.all("tables") {
        let key: Vec<String> = t
            .all("match_fields")
            .map(|f| {
                let kind = match f.scalar("match_type") {
                    "" => f.scalar("other_match_type"),
                    kind => kind,
                };
                let (id, name, width) = (f.scalar("id"), f.scalar("name"), f.scalar("bitwidth"));
                format!("{id} {name} {width} {}", kind.to_lowercase())
            })
            .collect();
        let actions: Vec<String> = t
            .all("action_refs")
            .map(|a| {
                format!("{} {}", a.scalar("id"), a.scalar("scope"))
                    .trim()
                    .to_owned()
            })
            .collect();
        let default = t.message("initial_default_action");
        out.push(format!(
            "table {} {key:?} {actions:?} const={} default={} impl={} direct={:?} size={} {} {}",
            golden_preamble(t),
            t.scalar("const_default_action_id"),
            default.map_or("", |d| d.scalar("action_id")),
            t.scalar("implementation_id"),
            t.scalars("direct_resource_ids"),
            t.scalar("size"),
            t.scalar("is_const_table"),
            t.scalar("has_initial_entries"),
        ));
    }
    for a in info.all("actions") {
        let params: Vec<String> = a
            .all("params")
            .map(|p| {
                format!(
                    "{} {} {}",
                    p.scalar("id"),
                    p.scalar("name"),
                    p.scalar("bitwidth")
                )
            })
            .collect();
        out.push(format!("action {} {params:?}", golden_preamble(a)));
    }
    for p in info.all("action_profiles") {
        out.push(format!(
            "profile {} {:?} {} {}",
            golden_preamble(p),
            p.scalars("table_ids"),
            p.scalar("with_selector"),
            p.scalar("size")
        ));
    }
    for (section, direct) in [
        ("counters", false),
        ("meters", false),
        ("direct_counters", true),
        ("direct_meters", true),
    ] {
        for c in info.all(section) {
            let unit = c.message("spec").map_or("", |s| s.scalar("unit"));
            let last = c.scalar(if direct { "direct_table_id" } else { "size" });
            out.push(format!(
                "{section} {} {} {last}",
                golden_preamble(c),
                unit.to_lowercase()
            ));
        }
    }
    for m in info.all("controller_packet_metadata") {
        let fields: Vec<String> = m
            .all("metadata")
            .map(|p| {
                format!(
                    "{} {} {}",
                    p.scalar("id"),
                    p.scalar("name"),
                    p.scalar("bitwidth")
                )
            })
            .collect();
        out.push(format!("header {} {fields:?}", golden_preamble(m)));
    }
    for section in ["value_sets", "registers", "digests"] {
        for m in info.all(section) {
            out.push(format!(
                "{section} {} {}",
                golden_preamble(m),
                m.scalar("size")
            ));
        }
    }
    out
}

fn preamble(p: &Preamble) -> String {
    format!("{} {} {} {:?}", p.id, p.name, p.alias, p.annotations)
}

/// Protobuf's text leaves out what is zero or false.
fn shown(value: impl Into<i64>) -> String {
    match value.into() {
        0 => String::new(),
        value => value.to_string(),
    }
}

fn flag(value: bool) -> &'static str {
    if value { "true" } else { "" }
}

/// The same of our own.
fn our_lines(info: &P4Info) -> Vec<String> {
    let mut out = Vec::new();
    for t in &info.tables {
        let key: Vec<String> = t
            .match_fields
            .iter()
            .map(|f| {
                let kind = match &f.match_type {
                    MatchType::Other(kind) => kind.clone(),
                    kind => format!("{kind:?}"),
                };
                let width = shown(f.bitwidth);
                format!("{} {} {width} {}", f.id, f.name, kind.to_lowercase())
            })
            .collect();
        let actions: Vec<String> = t
            .action_refs
            .iter()
            .map(|a| {
                let scope = match a.scope {
                    ActionScope::TableAndDefault => "",
                    ActionScope::TableOnly => "TABLE_ONLY",
                    ActionScope::DefaultOnly => "DEFAULT_ONLY",
                };
                format!("{} {scope}", a.id).trim().to_owned()
            })
            .collect();
        let direct: Vec<String> = t.direct_resource_ids.iter().map(u32::to_string).collect();
        out.push(format!(
            "table {} {key:?} {actions:?} const={} default={} impl={} direct={direct:?} size={} {} {}",
            preamble(&t.preamble),
            shown(t.const_default_action_id),
            shown(t.initial_default_action_id),
            shown(t.implementation_id),
            t.size,
            flag(t.is_const_table),
            flag(t.has_initial_entries),
        ));
    }
    for a in &info.actions {
        let params = a.params.iter();
        let params: Vec<String> = params
            .map(|p| format!("{} {} {}", p.id, p.name, shown(p.bitwidth)))
            .collect();
        out.push(format!("action {} {params:?}", preamble(&a.preamble)));
    }
    for p in &info.action_profiles {
        let tables: Vec<String> = p.table_ids.iter().map(u32::to_string).collect();
        out.push(format!(
            "profile {} {tables:?} {} {}",
            preamble(&p.preamble),
            flag(p.with_selector),
            shown(p.size)
        ));
    }
    let mut spec = |section: &str, p: &Preamble, unit: Unit, last: i64| {
        let unit = format!("{unit:?}").to_lowercase();
        out.push(format!("{section} {} {unit} {}", preamble(p), shown(last)));
    };
    for c in &info.counters {
        spec("counters", &c.preamble, c.unit, c.size);
    }
    for c in &info.meters {
        spec("meters", &c.preamble, c.unit, c.size);
    }
    for c in &info.direct_counters {
        spec("direct_counters", &c.preamble, c.unit, c.table_id.into());
    }
    for c in &info.direct_meters {
        spec("direct_meters", &c.preamble, c.unit, c.table_id.into());
    }
    for m in &info.controller_packet_metadata {
        let fields = m.metadata.iter();
        let fields: Vec<String> = fields
            .map(|p| format!("{} {} {}", p.id, p.name, p.bitwidth))
            .collect();
        out.push(format!("header {} {fields:?}", preamble(&m.preamble)));
    }
    for s in &info.value_sets {
        out.push(format!(
            "value_sets {} {}",
            preamble(&s.preamble),
            shown(s.size)
        ));
    }
    for r in &info.registers {
        out.push(format!(
            "registers {} {}",
            preamble(&r.preamble),
            shown(r.size)
        ));
    }
    for d in &info.digests {
        out.push(format!("digests {} ", preamble(&d.preamble)));
    }
    out
}

#[test]
#[ignore = "needs P4C_DIR, a checkout of p4lang/p4c"]
fn p4info_is_that_of_p4c() {
    let root = std::env::var("P4C_DIR").expect("P4C_DIR");
    let samples = Path::new(&root).join("testdata/p4_16_samples");
    let outputs = Path::new(&root).join("testdata/p4_16_samples_outputs");
    let mut names: Vec<String> = std::fs::read_dir(&outputs)
        .expect("outputs")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".p4info.txtpb")?.to_owned()))
        .collect();
    names.sort();
    let loader = |path: &str| {
        let bytes = std::fs::read(path).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (mut same, mut reordered, mut different, mut refused) = (0, 0, 0, 0);
    for name in &names {
        let golden = std::fs::read_to_string(outputs.join(format!("{name}.p4info.txtpb")));
        let golden = Message::parse(&mut golden.expect("golden").lines());
        let arch = golden.message("pkg_info").map_or("", |p| p.scalar("arch"));
        if !matches!(arch, "psa" | "v1model") {
            continue;
        }
        let path = samples.join(name);
        let path = path.to_str().expect("UTF-8");
        let compiled = match compile(&loader, path, &Options::default()) {
            Ok(compiled) => compiled,
            Err(e) => {
                if !e.short().contains("[include]") {
                    println!("refused: {}", e.short().lines().next().unwrap_or(""));
                    refused += 1;
                }
                continue;
            }
        };
        let (mut ours, mut theirs) = (our_lines(&compiled.p4info), golden_lines(&golden));
        if ours == theirs {
            same += 1;
            continue;
        }
        ours.sort();
        theirs.sort();
        if ours == theirs {
            reordered += 1;
            println!("reordered: {name}");
            continue;
        }
        different += 1;
        println!("different: {name}");
        for line in theirs.iter().filter(|l| !ours.contains(l)) {
            println!("  - {line}");
        }
        for line in ours.iter().filter(|l| !theirs.contains(l)) {
            println!("  + {line}");
        }
    }
    println!(
        "{same} the same, {reordered} in another order, {different} different, {refused} refused"
    );
    let compiled = same + reordered + different;
    assert!(same * 100 >= compiled * 90, "{same} of {compiled}");
}
