//! Packet vectors on switches whose ports are virtual Ethernet, in namespaces of the test's own.
//!
//! BMv2 and p4c are found on the PATH, or in the folders of `WEIR_BMV2_DIR`; where they are missing, their runs are skipped by
//! name.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bmv2::cache::Cache;
use bmv2::tools::Tools;
use controller::target::{Kind, P4Runtime, Target, bmv2 as start_bmv2};
use softswitch::ports::{self, Frames, Io};
use tempfile::TempDir;
use test_support::namespace::{in_namespace, ip};
use testbeds::host::{Output, Process};

use crate::packet_vectors::case::{Loaded, show};
use crate::packet_vectors::{Runner, run_all};
use crate::support::*;

/// How long a frame is waited for. BMv2 takes milliseconds for an aggregation frame.
const TIMEOUT: Duration = Duration::from_secs(20);
/// IEEE 802's EtherType for experiments: no filter of a case names it, so no fault meets it.
const FENCE_TYPE: [u8; 2] = [0x88, 0xb5];

/// A switch's process with its program, and the hosts' ends of its links.
pub struct Veth {
    hosts: BTreeMap<String, Box<dyn Frames>>,
    macs: BTreeMap<String, [u8; 6]>,
    fences: u32,
    interfaces: Vec<String>,
    // The session ends before the process.
    _target: Box<dyn Target>,
    _process: Process,
    _folder: Option<TempDir>,
}

struct Links {
    hosts: BTreeMap<String, Box<dyn Frames>>,
    ports: Vec<(u32, String)>,
}

impl Links {
    fn up(loaded: &Loaded) -> Links {
        ip("link set lo up");
        let (mut hosts, mut ports) = (BTreeMap::new(), Vec::new());
        for (host, port) in &loaded.ports {
            let (switch_end, host_end) = (format!("s{port}"), format!("h{port}"));
            ip(&format!(
                "link add {switch_end} type veth peer name {host_end}"
            ));
            for name in [&switch_end, &host_end] {
                // Nothing but the test speaks on these links.
                let ipv6 = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
                let _ = std::fs::write(ipv6, "1");
                ip(&format!("link set {name} up"));
            }
            let options = ports::Options {
                io: Io::Auto,
                ..ports::Options::default()
            };
            hosts.insert(
                host.clone(),
                ports::open(&host_end, options).unwrap().frames,
            );
            ports.push((*port, switch_end));
        }
        Links { hosts, ports }
    }
}

fn runtime() -> Arc<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Arc::new(builder.worker_threads(1).enable_all().build().unwrap())
}

impl Veth {
    /// `weir switch`.
    pub fn embedded(loaded: &Loaded) -> Veth {
        let links = Links::up(loaded);
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.args([
            "switch",
            "--no-p4",
            "--device-id",
            "1",
            "--grpc-server-addr",
            "127.0.0.1:0",
        ]);
        for (port, interface) in &links.ports {
            command.args(["-i", &format!("{port}@{interface}")]);
        }
        let mut process = Process::spawn("sw", command).unwrap();
        let line = match process.next_line(TIMEOUT) {
            Output::Line(line) => line,
            other => panic!("weir switch: {other:?} {}", process.stderr()),
        };
        let address = line
            .split("P4Runtime at ")
            .nth(1)
            .and_then(|rest| rest.split(',').next());
        let address = address.unwrap_or_else(|| panic!("weir switch says: {line}"));
        let mut target = P4Runtime::connect(runtime(), "sw", address, 1).unwrap();
        target
            .load(&loaded.p4info, loaded.preprocessed.as_bytes())
            .unwrap();
        Veth::ready(loaded, links, Box::new(target), process, None)
    }

    /// BMv2.
    pub fn bmv2(kind: Kind, tools: &Tools, loaded: &Loaded) -> Veth {
        let links = Links::up(loaded);
        let job = start_bmv2::Launch {
            kind,
            switch: "sw",
            device_id: 1,
            ports: links.ports.clone(),
            p4info: &loaded.p4info,
            sources: &loaded.sources,
            log: std::env::var_os("WEIR_BMV2_LOG").map(Into::into),
        };
        let spawn = |command| Ok(Process::spawn("sw", command)?);
        let running = start_bmv2::start(tools, &runtime(), &job, spawn);
        let running = running.unwrap_or_else(|error| panic!("{error}"));
        let folder = Some(running.folder);
        Veth::ready(loaded, links, running.target, running.process, folder)
    }

    fn ready(
        loaded: &Loaded,
        links: Links,
        mut target: Box<dyn Target>,
        process: Process,
        folder: Option<TempDir>,
    ) -> Veth {
        let written = target.write(&loaded.updates());
        written.unwrap_or_else(|error| panic!("{error}"));
        Veth {
            hosts: links.hosts,
            macs: loaded.macs.clone(),
            fences: 0,
            interfaces: links.ports.into_iter().map(|port| port.1).collect(),
            _target: target,
            _process: process,
            _folder: folder,
        }
    }

    fn send(&mut self, at: &str, frame: &[u8]) {
        let port = self.hosts.get_mut(at).unwrap();
        port.send(frame).unwrap();
        assert_eq!(port.flush().unwrap(), 0, "a frame was not sent");
    }

    /// What has arrived at a host.
    fn arrived(&mut self, host: &str) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        let port = self.hosts.get_mut(host).unwrap();
        port.receive(64, &mut |frame: &[u8]| frames.push(frame.to_vec()))
            .unwrap();
        frames
    }
}

impl Runner for Veth {
    fn pass(
        &mut self,
        at: &str,
        frame: &[u8],
        expected: &BTreeMap<String, Vec<Vec<u8>>>,
    ) -> BTreeMap<String, Vec<Vec<u8>>> {
        self.send(at, frame);
        let names: Vec<String> = self.hosts.keys().cloned().collect();
        let mut left: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        let start = Instant::now();
        let missing = |left: &BTreeMap<String, Vec<Vec<u8>>>| {
            expected
                .iter()
                .any(|(host, frames)| left.get(host).map_or(0, Vec::len) < frames.len())
        };
        while missing(&left) && start.elapsed() < TIMEOUT {
            for host in &names {
                let frames = self.arrived(host);
                if !frames.is_empty() {
                    left.entry(host.clone()).or_default().extend(frames);
                }
            }
            std::thread::yield_now();
        }
        left
    }

    /// A frame to each host, behind all that may still be under way: what arrives before it was not expected.
    fn settle(&mut self) -> BTreeMap<String, Vec<Vec<u8>>> {
        let names: Vec<String> = self.hosts.keys().cloned().collect();
        let mut more: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for (position, host) in names.iter().enumerate() {
            let from = &names[(position + 1) % names.len()];
            self.fences += 1;
            let mut fence = self.macs[host].to_vec();
            fence.extend(self.macs[from]);
            fence.extend(FENCE_TYPE);
            fence.extend([0x57; 46]);
            fence.extend(self.fences.to_be_bytes());
            self.send(from, &fence);
            let start = Instant::now();
            let mut passed = false;
            while !passed {
                for frame in self.arrived(host) {
                    passed |= frame == fence;
                    if frame != fence {
                        more.entry(host.clone()).or_default().push(frame);
                    }
                }
                assert!(
                    start.elapsed() < TIMEOUT,
                    "no frame reaches {host}: {}",
                    show(&fence)
                );
                std::thread::yield_now();
            }
        }
        more
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        // The next case has links of its own.
        self.hosts.clear();
        for interface in &self.interfaces {
            ip(&format!("link del {interface}"));
        }
    }
}

#[test]
fn embedded_over_veth() {
    let _turn = beside();
    if in_namespace("embedded_over_veth") {
        run_all(Kind::Embedded, |loaded| Box::new(Veth::embedded(loaded)));
    }
}

fn bmv2_over_veth(test: &str, kind: Kind) {
    let folders = std::env::var_os("WEIR_BMV2_DIR");
    let folders: Vec<_> = folders.iter().flat_map(std::env::split_paths).collect();
    // p4c takes minutes if it was built without optimisation.
    let kept = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("p4c");
    let tools = Tools::here(&folders).caching(Some(Cache::in_folder(&kept)));
    if let Err(missing) = start_bmv2::check(kind, &tools) {
        return skip(test, missing.tool.program());
    }
    let _turn = beside();
    if in_namespace(test) {
        run_all(kind, |loaded| Box::new(Veth::bmv2(kind, &tools, loaded)));
    }
}

#[test]
fn simple_switch_grpc_over_veth() {
    bmv2_over_veth("simple_switch_grpc_over_veth", Kind::SimpleSwitchGrpc);
}

#[test]
fn psa_switch_over_veth() {
    bmv2_over_veth("psa_switch_over_veth", Kind::PsaSwitch);
}
