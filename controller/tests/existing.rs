//! A host that exists, on a bridge of a namespace of the test's own: a wire comes between the two, its faults hit just what they
//! name, and every ending leaves host and bridge as they were.
#![cfg(feature = "testbed")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::*;
use test_support::namespace::{in_namespace, ip};
use testbeds::host::Namespace;
use testbeds::net::{Netlink, Sending};

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Frames of TCP that a sender would leave unfinished.
const BULK: usize = 4_000_000;

/// A host: a process in a network namespace of its own, which ends with this. It is on bridge `br0` by `outer`.
struct Web {
    holder: Child,
    path: PathBuf,
    inside: Netlink,
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

impl Web {
    fn new() -> Web {
        ip("link set lo up");
        ip("link add br0 type bridge");
        ip("addr add 10.9.0.1/24 dev br0");
        ip("link set br0 up");
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "cat"]).stdin(Stdio::piped());
        let holder = unshare.spawn().unwrap();
        let path = PathBuf::from(format!("/proc/{}/ns/net", holder.id()));
        let own = std::fs::read_link("/proc/self/ns/net").unwrap();
        until("a namespace", || {
            std::fs::read_link(&path).is_ok_and(|link| link != own)
        });
        let namespace = Namespace::open(&path).unwrap();
        ip("link add outer type veth peer name eth0");
        Netlink::open()
            .unwrap()
            .move_to("eth0", &namespace)
            .unwrap();
        let web = Web {
            inside: Netlink::open_in(&namespace).unwrap(),
            holder,
            path,
        };
        web.ip("addr add 10.9.0.2/24 dev eth0");
        web.ip("link set eth0 up");
        ip("link set outer master br0 up");
        web
    }

    fn pid(&self) -> u32 {
        self.holder.id()
    }

    fn ip(&self, arguments: &str) {
        let pid = self.pid().to_string();
        let mut enter = Command::new("nsenter");
        enter.args(["--net", "--target", &pid, "ip"]);
        assert!(enter.args(arguments.split(' ')).status().unwrap().success());
    }

    fn namespace(&self) -> Namespace {
        Namespace::open(&self.path).unwrap()
    }

    /// All that a wire changes, and all interfaces that there are.
    fn state(&self) -> (String, Sending, Vec<String>) {
        let shown = Command::new("ip")
            .args(["link", "show", "dev", "outer"])
            .output()
            .unwrap();
        let netlink = Netlink::open().unwrap();
        let outer = format!(
            "{} {:?} {:?} {:?}",
            String::from_utf8_lossy(&shown.stdout),
            netlink.find("outer").unwrap(),
            netlink.merging("outer").unwrap(),
            netlink.ipv6_is_off("outer").unwrap(),
        );
        let sending = self.inside.sending("eth0").unwrap();
        (outer, sending, netlink.interfaces().unwrap())
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn scenario(folder: &Path, sides: &str) {
    let text = format!(
        "weir: 1
name: existing
topology: {{wire: {sides}}}
flows:
  asks: {{from: network, filter: udp.dport == 7}}
faults:
  - {{id: third, flows: asks, effect: drop, select: {{nth: 3}}}}
expect:
  - fault.third.fired == 1
  - flow.asks.sent == 5
  - flow.asks.lost == 1
"
    );
    std::fs::write(folder.join("s.yaml"), text).unwrap();
}

/// Starts the wire, and waits until it is one.
fn start(folder: &Path) -> Child {
    let mut child = weir(folder, &["-v", "between", "--scenario", "s.yaml", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !said.contains("workload begins") {
        let read = lines.read_line(&mut said).unwrap();
        assert!(read > 0, "{said}");
    }
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    child
}

/// Bulk TCP from the host to this side of the bridge. Nobody waits for an address to be asked for anew.
fn bulk(web: &Web) {
    let begun = Instant::now();
    let payload: Vec<u8> = (0..BULK).map(|n| (n % 251) as u8).collect();
    let listener = TcpListener::bind("10.9.0.1:9").unwrap();
    let sent = payload.clone();
    let namespace = web.namespace();
    let sender = std::thread::spawn(move || {
        let mut stream = namespace.run(|| TcpStream::connect("10.9.0.1:9")).unwrap();
        stream.write_all(&sent).unwrap();
        let mut back = Vec::new();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        stream.read_to_end(&mut back).unwrap();
        back
    });
    let (mut accepted, _) = listener.accept().unwrap();
    let mut come = Vec::new();
    accepted.read_to_end(&mut come).unwrap();
    assert!(come == payload, "{} bytes of {BULK}", come.len());
    accepted.write_all(&come).unwrap();
    drop(accepted);
    assert!(sender.join().unwrap() == payload);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_host_on_a_bridge_meets_just_the_faults_of_the_file_and_is_put_back() {
    if !in_namespace("a_host_on_a_bridge_meets_just_the_faults_of_the_file_and_is_put_back") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new();
    bulk(&web);
    let before = web.state();
    let sides = [
        format!("[{{name: web, pid: {}}}, network]", web.pid()),
        format!(
            "[network, {{name: web, netns: {}, link: eth0}}]",
            web.path.display()
        ),
    ];
    for sides in sides {
        scenario(folder.path(), &sides);
        let child = start(folder.path());
        assert_ne!(web.state(), before);
        let of_bridge = || Netlink::open().unwrap().find("br0").unwrap().address;
        let address = of_bridge();
        let listener = web
            .namespace()
            .run(|| UdpSocket::bind("10.9.0.2:7"))
            .unwrap();
        listener.set_read_timeout(Some(PATIENCE)).unwrap();
        let asks = UdpSocket::bind("10.9.0.1:0").unwrap();
        for number in 1..=5_u8 {
            asks.send_to(&[number], "10.9.0.2:7").unwrap();
        }
        let mut heard = [0; 4];
        for number in &mut heard {
            listener.recv(std::slice::from_mut(number)).unwrap();
        }
        assert_eq!(heard, [1, 2, 4, 5]);
        bulk(&web);
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let finished = Finished::of(child.wait_with_output().unwrap());
        finished.expect_code(PASSED);
        let run = finished.json();
        assert_eq!(run["faults"][0]["proved"], true, "{run}");
        assert_eq!(web.state(), before);
        assert_eq!(of_bridge(), address);
        bulk(&web);
    }
}

#[test]
fn killed_it_puts_the_host_back_also_if_the_host_is_gone() {
    if !in_namespace("killed_it_puts_the_host_back_also_if_the_host_is_gone") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new();
    let before = web.state();
    scenario(
        folder.path(),
        &format!("[{{name: web, pid: {}}}, network]", web.pid()),
    );
    let mut child = start(folder.path());
    assert_ne!(web.state(), before);
    child.kill().unwrap();
    child.wait().unwrap();
    until("as before", || web.state() == before);
    bulk(&web);

    let mut child = start(folder.path());
    drop(web);
    child.kill().unwrap();
    child.wait().unwrap();
    let netlink = Netlink::open().unwrap();
    until("nothing of it is left", || {
        let mut left = netlink.interfaces().unwrap();
        left.sort();
        left == ["br0", "lo"]
    });
}

#[test]
fn what_is_no_host_on_a_bridge_is_refused_and_nothing_is_touched() {
    if !in_namespace("what_is_no_host_on_a_bridge_is_refused_and_nothing_is_touched") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new();
    let before = web.state();
    let pid = web.pid();
    let refused = |sides: &str, reason: &str| {
        scenario(folder.path(), sides);
        let finished = run(folder.path(), &["between", "--scenario", "s.yaml"]);
        assert_eq!(finished.code, Some(ERROR), "{sides} {finished:?}");
        let told = &finished.stderr;
        assert!(told.contains(reason), "{sides} {told}");
    };
    refused(
        "[{name: web, netns: nobody}, network]",
        "no host at /run/netns/nobody",
    );
    refused(
        "[{name: web, netns: /dev/null}, network]",
        "no host at /dev/null",
    );
    refused(
        &format!("[{{name: web, pid: {pid}, link: eth7}}, network]"),
        "cannot find eth7",
    );
    refused(
        &format!("[{{name: web, pid: {pid}, link: lo}}, network]"),
        "it is no virtual Ethernet",
    );
    assert_eq!(web.state(), before);
    web.ip("link add more type veth peer name more1");
    let name = format!("[{{name: web, pid: {pid}}}, network]");
    refused(&name, "say by `link` which it is");
    web.ip("link del more");
    ip("link set outer nomaster");
    refused(&name, "its other end, outer, is in no bridge");
    refused("[left, network]", "does not say what its sides are");
    scenario(folder.path(), &name);
    let given = ["between", "outer", "br0", "--scenario", "s.yaml"];
    let finished = run(folder.path(), &given);
    assert!(
        finished.stderr.contains("leave IF1 and IF2 out"),
        "{finished:?}"
    );
}
