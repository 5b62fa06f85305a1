//! Payload slices on all architectures, compared with a plain reading.

use crate::common::Random;
use crate::common::bench::{ARCHES, Bench, expected};
use parser_gen::{Filter, Flow, Library, Options, PayloadSlice, generate};

fn library(filters: &[&str]) -> Library {
    let slices = filters
        .iter()
        .flat_map(|text| PayloadSlice::named_in(text))
        .map(|(slice, _)| slice)
        .collect::<Vec<_>>();
    Library::with_payload(&[], &slices).expect("a library")
}

/// TCP with and without options, or UDP, also to ports of other protocols; often truncated.
fn frame(random: &mut Random) -> Vec<u8> {
    let mut any = |of: &[u8]| of[random.below(of.len())];
    let is_udp = any(&[0, 1]) == 1;
    let words = any(&[5, 5, 6, 8]);
    let port: [u8; 2] = [(6379_u16, 80_u16), (22341, 7), (4791, 53), (9999, 11211)]
        [usize::from(any(&[0, 1, 2, 3]))]
    .0
    .to_be_bytes();
    let mut frame = vec![
        2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64,
    ];
    frame.extend([if is_udp { 17 } else { 6 }, 0, 0]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x9C, 0x40]);
    frame.extend(port);
    match is_udp {
        true => frame.extend([0; 4]),
        false => {
            frame.extend([
                0,
                0,
                0,
                1,
                0,
                0,
                0,
                1,
                words << 4,
                0x18,
                0xFF,
                0xFF,
                0,
                0,
                0,
                0,
            ]);
            frame.extend(vec![1; usize::from(words - 5) * 4]);
        }
    }
    let headers = frame.len();
    frame.extend([
        any(b"GP*"),
        any(b"EO"),
        b'T',
        b' ',
        any(&[0, 1, 2]),
        any(&[0, 0xFF]),
    ]);
    frame.extend(b"hello" as &[u8]);
    let last = frame.len() - 1;
    frame[last] = any(b"ox");
    frame.extend([0; 70]);
    frame.push(any(&[1, 2]));
    if random.below(3) == 0 {
        let length = headers + random.below(frame.len() - headers + 1);
        frame.truncate(length);
    }
    frame
}

#[test]
fn the_switch_reads_bytes_of_payloads_as_they_are() {
    let filters = [
        r#"tcp.payload[0:4] == "GET ""#,
        "tcp.payload[0:4] != 0x47455420",
        "tcp.payload[4:2] in {0x0000, 0x0100..0x01ff}",
        r#"tcp.payload[6:5] == "hello""#,
        "tcp.payload[81] == 2 && tcp.payload[4:2] >= 0x0100",
        "udp.payload[4:1] == 1",
        "udp.payload[0:3] > 0x470000",
        "!tcp.payload",
        "tcp.dport == 6379 && tcp.payload[0:4]  == 0x2A455420",
    ];
    let library = library(&filters);
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
    let mut random = Random(7);
    let mut met = vec![0; filters.len()];
    for _ in 0..4000 {
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

/// Slices that are refused, and protocols that slices hide.
#[test]
fn wrong_slices_are_refused() {
    let library = library(&["tcp.payload[0:4] == 1", "tcp.payload[6:5] == 1"]);
    let said = |text: &str| match Filter::parse(&library, text) {
        Ok(_) => format!("{text}: taken"),
        Err(error) => {
            let hint = error.hint.unwrap_or_default();
            format!("{text}: {} at {:?}; {hint}", error.kind, error.span)
        }
    };
    let all = [
        r#"tcp.payload[0:4] == "GET""#,
        r#"tcp.payload[6:5] == "four""#,
        "tcp.payload[6:5] == 5",
        "tcp.payload[0:4] == 0x100000000",
        "tcp.payload[0:2] == 1",
        "ip.payload[0:2] == 1",
        "tcp.payload[a:b] == 1",
        "tcp.payload == 1",
        r#"redis.command == "GET""#,
        "redis",
        "dns.id == 1",
        "tcp.payload",
    ];
    insta::assert_snapshot!(all.map(said).join("\n"));
}
