//! A host that exists, on a bridge of a namespace of the test's own: a wire comes between the two, its faults hit just what they
//! name, and every ending leaves host and bridge as they were.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use softswitch::ports::{self, Frames};
use test_support::namespace::{in_namespace, ip, veth};
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

    /// How the bridge has it.
    fn port(&self) -> String {
        port("outer")
    }

    /// All that a wire changes, and all interfaces that there are.
    fn state(&self) -> (String, Sending, Vec<String>) {
        let shown = Command::new("ip")
            .args(["link", "show", "dev", "outer"])
            .output()
            .unwrap();
        let netlink = Netlink::open().unwrap();
        let outer = format!(
            "{} {} {:?} {:?} {:?} {:?}",
            self.port(),
            String::from_utf8_lossy(&shown.stdout),
            netlink.find("outer").unwrap(),
            netlink.merging("outer").unwrap(),
            netlink.ipv6_is_off("outer").unwrap(),
            behind("outer"),
        );
        let sending = self.inside.sending("eth0").unwrap();
        (outer, sending, netlink.interfaces().unwrap())
    }
}

fn bridge(arguments: &str) -> String {
    let mut bridge = Command::new("bridge");
    let output = bridge.args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// How a bridge has a port, without what the port is; nothing of one that is in none.
fn port(name: &str) -> String {
    let shown = bridge(&format!("-d link show dev {name}"));
    // One that is in no bridge is not shown.
    let settings = shown.split_once(" master ");
    settings.map_or_else(String::new, |(_, settings)| settings.to_owned())
}

/// What a bridge was told to be behind a port.
fn behind(name: &str) -> Vec<String> {
    let shown = bridge(&format!("fdb show dev {name}"));
    let lasts = |line: &&str| {
        ["static", "permanent", "extern_learn"]
            .iter()
            .any(|it| line.contains(it))
    };
    let told = shown
        .lines()
        .filter(|line| line.contains("master"))
        .filter(lasts);
    let mut told: Vec<_> = told.map(str::to_owned).collect();
    told.sort();
    told
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
    let _turn = beside();
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
    let _turn = beside();
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
    let _turn = beside();
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
    refused(&name, "choose one with `link`");
    web.ip("link del more");
    ip("link set lo down");
    refused(&name, "ip link set lo up");
    ip("link set lo up");
    ip("link set outer nomaster");
    refused(&name, "its other end, outer, is in no bridge");
    refused("[left, network]", "does not name an interface or host");
    scenario(folder.path(), &name);
    let given = ["between", "outer", "br0", "--scenario", "s.yaml"];
    let finished = run(folder.path(), &given);
    assert!(
        finished.stderr.contains("leave IF1 and IF2 out"),
        "{finished:?}"
    );
}

/// What comes to `other`, a host of the same bridge, of what the host and then this side of the bridge send to everybody.
fn everybody_hears(web: &Web, other: &mut dyn Frames) -> [bool; 2] {
    let receiver = UdpSocket::bind("0.0.0.0:11").unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let say = |what: &'static str| {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        socket.set_broadcast(true)?;
        socket.send_to(what.as_bytes(), "10.9.0.255:11")
    };
    web.namespace().run(|| say("of the host")).unwrap();
    let mut heard = [0; 32];
    // The bridge has had it now.
    while receiver.recv(&mut heard).unwrap() != "of the host".len() {}
    say("of the bridge's side").unwrap();
    let mut hears = [false; 2];
    until("the bridge's side", || {
        let look = &mut |frame: &[u8]| {
            hears[0] |= frame.ends_with(b"of the host");
            hears[1] |= frame.ends_with(b"of the bridge's side");
        };
        other.receive(64, look).unwrap();
        hears[1]
    });
    hears
}

#[test]
fn what_is_set_at_the_port_holds_meanwhile_and_is_put_back() {
    let _turn = beside();
    if !in_namespace("what_is_set_at_the_port_holds_meanwhile_and_is_put_back") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new();
    veth("other0", "other1");
    ip("link set other1 master br0");
    let mut other = ports::open("other0", ports::Options::default())
        .unwrap()
        .frames;
    assert_eq!(everybody_hears(&web, &mut *other), [true, true]);
    let plain = web.port();
    ip("link set other1 type bridge_slave isolated on");
    ip(
        "link set outer type bridge_slave isolated on learning off cost 7 priority 9 \
        mcast_flood off mcast_router 2 guard on",
    );
    for told in [
        "02:00:00:00:00:77 dev outer master static",
        "02:00:00:00:00:78 dev outer master permanent",
        "02:00:00:00:00:79 dev outer master extern_learn",
    ] {
        bridge(&format!("fdb add {told}"));
    }
    let (before, set, told) = (web.state(), web.port(), behind("outer"));
    assert_ne!(set, plain);
    assert!(told.len() >= 3, "{told:?}");
    assert_eq!(everybody_hears(&web, &mut *other), [false, true]);
    scenario(
        folder.path(),
        &format!("[{{name: web, pid: {}}}, network]", web.pid()),
    );
    for ending in [Signal::SIGINT, Signal::SIGKILL] {
        let mut child = start(folder.path());
        let far = format!("weir{}f", child.id());
        assert_eq!(port(&far), set);
        assert_eq!(behind(&far), told);
        assert_eq!(everybody_hears(&web, &mut *other), [false, true]);
        // Who comes second takes nothing.
        let taken = web.state();
        let given = ["between", "--scenario", "s.yaml", "--for", "100ms"];
        let second = run(folder.path(), &given);
        assert_eq!(second.code, Some(ERROR), "{second:?}");
        let said = "weir: interface outer is taken by another weir\n";
        assert_eq!(second.stderr, said);
        assert_eq!(web.state(), taken);
        kill(Pid::from_raw(child.id() as i32), ending).unwrap();
        child.wait().unwrap();
        until("as before", || web.state() == before);
        assert_eq!(everybody_hears(&web, &mut *other), [false, true]);
        // Its keeper has let go of it.
        until("free", || {
            let again = ["between", "--scenario", "s.yaml", "--for", "100ms"];
            run(folder.path(), &again).code == Some(FAILED)
        });
        assert_eq!(web.state(), before);
    }
}

#[test]
fn a_port_that_would_not_come_back_as_it_was_is_refused() {
    let _turn = beside();
    const TEST: &str = "a_port_that_would_not_come_back_as_it_was_is_refused";
    if !in_namespace(TEST) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new();
    scenario(
        folder.path(),
        &format!("[{{name: web, pid: {}}}, network]", web.pid()),
    );
    let refused = |reason: &str| {
        let before = web.state();
        let given = ["between", "--scenario", "s.yaml", "--for", "100ms"];
        let finished = run(folder.path(), &given);
        assert_eq!(finished.code, Some(ERROR), "{reason} {finished:?}");
        assert!(finished.stderr.contains(reason), "{finished:?}");
        assert_eq!(web.state(), before);
    };
    // The bridge itself sets it once it has seen the carrier.
    until("a port that forwards", || {
        port("outer").contains(" state forwarding ")
    });
    bridge("link set dev outer state 0");
    refused(
        "outer cannot be taken out of bridge br0 and be restored later: its state was set by hand: disabled",
    );
    bridge("link set dev outer state 3");
    veth("other0", "other1");
    ip("link set other1 master br0");
    ip("link set other1 type bridge_slave backup_port outer");
    refused("it is the backup port of other1");
    ip("link set other1 nomaster");
    ip("neigh add 10.9.0.77 lladdr 02:00:00:00:00:77 dev outer");
    refused("outer has the neighbour 10.9.0.77");
    ip("neigh del 10.9.0.77 dev outer");
    let vlan = ["vlan", "add", "vid", "5", "dev", "outer"];
    let added = Command::new("bridge").args(vlan).output().unwrap();
    match added.status.success() {
        true => refused("it has VLANs of its own: 1 (PVID, untagged), 5"),
        false => test_support::skip(TEST, "VLANs of a bridge need a kernel that filters them"),
    }
}
