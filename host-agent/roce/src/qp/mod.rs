//! A queue pair: queues of posted work requests, and the requester and responder that process them.

mod connection;
mod inbound;
mod outcome;
mod planned;
mod requester;
mod responder;
mod state;
mod work;

use std::collections::VecDeque;

use crate::Qpn;
use crate::completion::{Completion, CompletionQueue, Status, WorkKind};
use crate::counters::Counters;
use crate::memory::{Access, AccessError, Buffer, Memory};
use crate::packet::{Address, Ecn, Opcode, Packet, Service};
use crate::psn::{ExtendedPsn, Psn};
use connection::Connection;
use inbound::{Refused, Surroundings};
use planned::Terms;
use requester::{Requester, Verdict};

pub(crate) use connection::Shared;
pub use outcome::{ModifyError, PostError, QpConfig};
pub use state::{Fault, InitAttributes, Modify, RtrAttributes, RtsAttributes, State};
pub(crate) use work::packets_of;
pub use work::{Local, MAX_MESSAGE, MAX_PACKETS, ReceiveRequest, Remote, SendRequest, Work};

#[derive(Debug)]
pub(crate) struct QueuePair {
    qpn: Qpn,
    config: QpConfig,
    state: State,
    fault: Option<Fault>,
    init: InitAttributes,
    receives: VecDeque<ReceiveRequest>,
    connection: Option<Connection>,
    counters: Counters,
}

impl QueuePair {
    pub fn new(qpn: Qpn, config: QpConfig) -> Self {
        Self {
            qpn,
            config,
            state: State::Reset,
            fault: None,
            init: InitAttributes::default(),
            receives: VecDeque::new(),
            connection: None,
            counters: Counters::default(),
        }
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Number of posted work requests that have not completed: of sends, and of receives.
    pub fn posted(&self) -> (usize, usize) {
        let requester = self.connection.as_ref().and_then(|c| c.requester.as_ref());
        (requester.map_or(0, Requester::queued), self.receives.len())
    }

    pub fn unanswered(&self) -> Option<Psn> {
        self.connection.as_ref()?.requester.as_ref()?.unanswered()
    }

    pub fn rate_bps(&self) -> Option<u64> {
        self.connection.as_ref()?.limiter.rate_bps()
    }

    pub fn pkey(&self) -> u16 {
        self.init.pkey
    }

    /// The peer's address, from which packets are accepted; `None` before the state RTR.
    pub fn peer(&self) -> Option<Address> {
        self.connection
            .as_ref()
            .map(|connection| connection.route.to)
    }

    pub fn modify(
        &mut self,
        to: Modify,
        shared: &Shared,
        completions: &mut CompletionQueue,
    ) -> Result<(), ModifyError> {
        match (to, self.state) {
            (Modify::Reset, _) => {
                let (sends, receives) = self.posted();
                completions.release(sends + receives);
                self.receives.clear();
                self.connection = None;
                self.fault = None;
                self.state = State::Reset;
            }
            (Modify::Init(attributes), State::Reset) => {
                self.init = attributes;
                self.state = State::Init;
            }
            (Modify::Rtr(attributes), State::Init) => {
                within("max_reads", attributes.max_reads, 1, 128)?;
                within("rnr_timer", attributes.rnr_timer, 0, 31)?;
                within("dscp", attributes.dscp, 0, 63)?;
                if attributes.mtu > shared.max_mtu {
                    return Err(ModifyError::Attribute("mtu"));
                }
                let terms = Terms {
                    service: self.config.service,
                    qpn: self.qpn,
                    peer: attributes.peer_qpn,
                    pkey: self.init.pkey,
                    mtu: attributes.mtu,
                };
                self.connection = Some(Connection::new(terms, attributes, shared));
                self.state = State::Rtr;
            }
            (Modify::Rts(attributes), State::Rtr) => {
                within("timeout", attributes.timeout, 0, 31)?;
                within("retry_count", attributes.retry_count, 0, 7)?;
                within("rnr_retry", attributes.rnr_retry, 0, 7)?;
                within("max_reads", attributes.max_reads, 1, 128)?;
                check_window(attributes.window)?;
                if let Some(connection) = &mut self.connection {
                    let requester = Requester::new(connection.terms, attributes);
                    connection.requester = Some(requester);
                    self.state = State::Rts;
                }
            }
            (Modify::Error, State::Init | State::Rtr | State::Rts) => {
                self.fail(Fault::Asked, None, completions);
                if let Some(connection) = &mut self.connection {
                    connection.responder.clear();
                }
            }
            (Modify::Error, State::Error) => {}
            (_, state) => return Err(ModifyError::State(state)),
        }
        Ok(())
    }

    pub fn set_window(&mut self, window: u32) -> Result<(), ModifyError> {
        check_window(window)?;
        let requester = self.connection.as_mut().and_then(|c| c.requester.as_mut());
        let requester = requester.ok_or(ModifyError::State(self.state))?;
        requester.set_window(window);
        Ok(())
    }

    pub fn post_send<B: Buffer>(
        &mut self,
        request: SendRequest,
        memory: &Memory<B>,
        completions: &mut CompletionQueue,
    ) -> Result<(), PostError> {
        let requester = self.connection.as_mut().and_then(|c| {
            let mtu = c.terms.mtu;
            c.requester.as_mut().map(|requester| (requester, mtu))
        });
        let (State::Rts, Some((requester, mtu))) = (self.state, requester) else {
            return Err(PostError::State(self.state));
        };
        let is_read = matches!(request.work, Work::Read { .. });
        if is_read && self.config.service == Service::Unreliable {
            return Err(PostError::Unsupported);
        }
        let local = request.work.local();
        if local.len > MAX_MESSAGE || packets_of(local.len, mtu) > MAX_PACKETS {
            return Err(PostError::TooLong(local.len));
        }
        let access = if is_read {
            Access::LOCAL_WRITE
        } else {
            Access::LOCAL_READ
        };
        check_local(memory, local, access)?;
        if requester.queued() >= self.config.max_sends {
            return Err(PostError::QueueFull(self.config.max_sends));
        }
        if !completions.reserve() {
            return Err(PostError::CompletionQueueFull(completions.depth()));
        }
        requester.post(request);
        Ok(())
    }

    pub fn post_receive<B: Buffer>(
        &mut self,
        request: ReceiveRequest,
        memory: &Memory<B>,
        completions: &mut CompletionQueue,
    ) -> Result<(), PostError> {
        if matches!(self.state, State::Reset | State::Error) {
            return Err(PostError::State(self.state));
        }
        check_local(memory, request.local, Access::LOCAL_WRITE)?;
        if self.receives.len() >= self.config.max_receives {
            return Err(PostError::QueueFull(self.config.max_receives));
        }
        if !completions.reserve() {
            return Err(PostError::CompletionQueueFull(completions.depth()));
        }
        self.receives.push_back(request);
        Ok(())
    }

    /// Processes a packet from the peer of this queue pair.
    pub fn handle_packet<B: Buffer>(
        &mut self,
        now_ns: u64,
        packet: &Packet<'_>,
        memory: &mut Memory<B>,
        completions: &mut CompletionQueue,
    ) {
        let Some(connection) = &mut self.connection else {
            self.counters.wrong_state += 1;
            return;
        };
        if !matches!(self.state, State::Rtr | State::Rts) {
            self.counters.wrong_state += 1;
            return;
        }
        self.counters.rcvd_pkts += 1;
        if packet.route().ecn == Ecn::CongestionExperienced {
            self.counters.np_ecn_marked_roce_packets += 1;
            if packet.header().opcode.has_payload() {
                connection.cnp.marked(now_ns);
            }
        }
        let counters = &mut self.counters;
        let verdict = match packet.header().opcode {
            Opcode::Cnp => {
                counters.cnp_handled += 1;
                connection.limiter.handle_cnp(now_ns);
                return;
            }
            Opcode::Data { service, .. } if service != self.config.service => {
                counters.wrong_state += 1;
                return;
            }
            Opcode::Data { .. } | Opcode::ReadRequest => {
                let mut around = Surroundings {
                    terms: connection.terms,
                    access: self.init.access,
                    receives: &mut self.receives,
                    memory,
                    counters,
                    completions,
                };
                if let Err(refused) = connection.responder.handle_request(packet, &mut around) {
                    self.fail_refused(refused, completions);
                }
                return;
            }
            _ if self.config.service == Service::Unreliable => {
                counters.wrong_state += 1;
                return;
            }
            opcode => match (&mut connection.requester, opcode) {
                (None, _) => {
                    counters.wrong_state += 1;
                    return;
                }
                (Some(requester), Opcode::ReadResponse(_)) => {
                    requester.handle_read_response(now_ns, packet, memory, counters, completions)
                }
                (Some(requester), _) => requester.handle_ack(now_ns, packet, counters, completions),
            },
        };
        self.conclude(verdict, completions);
    }

    /// Runs the timers that are due at `now_ns`.
    pub fn handle_timeout(&mut self, now_ns: u64, completions: &mut CompletionQueue) {
        if self.state != State::Rts {
            return;
        }
        let requester = self.connection.as_mut().and_then(|c| c.requester.as_mut());
        let Some(requester) = requester else {
            return;
        };
        let verdict = requester.handle_timeout(now_ns, &mut self.counters);
        self.conclude(verdict, completions);
    }

    /// Earliest time at which a timer is due, or a packet that the rate limit delays may be sent; `None` if neither is pending.
    pub fn deadline_ns(&self) -> Option<u64> {
        let connection = self.connection.as_ref()?;
        let requester = match self.state {
            State::Rts => connection.requester.as_ref(),
            _ => None,
        };
        let waits_to_send = |_: &u64| {
            connection.responder.next_is_data()
                || requester.is_some_and(|requester| requester.plan().is_some())
        };
        let paced_ns = connection.limiter.next_ns().filter(waits_to_send);
        let timer_ns = requester.and_then(Requester::deadline_ns);
        [paced_ns, timer_ns].into_iter().flatten().min()
    }

    /// Writes the next packet that may be sent now to a buffer; returns the frame's length.
    pub fn poll_transmit<B: Buffer>(
        &mut self,
        now_ns: u64,
        memory: &Memory<B>,
        buffer: &mut [u8],
        completions: &mut CompletionQueue,
    ) -> Option<usize> {
        loop {
            let connection = self.connection.as_mut()?;
            let counters = &mut self.counters;
            if connection.cnp.take(now_ns) {
                counters.cnp_sent += 1;
                counters.sent_pkts += 1;
                return Some(connection.write_cnp(buffer));
            }
            let paced = connection.limiter.is_paced(now_ns);
            let requester = match self.state {
                State::Rts if !paced => connection.requester.as_ref(),
                _ => None,
            };
            let request = requester.and_then(|r| Some((r.next(), r.plan()?)));
            let data_is_next = connection.responder.next_is_data();
            let reply_waits = data_is_next && (paced || request.is_some() && connection.replied);
            let reply = match reply_waits {
                true => None,
                false => connection.responder.plan(),
            };
            if let Some(planned) = reply {
                let Ok(len) = connection.write(&planned, memory, buffer) else {
                    counters.send_err += 1;
                    connection.responder.read_failed(counters);
                    let fault = Fault::RemoteAccess;
                    self.fail(fault, None, completions);
                    continue;
                };
                connection.replied = data_is_next;
                if data_is_next {
                    connection.limiter.sent(now_ns, len);
                }
                connection.responder.sent();
                counters.sent_pkts += 1;
                return Some(len);
            }
            let (place, planned) = request?;
            let Ok(len) = connection.write(&planned, memory, buffer) else {
                counters.send_err += 1;
                let failed = (place, Status::LocalProtection);
                self.fail(Fault::Work(failed.1), Some(failed), completions);
                return None;
            };
            connection.replied = false;
            connection.limiter.sent(now_ns, len);
            counters.sent_pkts += 1;
            if let Some(requester) = &mut connection.requester {
                requester.sent(now_ns, &planned, counters, completions);
            }
            return Some(len);
        }
    }

    fn conclude(&mut self, verdict: Verdict, completions: &mut CompletionQueue) {
        if let Verdict::Failed(place, status) = verdict {
            self.fail(Fault::Work(status), Some((place, status)), completions);
        }
    }

    fn fail_refused(&mut self, refused: Refused, completions: &mut CompletionQueue) {
        let (fault, receive) = match refused {
            Refused::LocalLength => (Fault::Work(Status::LocalLength), Some(Status::LocalLength)),
            Refused::LocalProtection => {
                let status = Status::LocalProtection;
                (Fault::Work(status), Some(status))
            }
            Refused::Mtu => (Fault::Mtu, None),
            Refused::RemoteAccess => (Fault::RemoteAccess, None),
            Refused::InvalidRequest | Refused::NotReady => (Fault::InvalidRequest, None),
        };
        if let Some(status) = receive
            && let Some(request) = self.receives.pop_front()
        {
            completions.push(self.received(&request, status));
        }
        self.fail(fault, None, completions);
    }

    /// Enters the state ERROR and completes posted work requests as flushed. A NAK with the reason is still sent.
    fn fail(
        &mut self,
        fault: Fault,
        failed: Option<(ExtendedPsn, Status)>,
        completions: &mut CompletionQueue,
    ) {
        self.state = State::Error;
        self.fault = Some(fault);
        let requester = self.connection.as_mut().and_then(|c| c.requester.as_mut());
        if let Some(requester) = requester {
            requester.flush(failed, completions);
        }
        while let Some(request) = self.receives.pop_front() {
            completions.push(self.received(&request, Status::Flushed));
        }
    }

    fn received(&self, request: &ReceiveRequest, status: Status) -> Completion {
        Completion {
            wr_id: request.wr_id,
            qpn: self.qpn,
            status,
            kind: WorkKind::Receive,
            byte_len: 0,
            immediate: None,
        }
    }
}

fn check_local<B: Buffer>(
    memory: &Memory<B>,
    local: Local,
    access: Access,
) -> Result<(), AccessError> {
    match local.len {
        0 => Ok(()),
        len => memory.check(local.key, local.address, len.into(), access),
    }
}

fn check_window(window: u32) -> Result<(), ModifyError> {
    match (1..=MAX_PACKETS as u32).contains(&window) {
        true => Ok(()),
        false => Err(ModifyError::Attribute("window")),
    }
}

fn within(name: &'static str, value: u8, least: u8, most: u8) -> Result<(), ModifyError> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(ModifyError::Attribute(name))
    }
}
