//! Experiments with one recorder that records several ports.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use proof::{Digest, Identity, Way};
use scenario::model::topology::Topology;
use testbeds::bed::{Bed, Options, Wiring};
use testbeds::capture::{Filter, Handed, Limits, RecordedPort, Recorder};
use testbeds::host::Host;

use super::hosts::{Outcome, socket, two_hosts};

const SEED: u64 = 7;

/// Data that the recorder's sink received in a test.
#[derive(Debug, Default)]
struct Got {
    /// Each frame: port, time, direction, identity, length on the link, number of bytes kept.
    frames: Vec<(usize, u64, Way, Identity, u32, usize)>,
    /// Number of frames whose identity is that of the kept bytes; it equals the number of frames if whole frames are kept.
    of_all_bytes: usize,
    lost: u64,
    late: u64,
    /// Times until which the recorder reported that all frames were handed over, in order.
    until: Vec<u64>,
}

impl Got {
    fn take(&mut self, handed: Handed) {
        match handed {
            Handed::Batch(batch) => {
                self.late += batch.late;
                let digest = Digest::of_seed(SEED);
                let of_kept = batch
                    .sights()
                    .filter(|sight| sight.identity == digest.of(sight.bytes, sight.wire_len));
                self.of_all_bytes += of_kept.count();
                let frames = batch.sights().map(|sight| {
                    let (length, kept) = (sight.wire_len, sight.bytes.len());
                    let (at_ns, way, identity) = (sight.at_ns, sight.way, sight.identity);
                    (batch.port, at_ns, way, identity, length, kept)
                });
                self.frames.extend(frames);
            }
            Handed::Lost(lost) => self.lost += lost.frames,
            Handed::Until(at_ns) => self.until.push(at_ns),
        }
    }

    fn identities(&self, port: usize, way: Way) -> Vec<Identity> {
        let frames = self.frames.iter();
        let own = frames.filter(|frame| frame.0 == port && frame.2 == way);
        own.map(|frame| frame.3).collect()
    }
}

fn port(port: usize, host: &Host, interface: &str) -> RecordedPort {
    RecordedPort {
        port,
        namespace: host.namespace().clone(),
        interface: interface.into(),
        filter: Filter::Everything,
        keep: 64,
        rate_bps: Some(1_000_000),
    }
}

fn send(from: &UdpSocket, payload: &[u8]) -> std::io::Result<usize> {
    from.send_to(payload, (Ipv4Addr::new(10, 0, 0, 2), 9))
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// A running recorder, and the data that its sink has received.
type Recording = (Recorder, Arc<Mutex<Got>>);

/// Starts a recorder whose sink stores the data that it receives.
fn start(ports: Vec<RecordedPort>) -> Result<Recording, Box<dyn std::error::Error>> {
    let got = Arc::new(Mutex::new(Got::default()));
    let sink = Arc::clone(&got);
    let recorder = Recorder::start(ports, Some(Digest::of_seed(SEED)), move |handed| {
        if let Ok(mut got) = sink.lock() {
            got.take(handed);
        }
    })?;
    Ok((recorder, got))
}

fn gotten(got: Arc<Mutex<Got>>) -> Result<Got, Box<dyn std::error::Error>> {
    let got = Arc::into_inner(got).ok_or("the recorder keeps its sink")?;
    Ok(got.into_inner()?)
}

/// Tests that a frame which leaves one port and enters another has the same identity at both.
pub fn two_ports() -> Outcome {
    let [(a, _a_net), (b, _b_net)] = two_hosts(false)?;
    let kept_whole = RecordedPort {
        keep: 2000,
        ..port(9, &b, "vb")
    };
    let (recorder, got) = start(vec![port(4, &a, "va"), kept_whole])?;
    let (from, _to) = (socket(a.namespace(), 1)?, socket(b.namespace(), 2)?);
    for number in 0..100_u8 {
        send(&from, &[number; 1000])?;
        thread::sleep(Duration::from_millis(1));
    }
    let lost = recorder.stop()?;
    let got = gotten(got)?;
    let (left, entered) = (got.identities(4, Way::Out), got.identities(9, Way::In));
    let distinct: BTreeSet<Identity> = left.iter().copied().collect();
    let kept = |port: usize, bytes: usize| {
        let frames = got.frames.iter();
        let as_asked =
            frames.filter(|frame| frame.0 == port && frame.4 == 1042 && frame.5 == bytes);
        as_asked.count()
    };
    println!(
        "left {} entered {} equal {} distinct {} cut {} whole {} of all bytes {} lost {lost:?} late {}",
        left.len(),
        entered.len(),
        left == entered,
        distinct.len(),
        kept(4, 64),
        kept(9, 1042),
        got.of_all_bytes,
        got.late,
    );
    println!("until rises {}", got.until.is_sorted());
    Ok(())
}

/// Tests that frames which pass before the end are handed over, and none that passes after it.
pub fn ends() -> Outcome {
    let [(a, _a_net), (b, _b_net)] = two_hosts(false)?;
    let (recorder, got) = start(vec![port(0, &a, "va"), port(1, &b, "vb")])?;
    let (from, _to) = (socket(a.namespace(), 1)?, socket(b.namespace(), 2)?);
    let deadline = Instant::now() + Duration::from_millis(600);
    let sending = thread::spawn(move || {
        let mut sent = Vec::new();
        while Instant::now() < deadline {
            if send(&from, &[0; 100]).is_ok() {
                sent.push(now_ns());
            }
            thread::sleep(Duration::from_micros(100));
        }
        sent
    });
    thread::sleep(Duration::from_millis(300));
    let before = now_ns();
    recorder.stop()?;
    let after = now_ns();
    let sent = sending.join().map_err(|_| "the sender panicked")?;
    let got = gotten(got)?;
    let end = got.until.last().copied().unwrap_or(0);
    let sent_before = sent.iter().filter(|at| **at <= before).count();
    let sent_later = sent.iter().filter(|at| **at > after).count();
    let complete = [got.identities(0, Way::Out), got.identities(1, Way::In)]
        .iter()
        .all(|frames| frames.len() >= sent_before);
    println!(
        "complete {complete} sent later {} none after the end {} end in time {} lost {}",
        sent_later > 0,
        got.frames.iter().all(|frame| frame.1 <= end),
        (before..=after).contains(&end),
        got.lost,
    );
    Ok(())
}

/// Tests that a sink which sleeps loses frames, and is told how many.
pub fn loses() -> Outcome {
    const SENT: u64 = 5000;
    let [(a, _a_net), (b, _b_net)] = two_hosts(false)?;
    let got = Arc::new(Mutex::new(Got::default()));
    let sink = Arc::clone(&got);
    let mut has_slept = false;
    let recorder = Recorder::start(
        vec![port(0, &b, "vb")],
        Some(Digest::of_seed(SEED)),
        move |handed| {
            if matches!(handed, Handed::Batch(_)) && !has_slept {
                has_slept = true;
                thread::sleep(Duration::from_secs(2));
            }
            if let Ok(mut got) = sink.lock() {
                got.take(handed);
            }
        },
    )?;
    let (from, _to) = (socket(a.namespace(), 1)?, socket(b.namespace(), 2)?);
    for _ in 0..SENT {
        send(&from, &[0; 1000])?;
    }
    thread::sleep(Duration::from_millis(2500));
    let told_early = got.lock().is_ok_and(|got| got.lost > 0);
    let lost = recorder.stop()?;
    let got = gotten(got)?;
    println!(
        "lost {} told before the end {told_early} same {} all {}",
        got.lost > 0,
        lost == [got.lost],
        got.frames.len() as u64 + got.lost == SENT
    );
    Ok(())
}

/// Tests that one thread records 64 rings.
pub fn many() -> Outcome {
    let [(a, _a_net), (b, _b_net)] = two_hosts(false)?;
    let ports = (0..64).map(|number| port(number, &b, "vb")).collect();
    let (recorder, got) = start(ports)?;
    let from = socket(a.namespace(), 1)?;
    for number in 0..100_u8 {
        send(&from, &[number; 1000])?;
        thread::sleep(Duration::from_millis(1));
    }
    let threads = recorder_threads()?.len();
    recorder.stop()?;
    let got = gotten(got)?;
    let first = got.identities(0, Way::In);
    let same = (0..64).filter(|number| got.identities(*number, Way::In) == first);
    println!(
        "threads {threads} frames {} same {} lost {}",
        first.len(),
        same.count(),
        got.lost
    );
    Ok(())
}

/// Tests that an interface that is removed does not end the recording of another.
pub fn goes_away() -> Outcome {
    let [(a, a_net), (_b, _b_net)] = two_hosts(false)?;
    let (recorder, got) = start(vec![port(0, &a, "va"), port(1, &a, "lo")])?;
    a_net.remove("va")?;
    thread::sleep(Duration::from_millis(100));
    let before: u64 = recorder_threads()?.iter().map(|thread| thread.1).sum();
    thread::sleep(Duration::from_millis(200));
    let after: u64 = recorder_threads()?.iter().map(|thread| thread.1).sum();
    let to_itself = a.namespace().run(|| UdpSocket::bind("127.0.0.1:0"))?;
    to_itself.send_to(&[1; 100], to_itself.local_addr()?)?;
    recorder.stop()?;
    println!(
        "spins {} frames {}",
        after - before > 100_000_000,
        gotten(got)?.frames.len()
    );
    Ok(())
}

/// Tests that a bed hands over the frames of the requested ports, in the order of the request.
pub fn bed() -> Outcome {
    let topology = Topology::star("s1", &["a", "b"]);
    let options = Options {
        wiring: Wiring::Veth,
        kernel_ip: true,
        bundles: false,
        filter: Filter::Everything,
        limits: Limits::WHOLE_FRAMES,
    };
    let mut bed = Bed::up(&topology, &options)?;
    let mut ports: Vec<(String, u32)> = topology
        .ports("s1")
        .map(|port| ("s1".to_owned(), port.number))
        .collect();
    // The port of host a comes second.
    ports.reverse();
    let got = Arc::new(Mutex::new(Got::default()));
    let sink = Arc::clone(&got);
    bed.record_into(&ports, 64, Digest::of_seed(SEED), move |handed| {
        if let Ok(mut got) = sink.lock() {
            got.take(handed);
        }
    })?;
    let ip = |name| topology.host(name).map(|host| host.ip).ok_or("no host");
    let (from, to) = (ip("a")?, ip("b")?);
    let namespace = bed.host("a").ok_or("no namespace")?.namespace().clone();
    let socket = namespace.run(|| UdpSocket::bind((from, 9)))?;
    for number in 0..10_u8 {
        socket.send_to(&[number; 100], (to, 9))?;
    }
    let lost = bed.stop_recording()?;
    let got = gotten(got)?;
    println!(
        "came {} to port {:?} others {} lost {lost:?}",
        got.identities(1, Way::In).len(),
        ports[1],
        got.frames.iter().filter(|frame| frame.0 != 1).count()
    );
    Ok(())
}

/// Prints the processor time that the recorder takes per frame of 1,500 bytes, and that copying and digesting it takes.
pub fn cost() -> Outcome {
    const SENT: u32 = 300_000;
    let [(a, _a_net), (b, _b_net)] = two_hosts(false)?;
    let fast = RecordedPort {
        rate_bps: Some(1_000_000_000),
        keep: 128,
        ..port(0, &b, "vb")
    };
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    let recorder = Recorder::start(vec![fast], Some(Digest::of_seed(SEED)), move |handed| {
        if let (Handed::Batch(batch), Ok(mut count)) = (handed, counted.lock()) {
            *count += batch.records.len();
        }
    })?;
    let (from, _to) = (socket(a.namespace(), 1)?, socket(b.namespace(), 2)?);
    let before: u64 = recorder_threads()?.iter().map(|thread| thread.1).sum();
    for _ in 0..SENT {
        send(&from, &[1; 1458])?;
    }
    thread::sleep(Duration::from_millis(100));
    let after: u64 = recorder_threads()?.iter().map(|thread| thread.1).sum();
    let lost = recorder.stop()?;
    let frames = *count.lock().map_err(|_| "poisoned")? as u64;
    let (frame, mut kept) = (vec![1_u8; 1500], Vec::with_capacity(128 * 1000));
    let start = Instant::now();
    let digest = Digest::of_seed(SEED);
    let mut identity = None;
    for number in 0..SENT {
        if number % 1000 == 0 {
            kept.clear();
        }
        identity = Some(digest.of(std::hint::black_box(&frame), 1500));
        kept.extend_from_slice(std::hint::black_box(&frame[..128]));
    }
    let floor = start.elapsed().as_nanos() as u64 / u64::from(SENT);
    std::hint::black_box((identity, kept));
    println!(
        "{frames} frames, {lost:?} lost, {} ns each, floor {floor} ns",
        (after - before) / frames.max(1)
    );
    Ok(())
}

/// Names of the recorder threads of this process, and the processor time that each has taken, in nanoseconds.
fn recorder_threads() -> std::io::Result<Vec<(String, u64)>> {
    let mut threads = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        let folder = task?.path();
        if fs::read_to_string(folder.join("comm")).is_ok_and(|name| name == "recorder\n") {
            let statistics = fs::read_to_string(folder.join("schedstat"))?;
            let time = statistics.split(' ').next().and_then(|ns| ns.parse().ok());
            threads.push((folder.display().to_string(), time.unwrap_or(0)));
        }
    }
    Ok(threads)
}
