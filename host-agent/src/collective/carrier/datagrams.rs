//! Carrier of a rank's frames as UDP datagrams, to the switch and to other ranks (`docs/protocol.md`, "Frame").

use std::net::Ipv4Addr;
use std::os::fd::{BorrowedFd, RawFd};

use aggregation::Destination;
use aggregation::rank::{Setup, Transmit};
use wire::{Flags, Kind, MAX_TRANSMISSION, Packet, Repr};

use super::super::CollectiveError;
use super::{Carrier, Takes, io_error};
use crate::frames::{
    Endpoint, Frames, HEADERS_LEN, Headers, LinkFault, asking, mark, open, refused, source, sum,
};

/// Carrier of a rank's frames over UDP datagrams.
pub struct Datagrams<F> {
    frames: F,
    rank: u16,
    me: Endpoint,
    /// Headers of frames that the switch sums for all ranks, and of those that it answers.
    to_all: Headers,
    to_switch: Headers,
    /// Addresses of the job's ranks, by rank number; empty if they are unknown.
    peers: Vec<Endpoint>,
    /// Accepted senders, ascending: the job's ranks, whose addresses are also in the frames that a switch makes of their
    /// frames. If the job's ranks are unknown, every sender is accepted.
    senders: Vec<Ipv4Addr>,
    frame: Vec<u8>,
    /// Identification of the next frame, in its IP header.
    identification: u16,
    question: Option<Question>,
    foreign: u64,
    unsent: u64,
}

impl<F: Frames> Datagrams<F> {
    /// A carrier for the rank with addresses `me`; `peers` are the addresses of all ranks, or empty if they are unknown.
    pub fn new(frames: F, job: u16, rank: u16, me: Endpoint, peers: Vec<Endpoint>) -> Self {
        let mut senders: Vec<Ipv4Addr> = peers.iter().map(|peer| peer.ip).collect();
        senders.sort_unstable();
        Self {
            frames,
            rank,
            me,
            to_all: Headers::new(me, sum(job)),
            to_switch: Headers::new(me, asking(job, me)),
            peers,
            senders,
            frame: Vec::new(),
            identification: 0,
            question: None,
            foreign: 0,
            unsent: 0,
        }
    }

    /// A carrier that accepts only the switch's answers to this rank's frames, before the job's ranks are known.
    pub fn alone(frames: F, job: u16, rank: u16, me: Endpoint) -> Self {
        Self {
            senders: vec![me.ip],
            ..Self::new(frames, job, rank, me, Vec::new())
        }
    }

    /// Also asks the switch whether it takes bundles of frames: by two probes of the job's first chunks, which leave as one bundle.
    /// If the switch takes them, it answers with a bundle.
    #[must_use]
    pub fn asking_for_bundles(self, setup: &Setup) -> Self {
        let probes = [0, 1].map(|offset| {
            let mut header = setup.job.probe(offset, setup.place.child);
            header.transmission = MAX_TRANSMISSION;
            header
        });
        let question = Some(Question {
            probes,
            left: QUESTIONS,
            due_ns: 0,
            unanswered: 0,
        });
        Self { question, ..self }
    }

    /// Number of the rank that uses this carrier.
    pub fn rank(&self) -> u16 {
        self.rank
    }
}

/// Number of times that a rank asks whether its switch takes bundles, and the time between two of them.
const QUESTIONS: u32 = 3;
const BETWEEN_QUESTIONS_NS: u64 = 200_000_000;

/// Question whether the switch takes bundles.
struct Question {
    probes: [Repr; 2],
    /// Number of times that the question is still asked.
    left: u32,
    due_ns: u64,
    /// Number of probes sent that no answer has been received for.
    unanswered: u32,
}

impl Question {
    /// Takes a frame that answers one of the probes; returns `false` for any other frame.
    ///
    /// Probes of the rank itself differ in their number of transmissions, until that saturates: a rank that waits long for another
    /// probes the job's first chunks so often. So no more answers are taken than probes were sent.
    fn take_answer(&mut self, header: &Repr) -> bool {
        let is_answer = self.unanswered > 0
            && header.kind == Kind::Sum
            && header.flags.contains(Flags::PROBE)
            && header.transmission == MAX_TRANSMISSION
            && self.probes.iter().any(|probe| probe.chunk == header.chunk);
        self.unanswered -= u32::from(is_answer);
        is_answer
    }
}

impl<F: Frames> Carrier for Datagrams<F> {
    fn handle_timeout(&mut self, now_ns: u64) -> Result<(), CollectiveError> {
        let Some(question) = self.question.as_mut() else {
            return Ok(());
        };
        if question.left == 0 || now_ns < question.due_ns {
            return Ok(());
        }
        question.due_ns = now_ns.saturating_add(BETWEEN_QUESTIONS_NS);
        let [one, other] = [0, 1].map(|at| {
            let header = question.probes[at];
            let mut frame = vec![0; HEADERS_LEN + header.buffer_len()];
            let number = self.identification.wrapping_add(at as u16);
            let bytes = self.to_switch.write(&mut frame, number);
            header.emit(&mut Packet::new_unchecked(bytes));
            frame
        });
        let is_open = self
            .frames
            .ask_for_bundles([&one, &other])
            .map_err(io_error)?;
        self.identification = self.identification.wrapping_add(2);
        if is_open {
            question.left -= 1;
            question.unanswered += 2;
        } else {
            question.left = 0;
        }
        Ok(())
    }

    fn poll_timeout(&self, _now_ns: u64) -> Option<u64> {
        let question = self.question.as_ref()?;
        (question.left > 0).then_some(question.due_ns)
    }

    fn send(&mut self, _now_ns: u64, frame: &Transmit<'_>) -> Result<(), CollectiveError> {
        let to_peer;
        let headers = match frame.to {
            Destination::All => &self.to_all,
            Destination::Worker(to) if to.0 == self.rank => &self.to_switch,
            Destination::Worker(to) => match self.peers.get(usize::from(to.0)) {
                Some(peer) => {
                    to_peer = Headers::new(self.me, *peer);
                    &to_peer
                }
                None => return Ok(()),
            },
            Destination::Server => return Ok(()),
        };
        let len = HEADERS_LEN + frame.header.buffer_len();
        let number = self.identification;
        self.identification = number.wrapping_add(1);
        let write = |bytes: &mut [u8]| frame.write_frame(headers.write(bytes, number));
        if let Some(room) = self.frames.room(len).map_err(io_error)? {
            write(room);
            return self.frames.written(len).map_err(io_error);
        }
        self.frame.resize(len, 0);
        write(&mut self.frame);
        self.frames.send(&self.frame).map_err(io_error)
    }

    fn flush(&mut self) -> Result<(), CollectiveError> {
        self.unsent += self.frames.flush().map_err(io_error)? as u64;
        Ok(())
    }

    fn receive(
        &mut self,
        _now_ns: u64,
        most: usize,
        taker: &mut dyn Takes,
    ) -> Result<usize, CollectiveError> {
        let (me, foreign, peers) = (self.me, &mut self.foreign, &self.peers);
        let senders = &self.senders;
        let question = &mut self.question;
        let is_known = |frame: &[u8]| {
            senders.is_empty() || source(frame).is_some_and(|ip| senders.binary_search(&ip).is_ok())
        };
        let received = self
            .frames
            .receive(most, &mut |frame: &[u8]| match open(frame, me) {
                Some(_) if !is_known(frame) => *foreign += 1,
                Some(bytes) => match Repr::parse_frame(bytes) {
                    Ok((header, _))
                        if question.as_mut().is_some_and(|q| q.take_answer(&header)) => {}
                    Ok((header, payload)) => taker.take(mark(frame), &header, payload),
                    Err(_) => taker.malformed(),
                },
                None => match refused(frame, me) {
                    Some(host) if peers.iter().any(|peer| peer.ip == host) => {
                        taker.unreachable(host)
                    }
                    Some(_) => {}
                    None => *foreign += 1,
                },
            });
        Ok(received.map_err(io_error)?.frames)
    }

    fn readable(&self) -> Vec<BorrowedFd<'_>> {
        self.frames.readable().into_iter().collect()
    }

    fn foreign(&self) -> u64 {
        self.foreign
    }

    fn overflow(&mut self) -> Option<u64> {
        self.frames.overflow()
    }

    fn unsent(&self) -> u64 {
        self.unsent
    }

    fn fault(&self) -> Option<LinkFault> {
        self.frames.fault()
    }

    fn descriptors(&self) -> Vec<RawFd> {
        self.frames.descriptors()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{Mac, build};
    use aggregation::job::{ChunkId, Job, JobConfig, JobId, WorkerId};
    use aggregation::{Mark, Retransmission};
    use frames::{Received, Sink};
    use std::collections::VecDeque;

    const JOB: u16 = 3;
    const MS: u64 = 1_000_000;

    /// A link that keeps the questions, and gives the frames that were put in.
    struct Link {
        is_open: bool,
        questions: Vec<[Vec<u8>; 2]>,
        arrived: VecDeque<Vec<u8>>,
    }

    impl Frames for Link {
        fn receive(&mut self, _: usize, sink: &mut dyn Sink) -> std::io::Result<Received> {
            let frames = self.arrived.len();
            self.arrived
                .drain(..)
                .for_each(|frame| sink.frame(&frame, 0));
            Ok(Received { frames, errors: 0 })
        }

        fn send(&mut self, _: &[u8]) -> std::io::Result<()> {
            Ok(())
        }

        fn flush(&mut self) -> std::io::Result<usize> {
            Ok(0)
        }

        fn readable(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn ask_for_bundles(&mut self, frames: [&[u8]; 2]) -> std::io::Result<bool> {
            if self.is_open {
                self.questions.push(frames.map(<[u8]>::to_vec));
            }
            Ok(self.is_open)
        }

        fn name(&self) -> &str {
            "link"
        }
    }

    /// The headers that reach the rank.
    #[derive(Default)]
    struct Rank(Vec<Repr>);

    impl Takes for Rank {
        fn take(&mut self, _: Mark, header: &Repr, _: &[u8]) {
            self.0.push(*header);
        }

        fn malformed(&mut self) {
            panic!("a malformed frame");
        }

        fn unreachable(&mut self, _: Ipv4Addr) {}

        fn near(&self, _: u16) -> (u32, u8) {
            (0, 0)
        }
    }

    fn me() -> Endpoint {
        Endpoint {
            mac: Mac([2, 0, 0, 0, 0, 1]),
            ip: Ipv4Addr::new(10, 0, 0, 1),
        }
    }

    fn carrier(is_open: bool) -> Datagrams<Link> {
        let config = JobConfig {
            job: JobId(JOB),
            workers: 2,
            window: 64,
            values_per_packet: 256,
            values_per_round: 0,
            first_chunk: ChunkId(128),
        };
        let job = Job::new(config).unwrap();
        let setup = Setup::under_one_switch(job, WorkerId(1), Retransmission::of_ranks());
        let link = Link {
            is_open,
            questions: Vec::new(),
            arrived: VecDeque::new(),
        };
        Datagrams::new(link, JOB, 1, me(), vec![me(), me()]).asking_for_bundles(&setup)
    }

    /// The probes of a question, as the switch reads them.
    fn probes(question: &[Vec<u8>; 2]) -> [Repr; 2] {
        [0, 1].map(|at| {
            let bytes = open(&question[at], asking(JOB, me())).unwrap();
            Repr::parse_frame(bytes).unwrap().0
        })
    }

    /// Passes frames with these headers to the carrier; returns those that reach the rank.
    fn arriving(carrier: &mut Datagrams<Link>, headers: &[Repr]) -> Vec<Repr> {
        for header in headers {
            let mut payload = vec![0; header.buffer_len()];
            header.emit(&mut Packet::new_unchecked(&mut payload[..]));
            let mut frame = Vec::new();
            build(&mut frame, me(), me(), &payload);
            carrier.frames.arrived.push_back(frame);
        }
        let mut rank = Rank::default();
        carrier.receive(0, 64, &mut rank).unwrap();
        rank.0
    }

    #[test]
    fn a_rank_asks_three_times() {
        let mut carrier = carrier(true);
        for (now_ns, asked, due_ns) in [
            (0, 1, Some(200 * MS)),
            (199 * MS, 1, Some(200 * MS)),
            (200 * MS, 2, Some(400 * MS)),
            // Called late, the next question is as far from this one.
            (450 * MS, 3, None),
            (10_000 * MS, 3, None),
        ] {
            carrier.handle_timeout(now_ns).unwrap();
            assert_eq!(carrier.frames.questions.len(), asked, "{now_ns}");
            assert_eq!(carrier.poll_timeout(now_ns), due_ns, "{now_ns}");
        }
        for question in &carrier.frames.questions {
            let chunks = probes(question).map(|probe| probe.chunk);
            assert_eq!(chunks, [128, 129]);
            // Or the frames would not be one bundle.
            let numbers = [0, 1].map(|at| u16::from_be_bytes([question[at][18], question[at][19]]));
            assert_eq!(numbers[1], numbers[0].wrapping_add(1));
        }
    }

    #[test]
    fn a_rank_does_not_ask_where_no_bundles_are_sent() {
        let mut carrier = carrier(false);
        assert_eq!(carrier.poll_timeout(0), Some(0));
        carrier.handle_timeout(0).unwrap();
        assert_eq!(carrier.poll_timeout(0), None);
        carrier.frames.is_open = true;
        carrier.handle_timeout(1_000 * MS).unwrap();
        assert!(carrier.frames.questions.is_empty());
    }

    /// The link has learnt that bundles are taken.
    #[test]
    fn a_rank_stops_asking_once_bundles_are_sent() {
        let mut carrier = carrier(true);
        carrier.handle_timeout(0).unwrap();
        carrier.frames.is_open = false;
        carrier.handle_timeout(200 * MS).unwrap();
        assert_eq!(carrier.frames.questions.len(), 1);
        assert_eq!(carrier.poll_timeout(200 * MS), None);
    }

    #[test]
    fn answers_to_questions_do_not_reach_the_rank() {
        let mut carrier = carrier(true);
        let first = carrier.question.as_ref().unwrap().probes[0];
        let answer = |probe: Repr| Repr {
            kind: Kind::Sum,
            ..probe
        };
        // Nothing was asked.
        assert_eq!(
            arriving(&mut carrier, &[answer(first)]),
            [answer(first)],
            "before a question"
        );
        carrier.handle_timeout(0).unwrap();
        let answers = probes(&carrier.frames.questions[0]).map(answer);
        let others = [
            Repr {
                transmission: 5,
                ..answers[0]
            },
            Repr {
                chunk: 130,
                ..answers[0]
            },
            Repr {
                flags: Flags::SCALE_ONLY,
                ..answers[0]
            },
        ];
        let all = [&answers[..1], &others, &answers[1..]].concat();
        assert_eq!(arriving(&mut carrier, &all), others);
        // A rank that has waited long probes the same chunks with the same number of transmissions.
        assert_eq!(arriving(&mut carrier, &answers), answers);
        assert_eq!(carrier.foreign(), 0);
    }
}
