//! The shipped Wireshark dissector, in tshark, on a pcap file.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use host_agent::frames::{Endpoint, Mac, build, group};
use pcap_file::TsResolution;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use test_support::skip;
use testbeds::redis::find_program;
use wire::{Flags, Kind, Packet, Repr};

fn endpoint(last: u8) -> Endpoint {
    Endpoint {
        mac: Mac([2, 0, 0, 0, 0, last]),
        ip: Ipv4Addr::new(10, 0, 0, last),
    }
}

fn frame(repr: Repr, values: &[u32], to: Endpoint) -> Vec<u8> {
    let mut payload = vec![0; repr.buffer_len()];
    let mut packet = Packet::new_unchecked(&mut payload[..]);
    repr.emit(&mut packet);
    packet.write_u32(values.iter().copied());
    let mut frame = Vec::new();
    build(&mut frame, endpoint(1), to, &payload);
    frame
}

/// Decodes frames; one line each, the fields separated by spaces. `None` where tshark is not installed.
fn tshark(frames: Vec<Vec<u8>>, fields: &[&str]) -> Option<Vec<String>> {
    let Some(program) = find_program("tshark") else {
        let thread = std::thread::current();
        skip(thread.name().unwrap_or("the dissector"), "tshark");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frames.pcap");
    let header = PcapHeader {
        ts_resolution: TsResolution::NanoSecond,
        ..PcapHeader::default()
    };
    let mut pcap = PcapWriter::with_header(File::create(&path).unwrap(), header).unwrap();
    for (frame, second) in frames.iter().zip(1..) {
        let at = Duration::new(second, 7);
        let packet = PcapPacket::new(at, frame.len() as u32, frame);
        pcap.write_packet(&packet).unwrap();
    }
    drop(pcap);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("weir.lua");
    let mut command = Command::new(program);
    command
        .arg("-X")
        .arg(format!("lua_script:{}", script.display()))
        .arg("-r")
        .arg(&path);
    command.args(["-T", "fields", "-E", "separator=/s"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(!stderr.contains("Lua"), "{stderr}");
    Some(
        String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect(),
    )
}

const UPDATE: Repr = Repr {
    kind: Kind::Update,
    flags: Flags::NONE,
    job: 9,
    chunk: 4_000_000_001,
    slot: 17,
    worker: 3,
    transmission: 0,
    contributors: 1 << 3,
    scale: 120,
    next_scale: 121,
    count: 2,
};

#[test]
fn every_field_decodes() {
    let sum = Repr {
        kind: Kind::Sum,
        flags: Flags::AGAIN | Flags::VERSION | Flags::NON_FINITE,
        transmission: 63,
        contributors: 1 << 63 | 0xffff_ffff,
        ..UPDATE
    };
    let agree = Repr {
        flags: Flags::SCALE_ONLY | Flags::TIMED | Flags::CLOSE,
        scale: 0,
        count: 0,
        ..UPDATE
    };
    let fields = [
        "weir.version",
        "weir.kind",
        "weir.job",
        "weir.chunk",
        "weir.slot",
        "weir.worker",
        "weir.transmission",
        "weir.contributors",
        "weir.contributor_count",
        "weir.scale",
        "weir.next_scale",
        "weir.count",
        "weir.flags",
        "weir.flags.version",
        "weir.flags.scale_only",
        "weir.flags.again",
        "weir.flags.non_finite",
        "weir.flags.timed",
        "weir.flags.close",
        "weir.flags.kept",
        "weir.value",
    ];
    let frames = vec![
        frame(UPDATE, &[u32::MAX, 7], endpoint(9)),
        frame(sum, &[0x7fff_ffff, 0x8000_0001], endpoint(9)),
        frame(agree, &[], endpoint(9)),
    ];
    let Some(lines) = tshark(frames, &fields) else {
        return;
    };
    // tshark 4.4 prints True and False, 4.0 prints 1 and 0.
    let lines: Vec<String> = lines
        .iter()
        .map(|line| {
            line.replace("True", "1")
                .replace("False", "0")
                .trim_end()
                .to_owned()
        })
        .collect();
    assert_eq!(
        lines,
        [
            "2 1 9 4000000001 17 3 0 0x0000000000000008 1 120 121 2 0x00 0 0 0 0 0 0 0 -1,7",
            "2 2 9 4000000001 17 3 63 0x80000000ffffffff 33 120 121 2 0x83 1 0 1 1 0 0 0 2147483647,-2147483647",
            "2 1 9 4000000001 17 3 0 0x0000000000000008 1 0 121 0 0x34 0 1 0 0 1 1 0",
        ]
    );
}

#[test]
fn a_result_carries_floating_point_to_a_group_and_its_time_has_nanoseconds() {
    let result = Repr {
        kind: Kind::Result,
        worker: wire::ALL_WORKERS,
        ..UPDATE
    };
    let values = [1.5_f32.to_bits(), (-0.25_f32).to_bits()];
    let fields = [
        "eth.dst",
        "ip.dst",
        "frame.time_epoch",
        "weir.worker",
        "weir.value_float",
        "_ws.col.Protocol",
    ];
    let Some(lines) = tshark(vec![frame(result, &values, group(9))], &fields) else {
        return;
    };
    assert_eq!(
        lines,
        ["01:00:5e:57:45:09 239.87.69.9 1.000000007 1023 1.5,-0.25 WEIR"]
    );
}

#[test]
fn the_headers_around_are_right_in_the_eyes_of_others() {
    let Some(program_lines) = tshark(
        vec![frame(UPDATE, &[1, 2], endpoint(9))],
        &[
            "ip.checksum.status",
            "udp.checksum",
            "udp.length",
            "frame.len",
            "_ws.expert",
        ],
    ) else {
        return;
    };
    // 2: unverified, tshark's default; a wrong length would be an expert's remark.
    assert_eq!(program_lines[0].trim_end(), "2 0x0000 40 74");
}

#[test]
fn cut_and_unknown_packets_are_reported_and_break_nothing() {
    let whole = frame(UPDATE, &[1, 2], endpoint(9));
    let payload = &whole[42..];
    let wrap = |payload: &[u8]| {
        let mut bytes = Vec::new();
        build(&mut bytes, endpoint(1), endpoint(9), payload);
        bytes
    };
    let mut other_version = payload.to_vec();
    other_version[0] = 0x11;
    let mut other_kind = payload.to_vec();
    other_kind[0] = 0x2f;
    let frames = vec![
        wrap(&payload[..5]),
        wrap(&payload[..28]),
        wrap(&other_version),
        wrap(&other_kind),
    ];
    let Some(lines) = tshark(frames, &["_ws.expert.message"]) else {
        return;
    };
    assert_eq!(
        lines,
        [
            "Fewer bytes than announced",
            "Fewer bytes than announced",
            "Protocol version that this dissector does not know",
            "Unknown kind",
        ]
    );
}
