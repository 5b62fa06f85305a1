//! Malformed frames on the ports of `weir switch`, the real binary.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use p4rt::client::{Client, PipelineAction, UpdateType};
use p4rt::translate::Item;
use scenario::plan::names::classify;

use crate::support::*;

/// What the switch runs.
const SCENARIO: &str = "\
weir: 1
name: base
topology:
  star: {hosts: [a, b, s]}
flows:
  gets: {from: a, to: s, filter: tcp.dport == 6379}
  others: {from: b, to: s, filter: tcp.dport == 6379}
faults:
  - {id: first, flows: gets, effect: !drop , select: !every 5}
  - {id: second, flows: others, effect: !delay 20ms}
";

/// A switch of a scenario, its ports a and s two cables in memory.
struct Wired {
    process: Child,
    a: UnixDatagram,
    s: UnixDatagram,
    _client: (Client, p4rt::client::Events),
    runtime: tokio::runtime::Runtime,
}

impl Wired {
    fn start() -> Wired {
        let (a, a_port) = UnixDatagram::pair().unwrap();
        let (s, s_port) = UnixDatagram::pair().unwrap();
        // The two cables come in as standard input and output, and become descriptors 3 and 4.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec 3<&0 4<&1 0</dev/null 1>&2; exec \"$0\" \"$@\"",
                env!("CARGO_BIN_EXE_weir"),
            ])
            .args([
                "switch",
                "--no-p4",
                "--grpc-server-addr",
                "127.0.0.1:0",
                "-i",
                "1@fd:3",
                "-i",
                "3@fd:4",
            ])
            .stdin(OwnedFd::from(a_port))
            .stdout(OwnedFd::from(s_port))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        process.stderr = Some(said.into_inner());
        let address = line
            .split_once("P4Runtime at ")
            .unwrap_or_else(|| panic!("{line}"))
            .1
            .split(',')
            .next()
            .unwrap()
            .to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let client = runtime.block_on(load(&address));
        for end in [&a, &s] {
            end.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        }
        Wired {
            process,
            a,
            s,
            _client: client,
            runtime,
        }
    }

    /// Takes what arrives at an end until nothing has come for a moment.
    fn drain(end: &UnixDatagram) {
        end.set_nonblocking(true).unwrap();
        while end.recv(&mut [0; 2048]).is_ok() {}
        end.set_nonblocking(false).unwrap();
    }

    /// Whether a frame from a comes out at s.
    fn forwards(&self, marker: u8) -> bool {
        let frame = get_frame(marker);
        self.a.send(&frame).unwrap();
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut buffer = [0; 2048];
        while Instant::now() < deadline {
            match self.s.recv(&mut buffer) {
                Ok(length) if buffer[..length] == frame[..] => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        false
    }
}

impl Drop for Wired {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Loads a scenario's program and entries over P4Runtime.
async fn load(address: &str) -> (Client, p4rt::client::Events) {
    let scenario = scenario::load("s.yaml", SCENARIO).unwrap();
    let plan = scenario::plan(&scenario, &scenario::TargetModel::EMBEDDED).unwrap();
    let switch = plan.switch("sw").unwrap();
    let library = parser_gen::Library::builtin();
    let options = parser_gen::Options::aggregating(true);
    let (flows, engine) = (switch.classifier(), &switch.engine);
    let generated = parser_gen::generate_with(&library, &flows, &options, engine).unwrap();
    let mut sources = p4lang::Files::new();
    for (path, text) in parser_gen::program(parser_gen::Arch::Psa, &generated) {
        sources.insert(&path, text);
    }
    let main = parser_gen::Arch::Psa.main_path();
    let compiled = p4lang::compile(&sources, &main, &p4lang::Options::default()).unwrap();
    let mut client = Client::connect(address, 0, Duration::from_secs(10))
        .await
        .unwrap();
    let events = client.become_primary(1).await.unwrap();
    let p4info = p4rt::p4info::to_proto(&compiled.p4info);
    client
        .set_pipeline(
            PipelineAction::VerifyAndCommit,
            p4info,
            compiled.preprocessed.into_bytes(),
            0,
        )
        .await
        .unwrap();
    let mut entries = generated.entries_for(classify::INGRESS);
    entries.extend(generated.entries_for(classify::EGRESS));
    entries.extend(switch.entries.iter().cloned());
    let entries = entries
        .into_iter()
        .map(|entry| (UpdateType::Insert, Item::TableEntry(entry)));
    let epochs = switch.set_epoch(1).into_iter().map(|(table, action)| {
        let action = Some(action);
        (UpdateType::Modify, Item::DefaultAction { table, action })
    });
    let updates: Vec<_> = entries.chain(epochs).collect();
    client.apply(&updates).await.unwrap();
    (client, events)
}

fn frame_to_s(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![
        0x02, 0x57, 0x45, 0, 0, 3, 0x02, 0x57, 0x45, 0, 0, 1, 0x08, 0x00, 0x45, 0,
    ];
    frame.extend((20 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 3]);
    frame.extend(payload);
    frame
}

/// A segment that no fault's flow takes: its port is not Redis's.
fn get_frame(marker: u8) -> Vec<u8> {
    let mut segment = vec![
        0x10, 0, 0x18, 0xEC, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x18, 1, 0, 0, 0, 0, 0,
    ];
    segment.extend(b"*2\r\n$3\r\nGET\r\n$6\r\nuser:");
    segment.extend([marker, b'\r', b'\n']);
    frame_to_s(6, &segment)
}

fn update_frame() -> Vec<u8> {
    let mut datagram = vec![0x30, 0x39, 0x57, 0x45, 0x04, 0x20, 0, 0, 0x21, 0, 0, 1];
    datagram.resize(8 + wire::FULL_LEN, 0);
    datagram[30..32].copy_from_slice(&256_u16.to_be_bytes());
    frame_to_s(17, &datagram)
}

#[test]
fn malformed_frames_on_every_port_stop_no_switch() {
    let _turn = beside();
    let mut wired = Wired::start();
    assert!(wired.forwards(1), "a good frame");
    let mut state = 1_u32;
    let mut random = move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as usize
    };
    let good = [get_frame(2), update_frame()];
    let mut bad: Vec<Vec<u8>> = Vec::new();
    for frame in &good {
        // Cut anywhere in the headers, and now and then in what follows.
        bad.extend(
            (1..frame.len())
                .filter(|length| *length < 100 || length % 37 == 0)
                .map(|length| frame[..length].to_vec()),
        );
        // One byte of the headers wrong: lengths, versions, kinds.
        bad.extend((12..90.min(frame.len())).map(|at| {
            let mut frame = frame.clone();
            frame[at] ^= 1 << (random() % 8) | 0x40;
            frame
        }));
    }
    bad.extend((0..300).map(|_| (0..1 + random() % 1514).map(|_| random() as u8).collect()));
    for frame in &bad {
        for port in [&wired.a, &wired.s] {
            port.send(frame).unwrap();
        }
        Wired::drain(&wired.a);
        Wired::drain(&wired.s);
    }
    assert!(wired.forwards(3), "the switch forwards no more");
    let ended = wired.process.try_wait().unwrap();
    assert!(ended.is_none(), "{ended:?}");
    assert!(descendants(wired.process.id()).is_empty());
    // It still answers its controller, and said nothing to fear.
    let version = wired.runtime.block_on(wired._client.0.api_version());
    assert!(version.is_ok(), "{version:?}");
    wired.process.kill().unwrap();
    wired.process.wait().unwrap();
    let mut said = String::new();
    wired
        .process
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(!said.contains("panicked"), "{said}");
}
