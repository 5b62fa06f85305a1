//! Pastes what a hint has in backquotes back where it belongs: the file can be run and proved then, or the hint says that it is an
//! example.

use scenario::diagnostic::{Diagnostic, Span};
use scenario::{TargetModel, load, plan_to_prove};

/// The file around a case.
const BASE: &str = "weir: 1
name: hints
seed: 1
topology: {star: {hosts: [c, s]}}
workload: {commands: [{name: db, host: s, run: sleep 5, ready: started}, {name: cl, host: c, run: sleep 1}]}
";

/// Where a case stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Keys of a fault of flow `out`.
    Fault,
    /// The filter of a flow.
    Filter,
    /// A line of `expect`, beside a fault that delays.
    Expect,
    /// Sections.
    Sections,
}

use Place::{Expect, Fault, Filter, Sections};

/// Pairs of what a user writes and a part of the hint that has the user's own number.
const CASES: [(Place, &str, &str); 121] = [
    (Fault, "effect: {set: {tcp.flags: 4}}", "`tcp.flags.rst: 1`"),
    (
        Fault,
        "effect: {set: {ip.version: 6}}",
        "the fields of `ip` are",
    ),
    (
        Fault,
        "effect: {set: {ip.tos: 4}}",
        "`ip.dscp: 1` and `ip.ecn: 0`",
    ),
    (
        Fault,
        "effect: {set: {tos: 4}}",
        "`ip.dscp: 1` and `ip.ecn: 0`",
    ),
    (Fault, "effect: {set: {ttl: 4}}", "`ip.ttl`"),
    (
        Fault,
        "effect: {set: {ip.addr: 10.0.0.9}}",
        "`ip.src` or `ip.dst`",
    ),
    (
        Fault,
        "effect: {set: {tcp.port: 80}}",
        "`tcp.sport` or `tcp.dport`",
    ),
    (
        Fault,
        "effect: {set: {redis.command: \"GET\"}}",
        "such as `ip.ttl`",
    ),
    (Fault, "effect: {set: ip.ttl}", "`{set: {ip.ttl: 1}}`"),
    (
        Fault,
        "effect: {corrupt: {field: tcp.flags, bits: 1}}",
        "`tcp.flags.syn`",
    ),
    (
        Fault,
        "effect: {corrupt: {field: tcp.port, bits: 1}}",
        "`tcp.sport`",
    ),
    (
        Fault,
        "effect: {corrupt: {field: tcp.len, bits: 1}}",
        "`ip.len`",
    ),
    (
        Fault,
        "effect: {corrupt: {field: payload, bits: 1}}",
        "no field",
    ),
    (
        Fault,
        "effect: {corrupt: ip.ttl}",
        "`{corrupt: {field: ip.ttl, bits: 1}}`",
    ),
    (
        Fault,
        "effect: {corrupt: 0.1}",
        "`select: {probability: 0.1}`",
    ),
    (
        Fault,
        "effect: {corrupt: 5%}",
        "`select: {probability: 5%}`",
    ),
    (
        Fault,
        "effect: {duplicate: 0.1}",
        "`select: {probability: 0.1}`",
    ),
    (
        Fault,
        "effect: {duplicate: 3}",
        "`{duplicate: {copies: 3}}`",
    ),
    (
        Fault,
        "effect: {reorder: 25% 50%}",
        "`select: {probability: 25%}`",
    ),
    (Fault, "effect: {reorder: 5}", "distance: 5"),
    (
        Fault,
        "effect: drop, select: {nth: 3}, per: [ip.src, tcp.port]",
        "`tcp.sport` or `tcp.dport`",
    ),
    (Fault, "effect: {truncate: 100}", "`100B`"),
    (
        Fault,
        "effect: {rate: {limit: 1Mbit/s, queue: 10000}}",
        "`10000B`",
    ),
    (
        Fault,
        "effect: {rate: {limit: 1000, queue: 64kB}}",
        "`1000kbit/s`",
    ),
    (
        Fault,
        "effect: {rate: {limit: 10, queue: 64kB}}",
        "`10kbit/s` or `10Mbit/s`",
    ),
    (Fault, "effect: {delay: 100}", "`100s` or `100ms`"),
    (
        Fault,
        "effect: {delay: 10-20ms}",
        "`{delay: {uniform: [10ms, 20ms]}}`",
    ),
    (
        Fault,
        "effect: {delay: 10ms..20ms}",
        "`{delay: {uniform: [10ms, 20ms]}}`",
    ),
    (
        Fault,
        "effect: {delay: {uniform: 10ms-20ms}}",
        "`[10ms, 20ms]`",
    ),
    (
        Fault,
        "effect: {delay: 100ms 10ms}",
        "`{delay: {latency: 100ms, jitter: 10ms}}`",
    ),
    (
        Fault,
        "effect: {delay: 100 10}",
        "`{delay: {latency: 100ms, jitter: 10ms}}`",
    ),
    (Fault, "effect: {rate: 1mbps}", "limit: 1Mbit/s"),
    (Fault, "effect: {rate: 1 Mbps}", "`8Mbit/s` for megabytes"),
    (Fault, "effect: {rate: 500kbps}", "`4Mbit/s` for kilobytes"),
    (Fault, "effect: {rate: 12MB/s}", "limit: 96Mbit/s"),
    (Fault, "effect: {bandwidth: 8mbps}", "limit: 8Mbit/s"),
    (Fault, "effect: {bandwidth: 1000}", "limit: 1000Mbit/s"),
    (Fault, "effect: {police: 1mbps}", "rate: 1Mbit/s"),
    (
        Fault,
        "effect: {rate: {rate: 1mbps, queue: 64kB}}",
        "`limit: 1Mbit/s`",
    ),
    (
        Fault,
        "effect: {bandwidth: {rate: 1mbps, limit: 20971520, buffer: 10000}}",
        "limit: 1Mbit/s",
    ),
    (
        Fault,
        "effect: {loss: 0.3}",
        "`30%` for the fraction, `0.3%` for percent",
    ),
    (
        Fault,
        "effect: {loss: 5% 25%}",
        "`select: {probability: 5%}`",
    ),
    (
        Fault,
        "effect: {loss: 1}",
        "`100%` for the fraction, `1%` for percent",
    ),
    (Fault, "loss: 25", "`select: {probability: 25%}`"),
    (
        Fault,
        "effect: drop, probability: 0.5",
        "`select: {probability: 0.5}`",
    ),
    (
        Fault,
        "effect: drop, percent: 0.5",
        "`50%` for the fraction, `0.5%` for percent",
    ),
    (
        Fault,
        "effect: drop, toxicity: 0.5",
        "`select: {share: 0.5}`",
    ),
    (
        Fault,
        "effect: {latency: 1000, jitter: 100}",
        "`effect: {delay: {latency: 1000ms, jitter: 100ms}}`",
    ),
    (
        Fault,
        "effect: {latency: {latency: 1s, jitter: 100ms}}",
        "`effect: {delay: {latency: 1s, jitter: 100ms}}`",
    ),
    (Fault, "effect: {latency: 300}", "`effect: {delay: 300ms}`"),
    (Fault, "effect: drop, select: 1%", "`{probability: 1%}`"),
    (Fault, "effect: drop, select: 0.1", "`{probability: 0.1}`"),
    (Fault, "effect: drop, select: 3", "`{nth: 3}`"),
    (
        Fault,
        "effect: drop, select: {probability: 150%}",
        "found 150%",
    ),
    (Fault, "effect: drop, select: {probability: 5}", "`5%`"),
    (
        Fault,
        "effect: drop, select: {gilbert_elliott: {p: 1%, r: 12%}}",
        "`to_bad: 1%`",
    ),
    (Fault, "effect: [drop, {delay: 5ms}]", "not a list"),
    (Fault, "partition: [c, s]", "`{halves: [c, s]}`"),
    (Fault, "partition: [[c], [s]]", "`{groups: [[c], [s]]}`"),
    (Fault, "partition: {halves: true}", "name all hosts"),
    (Filter, "tcp.flags == 0x02", "tcp.flags.syn && "),
    (Filter, "tcp.flags & 2 != 0", "`tcp.flags.syn`"),
    (Filter, "ip.version == 4", "`ip`"),
    (Filter, "tcp port 80", "tcp.dport == 80"),
    (Filter, "host 10.0.0.1", "ip.src == 10.0.0.1"),
    (Filter, "tcp.dport eq 80", "`tcp.dport == 80`"),
    (Filter, "tcp.dport in {80 443}", "`tcp.dport in {80, 443}`"),
    (Filter, "-p tcp --dport 80", "`tcp.dport == 80`"),
    (Filter, "infiniband.bth.psn == 5", "`roce.psn`"),
    (Filter, "frame.time < 5", "a packet carries no time"),
    (Filter, "bootp", "`udp.dport in {67, 68}`"),
    (
        Filter,
        "ip.addr == 10.0.0.1",
        "`(ip.src == 10.0.0.1 || ip.dst == 10.0.0.1)`",
    ),
    (Expect, "command.cl.time < 5s", "`command.cl.duration`"),
    (Expect, "command.cl.p99 < 5s", "`command.cl.duration.p99`"),
    (Expect, "flow.out.latency < 5ms", "`flow.out.p50`"),
    (Expect, "flow.out.max < 5ms", "`flow.out.longest`"),
    (Expect, "flow.out.bytes > 5", "a flow only counts packets"),
    (
        Expect,
        "switch.sw.dropped == 0",
        "a switch does not count drops",
    ),
    (Expect, "fault.f.delay < 5ms", "`fault.f.beyond`"),
    (Expect, "fault.f.hits > 3", "`fault.f.fired`"),
    (
        Expect,
        "flow.out.loss < 1%",
        "`flow.out.lost / flow.out.sent`",
    ),
    (
        Expect,
        "flow.out.lost < 1%",
        "`flow.out.lost / flow.out.sent < 1%`",
    ),
    (
        Expect,
        "0.01 > flow.out.lost",
        "`0.01 > flow.out.lost / flow.out.sent`",
    ),
    (
        Expect,
        "command.cl.failures <= 5%",
        "`command.cl.failures / command.cl.runs <= 5%`",
    ),
    (Expect, "fault.f.fired > 10%", "a whole number"),
    (Expect, "run.wall < 5", "`5s` or `5ms`"),
    (Fault, "effect: {delay: 0.1}", "`0.1s` or `0.1ms`"),
    (
        Fault,
        "effect: {packet-loss: {percent: 10}}",
        "`effect: drop`",
    ),
    (
        Fault,
        "effect: {delay: 100ms 10ms distribution normal}",
        "distribution: normal",
    ),
    (Fault, "effect: {slow_close: 1000}", "{delay: 1000ms}"),
    (
        Sections,
        "topology: {star: {hosts: 3}}",
        "each item of the list",
    ),
    (Expect, "flow.out.lots == 0", "`flow.out.lost`"),
    (Expect, "run.wall < 5sec", "`5s`"),
    (Sections, "limits: {time: 30}", "`30s` or `30ms`"),
    (Sections, "limits: {disk: 2}", "`2GB`"),
    (Sections, "limits: 45s", "`{time: 45s}`"),
    (Sections, "limits: {timeout: 30}", "`limits: {time: 30s}`"),
    (
        Sections,
        "timeline: [{name: st, at: 5, for: 3s}]",
        "`5s` or `5ms`",
    ),
    (Sections, "timeline: {st: {at: 1s}}", "[{name: st, …}]"),
    (
        Sections,
        "faults: {f: {flows: out, effect: drop}}",
        "[{id: f, …}]",
    ),
    (
        Sections,
        "triggers: {t: {after: {flow: out, count: 5}}}",
        "`packets: 5`",
    ),
    (
        Sections,
        "triggers: {t: {after: out}}\nfaults: [{id: f, flows: out, effect: drop, when: t}]",
        "`{flow: out}`",
    ),
    (
        Sections,
        "flows: {out: ipv6}",
        "`eth.type == 0x86dd && switch.port == 1`",
    ),
    (Sections, "flows: {out: arp}", "`eth.type == 0x0806`"),
    (Sections, "flows: {out: icmpv6}", "`eth.type == 0x86dd`"),
    (
        Sections,
        "flows: {out: 'udp.dport == 9 && ip.dst == 239.129.1.2'}",
        "`udp.dport == 9 && eth.dst == 01:00:5e:01:01:02`",
    ),
    (
        Sections,
        "flows: {out: {from: c, filter: ip.dst == 255.255.255.255}}",
        "`eth.dst == ff:ff:ff:ff:ff:ff`",
    ),
    (Sections, "triggers: {t: {after: 5s}}", "`{flow: …}`"),
    (Sections, "blast_radius: 10%", "`{share: 10%}`"),
    (Sections, "blast_radius: {hosts: c, share: 12}", "`12%`"),
    (
        Sections,
        "jobs: {j: {ranks: [c, s], rate: 100mbps}}",
        "`800Mbit/s` for megabytes",
    ),
    (
        Sections,
        "jobs: {j: {ranks: [c, s], deadline: 20}}",
        "`20ms`",
    ),
    (
        Sections,
        "probes: {p: {from: c, tcp: \"s:80\", every: 500}}",
        "`500ms`",
    ),
    (
        Sections,
        "topology: {star: {hosts: [c, s], bandwidth: 10mbit}}",
        "`rate: 10Mbit/s`",
    ),
    (
        Sections,
        "topology: {star: {hosts: [c, s], delay: 5ms}}",
        "`latency: 5ms`",
    ),
    (
        Sections,
        "topology: {star: {hosts: [c, s], loss: 2%}}",
        "probability: 2%",
    ),
    (
        Sections,
        "topology: {star: {hosts: [c, s], rate: 10mbps}}",
        "`10Mbit/s` for megabits",
    ),
    (
        Sections,
        "topology: {star: {hosts: [c, s], latency: 100}}",
        "`100ms`",
    ),
    (Sections, "workload: {idle: 10s}", "`{for: 10s}`"),
    (
        Sections,
        "workload: {commands: [{name: db, host: s, run: sleep 5, ready: 6379}, {name: cl, host: c, run: sleep 1}]}",
        "`{tcp: 6379}`",
    ),
    (
        Sections,
        "workload: {commands: [{name: cl, host: c, run: sleep 1, repeat: {for: 30}}]}",
        "`30s` or `30ms`",
    ),
];

/// A file with a case, and where in it the case begins.
fn file(place: Place, written: &str) -> String {
    let flows = |filter: &str| format!("flows: {{out: {{from: c, to: s{filter}}}}}\n");
    let faults = |fault: &str| format!("faults:\n  - {{id: f, {fault}}}\n");
    // A section of the case takes the place of the one in the base.
    let key = written.split(':').next().unwrap_or_default();
    let is_other = |line: &&str| place != Sections || !line.starts_with(&format!("{key}:"));
    let base: String = BASE
        .lines()
        .filter(is_other)
        .map(|line| format!("{line}\n"))
        .collect();
    match place {
        Fault if written.starts_with("partition") => base + &flows("") + &faults(written),
        Fault => base + &flows("") + &faults(&format!("flows: out, {written}")),
        Filter => base + &flows(&format!(", filter: '{written}'")),
        Expect => {
            let fault = faults("flows: out, effect: {delay: 5ms}");
            base + &flows("") + &fault + &format!("expect:\n  - '{written}'\n")
        }
        Sections if key == "flows" => base + written + "\n",
        Sections => base + &flows("") + written + "\n",
    }
}

fn refused(text: &str) -> Vec<Diagnostic> {
    match load("hints.yaml", text) {
        Err(errors) => errors.0,
        Ok(scenario) => match plan_to_prove(&scenario, &TargetModel::EMBEDDED) {
            Err(errors) => errors.0,
            Ok(_) => Vec::new(),
        },
    }
}

/// Parts of a mapping that commas outside of brackets divide.
fn parts(mapping: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in mapping.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(mapping[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(mapping[start..].trim());
    parts
}

/// Where the entry ends whose key begins at a byte: before the comma or bracket behind its value.
fn end_of_entry(text: &str, start: usize) -> usize {
    let mut depth = 0;
    let end = text[start..].char_indices().find(|(_, c)| {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        depth < 0 || depth == 0 && matches!(c, ',' | '\n')
    });
    end.map_or(text.len(), |(at, _)| start + at)
}

fn replaced(text: &str, span: Span, by: &str) -> String {
    format!("{}{by}{}", &text[..span.start], &text[span.end..])
}

/// The files that come of a code where it may belong: at the place that the message points at, for the whole entry there, or
/// for the whole case.
fn pasted(place: Place, written: &str, told: &Diagnostic, code: &str) -> Vec<String> {
    let text = file(place, written);
    let end = end_of_entry(&text, told.span.start);
    let entry = Span { end, ..told.span };
    let mut all = vec![
        replaced(&text, told.span, code),
        replaced(&text, entry, code),
        replaced(&text, told.span, &format!("[{code}]")),
    ];
    if place == Sections {
        let key = code.split(':').next().unwrap_or_default();
        let own = written.split(':').next().unwrap_or_default();
        if key == own {
            all.push(file(place, code));
        }
        if own == "flows" {
            all.push(file(place, &format!("flows: {{out: '{code}'}}")));
        }
        // A value alone stands where another code has the user's number.
        let hint = told.hint.as_deref().unwrap_or_default();
        let sections = hint.split('`').skip(1).step_by(2);
        let sections = sections.filter(|code| code.starts_with(&format!("{own}:")));
        for section in sections {
            let words = section.split([' ', ',', '{', '}']);
            let numbers = words.filter(|word| word.contains(|c: char| c.is_ascii_digit()));
            all.extend(numbers.map(|number| file(place, &section.replace(number, code))));
        }
    } else {
        all.push(file(place, code));
        all.push(file(place, &format!("effect: {code}")));
        let numbers = written
            .split(' ')
            .filter(|word| word.parse::<f64>().is_ok());
        all.extend(numbers.map(|number| file(place, &written.replace(number, code))));
    }
    all
}

/// Faults with the keys that a hint has, in the place of those that they replace. A value alone stands where the hint's keys
/// have another one.
fn with_keys<'a>(
    written: &'a str,
    codes: &'a [&str],
    code: &'a str,
) -> impl Iterator<Item = String> + 'a {
    let key = |part: &str| part.split(':').next().unwrap_or_default().to_owned();
    let is_own = move |part: &str| ["effect", "select", "per"].contains(&key(part).as_str());
    let keys: Vec<String> = codes
        .iter()
        .filter(|code| code.contains(':'))
        .map(|code| match code.starts_with('{') {
            true => format!("effect: {code}"),
            false => (*code).to_owned(),
        })
        .filter(|code| is_own(code))
        .collect();
    let values: Vec<String> = keys
        .iter()
        .flat_map(|keys| keys.split([' ', ',', '{', '}']))
        .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
        .map(str::to_owned)
        .chain([String::new()])
        .collect();
    values.into_iter().map(move |value| {
        let keys = keys.iter().map(|keys| match value.is_empty() {
            true => keys.clone(),
            false => keys.replace(&value, code),
        });
        let keys: Vec<String> = keys.collect();
        let has = |part: &str| keys.iter().any(|code| key(code) == key(part));
        let kept = parts(written).into_iter().map(str::to_owned);
        let mut all: Vec<String> = kept.filter(|part| is_own(part) && !has(part)).collect();
        all.extend(keys.iter().cloned());
        if !all.iter().any(|part| key(part) == "effect") {
            all.push("effect: drop".to_owned());
        }
        all.join(", ")
    })
}

#[test]
fn what_a_hint_writes_can_be_written() {
    let mut count = 0;
    let mut wrong = Vec::new();
    for (place, written, part) in CASES {
        let all = refused(&file(place, written));
        let shown: Vec<String> = all.iter().map(ToString::to_string).collect();
        let shown = shown.join("\n");
        if !shown.contains(part) {
            wrong.push(format!("{written}: no {part}\n{shown}"));
        }
        for told in &all {
            let hint = told.hint.as_deref().unwrap_or_default();
            let is_example = ["for example", "such as"]
                .iter()
                .any(|words| hint.contains(words));
            let codes: Vec<&str> = hint.split('`').skip(1).step_by(2).collect();
            for code in codes.iter().filter(|code| is_to_write(written, code)) {
                let mut files = pasted(place, written, told, code);
                if place == Fault {
                    files.extend(with_keys(written, &codes, code).map(|case| file(place, &case)));
                }
                let is_better = files.iter().any(|text| refused(text).len() < all.len());
                if !is_better && !is_example {
                    wrong.push(format!("{written}: `{code}` cannot be written\n{hint}"));
                }
                count += usize::from(is_better);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(count > 100, "{count}");
}

/// Whether a code is more than a word of the message, and has no name in it that the file is to fill in.
fn is_to_write(written: &str, code: &str) -> bool {
    let is_word = !code.contains(|c: char| c.is_ascii_digit() || matches!(c, ':' | ' ' | '.'));
    let names = ["…", "NAME", "STEP", "FLOW", "REGEX"];
    !is_word && !written.contains(code) && !names.iter().any(|name| code.contains(name))
}

/// Where a switch sums, a fault acts on another switch of its flow; where there is none, no hint names one.
#[test]
fn a_fault_at_an_aggregating_switch_is_sent_to_one_that_there_is() {
    let text = |topology: &str, place: &str| {
        format!(
            "weir: 1
name: sums
topology: {topology}
workload: {{idle: {{for: 1s}}}}
jobs: {{j: {{ranks: [a, b], on: sw}}}}
flows: {{out: {{from: a, to: c, filter: tcp}}}}
faults: [{{id: f, flows: out, effect: drop, select: {{nth: 3}}{place}}}]
"
        )
    };
    let two =
        "{switches: [sw, far], hosts: [a, b, c], links: [[a, sw], [b, sw], [sw, far], [c, far]]}";
    let hint = |text: &str| -> String {
        let told = refused(text);
        let hints = told.iter().filter_map(|told| told.hint.clone());
        hints.collect::<Vec<_>>().join("\n")
    };
    let told = hint(&text(two, ", where: sw"));
    assert!(told.ends_with("such as `where: far`"), "{told}");
    assert_eq!(refused(&text(two, ", where: far")), []);
    let one = "{star: {hosts: [a, b, c]}}";
    let told = hint(&text(one, ""));
    assert!(told.starts_with("put a switch that does not sum"), "{told}");
}
