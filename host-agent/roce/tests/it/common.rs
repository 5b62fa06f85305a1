//! Two or more endpoints, a network that loses, duplicates, reorders and corrupts frames, and a virtual clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use roce::packet::{Address, MAX_FRAME_LEN, Mtu, Packet, Service};
use roce::{
    Access, Completion, Endpoint, EndpointConfig, InitAttributes, Key, Local, Memory, Psn,
    QpConfig, Qpn, ReceiveRequest, Remote, RtrAttributes, RtsAttributes, SendRequest, Work,
};

/// splitmix64.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub fn below(&mut self, options: u64) -> u64 {
        self.next() % options
    }

    /// Whether an event with this probability, per million, happens.
    pub fn happens(&mut self, per_million: u64) -> bool {
        self.below(1_000_000) < per_million
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let drawn = self.next().to_le_bytes();
            chunk.copy_from_slice(&drawn[..chunk.len()]);
        }
    }
}

/// Faults of the network, per million frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub loss: u64,
    pub copy: u64,
    pub late: u64,
    /// Maximum delay.
    pub late_ns: u64,
    pub corrupt: u64,
}

pub struct Node {
    pub endpoint: Endpoint,
    pub memory: Memory<Vec<u8>>,
    pub completions: VecDeque<Completion>,
}

/// Address of each node's region.
pub const BASE: u64 = 0x7F00_0000_0000;

pub fn address(node: usize) -> Address {
    Address {
        mac: [2, 0, 0, 0, 0, node as u8 + 1],
        ip: [10, 0, 0, node as u8 + 1].into(),
    }
}

/// Treatment of a frame by a tap, in addition to the random faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TapAction {
    Pass,
    Drop,
    Mark,
}

/// Time of arrival, order of transmission, destination, bytes.
type InFlight = (u64, u64, usize, Vec<u8>);

/// Called with the time, the sending node, the packet.
pub type Tap = Box<dyn FnMut(u64, usize, &Packet<'_>) -> TapAction>;

pub struct Network {
    pub now_ns: u64,
    pub nodes: Vec<Node>,
    pub faults: Faults,
    pub delay_ns: u64,
    pub rng: Rng,
    in_flight: BinaryHeap<Reverse<InFlight>>,
    order: u64,
    buffer: Vec<u8>,
    /// Inspects each frame that is sent.
    pub tap: Tap,
    /// Transmission time per byte in picoseconds; 0: none. A node sends its next frame when the previous one has left.
    pub ps_per_byte: u64,
    free_ps: Vec<u64>,
    /// Queue that all frames for one node pass.
    pub bottleneck: Option<Bottleneck>,
}

/// A queue that marks by its length (RED): no frame up to `least_bytes`, all from `most_bytes` on, in between a share up to
/// `share`.
pub struct Bottleneck {
    pub to: usize,
    pub ps_per_byte: u64,
    pub least_bytes: u64,
    pub most_bytes: u64,
    pub share: f64,
    /// Time at which all waiting frames have left.
    pub free_ps: u64,
    pub longest_bytes: u64,
}

impl Bottleneck {
    /// Time at which a frame that arrives now leaves, and whether it is marked.
    fn pass(&mut self, at_ps: u64, len: usize, rng: &mut Rng) -> (u64, bool) {
        let waiting = self.free_ps.saturating_sub(at_ps) / self.ps_per_byte;
        self.longest_bytes = self.longest_bytes.max(waiting);
        self.free_ps = self.free_ps.max(at_ps) + len as u64 * self.ps_per_byte;
        let over = waiting.saturating_sub(self.least_bytes) as f64;
        let share = if waiting >= self.most_bytes {
            1.0
        } else {
            over / (self.most_bytes - self.least_bytes) as f64 * self.share
        };
        (self.free_ps, rng.happens((share * 1e6) as u64))
    }
}

impl Network {
    pub fn new(seed: u64, nodes: usize) -> Self {
        Self::with(seed, nodes, |_| {})
    }

    pub fn with(seed: u64, nodes: usize, change: impl Fn(&mut EndpointConfig)) -> Self {
        let mut rng = Rng(seed);
        let node = |index: usize| {
            let mut config = EndpointConfig::new(address(index), rng.next());
            change(&mut config);
            Node {
                endpoint: Endpoint::new(config),
                memory: Memory::new(16, rng.next()),
                completions: VecDeque::new(),
            }
        };
        let nodes: Vec<Node> = (0..nodes).map(node).collect();
        Self {
            now_ns: 1_000_000,
            free_ps: vec![0; nodes.len()],
            nodes,
            faults: Faults::default(),
            delay_ns: 1000,
            rng,
            in_flight: BinaryHeap::new(),
            order: 0,
            buffer: vec![0; MAX_FRAME_LEN],
            tap: Box::new(|_, _, _| TapAction::Pass),
            ps_per_byte: 0,
            bottleneck: None,
        }
    }

    /// Registers a region with all rights at [`BASE`].
    pub fn register(&mut self, node: usize, bytes: Vec<u8>) -> Key {
        let memory = &mut self.nodes[node].memory;
        memory.register(bytes, BASE, Access::ALL).unwrap()
    }

    /// Connects queue pairs of nodes 0 and 1.
    pub fn connect(&mut self, setup: Setup) -> [Qpn; 2] {
        self.connect_pair([0, 1], setup)
    }

    pub fn connect_pair(&mut self, nodes: [usize; 2], setup: Setup) -> [Qpn; 2] {
        let qpns = nodes.map(|node| {
            let config = QpConfig {
                max_sends: setup.queue,
                max_receives: setup.queue,
                ..QpConfig::new(setup.service)
            };
            self.nodes[node].endpoint.create(config).unwrap()
        });
        for side in 0..2 {
            let rtr = RtrAttributes {
                peer: address(nodes[1 - side]),
                peer_qpn: qpns[1 - side],
                psn: setup.psns[1 - side],
                mtu: setup.mtu,
                max_reads: setup.max_reads,
                rnr_timer: 1,
                dscp: 0,
            };
            let rts = RtsAttributes {
                timeout: setup.timeout,
                retry_count: setup.retry_count,
                rnr_retry: setup.rnr_retry,
                max_reads: setup.max_reads,
                window: setup.window,
                ..RtsAttributes::new(setup.psns[side])
            };
            let endpoint = &mut self.nodes[nodes[side]].endpoint;
            let init = InitAttributes::default();
            endpoint.connect(qpns[side], init, rtr, rts).unwrap();
        }
        qpns
    }

    pub fn send(&mut self, node: usize, qpn: Qpn, wr_id: u64, work: Work) {
        let Node {
            endpoint, memory, ..
        } = &mut self.nodes[node];
        let request = SendRequest {
            wr_id,
            work,
            signaled: true,
            solicited: false,
        };
        endpoint.post_send(qpn, request, memory).unwrap();
    }

    pub fn receive(&mut self, node: usize, qpn: Qpn, wr_id: u64, local: Local) {
        let Node {
            endpoint, memory, ..
        } = &mut self.nodes[node];
        let request = ReceiveRequest { wr_id, local };
        endpoint.post_receive(qpn, request, memory).unwrap();
    }

    /// Lets all nodes send everything that they may send now.
    fn transmit(&mut self) {
        for index in 0..self.nodes.len() {
            while self.free_ps[index] <= self.now_ns * 1000 {
                let Node {
                    endpoint, memory, ..
                } = &mut self.nodes[index];
                let len = endpoint.poll_transmit(self.now_ns, memory, &mut self.buffer);
                let Some(len) = len else { break };
                self.forward(index, len);
            }
        }
    }

    fn forward(&mut self, from: usize, len: usize) {
        let frame = &self.buffer[..len];
        let packet = Packet::parse_unchecked(frame).unwrap();
        let to = usize::from(packet.route().to.mac[5]) - 1;
        let verdict = (self.tap)(self.now_ns, from, &packet);
        let mut leaves_ps = self.now_ns * 1000 + len as u64 * self.ps_per_byte;
        self.free_ps[from] = leaves_ps;
        if verdict == TapAction::Drop || self.rng.happens(self.faults.loss) {
            return;
        }
        let mut is_marked = verdict == TapAction::Mark;
        if let Some(bottleneck) = self.bottleneck.as_mut().filter(|b| b.to == to) {
            let (free_ps, marked) = bottleneck.pass(leaves_ps, len, &mut self.rng);
            leaves_ps = free_ps;
            is_marked |= marked;
        }
        let mut frame = frame.to_vec();
        if is_marked {
            mark(&mut frame);
        }
        let copies = 1 + u64::from(self.rng.happens(self.faults.copy));
        for _ in 0..copies {
            let mut frame = frame.clone();
            let mut at_ns = leaves_ps / 1000 + self.delay_ns;
            if self.rng.happens(self.faults.late) {
                at_ns += self.rng.below(self.faults.late_ns.max(1));
            }
            if self.rng.happens(self.faults.corrupt) {
                let bit = self.rng.below(frame.len() as u64 * 8) as usize;
                frame[bit / 8] ^= 1 << (bit % 8);
            }
            self.order += 1;
            let entry = (at_ns, self.order, to, frame);
            self.in_flight.push(Reverse(entry));
        }
    }

    /// Advances the clock to the next event, at most to `until_ns`; returns whether there was one.
    pub fn step(&mut self, until_ns: u64) -> bool {
        self.transmit();
        // A node that is transmitting runs its timers when it has finished.
        let free_ns = self.free_ps.iter().map(|ps| ps.div_ceil(1000));
        let timeouts = self.nodes.iter().zip(free_ns);
        let timeouts =
            timeouts.filter_map(|(node, free_ns)| Some(node.endpoint.poll_timeout()?.max(free_ns)));
        let arrival = self.in_flight.peek().map(|Reverse(entry)| entry.0);
        let busy = self.free_ps.iter().map(|ps| ps.div_ceil(1000));
        let busy = busy.filter(|&free_ns| free_ns > self.now_ns);
        let Some(next_ns) = timeouts.chain(arrival).chain(busy).min() else {
            return false;
        };
        let next_ns = next_ns.max(self.now_ns);
        if next_ns > until_ns {
            return false;
        }
        self.now_ns = next_ns;
        while let Some(entry) = self.in_flight.peek_mut() {
            if entry.0.0 > next_ns {
                break;
            }
            let Reverse((_, _, to, frame)) = std::collections::binary_heap::PeekMut::pop(entry);
            let Node {
                endpoint, memory, ..
            } = &mut self.nodes[to];
            let _ = endpoint.handle_frame(next_ns, memory, &frame);
        }
        for node in &mut self.nodes {
            node.endpoint.handle_timeout(next_ns);
            while let Some(completion) = node.endpoint.poll_completion() {
                node.completions.push_back(completion);
            }
        }
        true
    }

    /// Runs until no event is left.
    pub fn run(&mut self) {
        let until_ns = self.now_ns + 600_000_000_000;
        while self.step(until_ns) {}
        assert!(self.now_ns < until_ns, "still something after ten minutes");
    }

    pub fn completions(&mut self, node: usize) -> Vec<Completion> {
        let node = &mut self.nodes[node];
        let mut all: Vec<Completion> = node.completions.drain(..).collect();
        all.extend(std::iter::from_fn(|| node.endpoint.poll_completion()));
        all
    }

    pub fn bytes(&self, node: usize, key: Key) -> &[u8] {
        self.nodes[node].memory.buffer(key).unwrap()
    }
}

/// Sets congestion experienced, and corrects the IP checksum.
fn mark(frame: &mut [u8]) {
    frame[15] |= 3;
    frame[24..26].fill(0);
    let words = frame[14..34].chunks(2);
    let mut sum: u32 = words.map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[derive(Debug, Clone, Copy)]
pub struct Setup {
    pub service: Service,
    pub mtu: Mtu,
    pub psns: [Psn; 2],
    pub timeout: u8,
    pub retry_count: u8,
    pub rnr_retry: u8,
    pub max_reads: u8,
    pub window: u32,
    pub queue: usize,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            service: Service::Reliable,
            mtu: Mtu::B1024,
            psns: [Psn::new(0xFF_FFF0), Psn::new(77)],
            timeout: 8,
            retry_count: 7,
            rnr_retry: 7,
            max_reads: 16,
            window: 128,
            queue: 128,
        }
    }
}

pub fn local(key: Key, offset: usize, len: usize) -> Local {
    Local {
        key,
        address: BASE + offset as u64,
        len: len as u32,
    }
}

pub fn remote(key: Key, offset: usize) -> Remote {
    Remote {
        address: BASE + offset as u64,
        rkey: key.0,
    }
}
