//! Compares the captured frames of one faulting switch with its model while they pass.
//!
//! The witness replays a frame one horizon after its arrival, when all its copies that may leave have left. Usually this
//! decides the frame. An odd frame (equal frames exist, it left differently than expected, or two readings are open) waits for a
//! second horizon, until the faults that applied to its neighbors are known.

use std::collections::{BTreeMap, BTreeSet};

use parser_gen::psn::Packet;
use parser_gen::{Headers, Library};
use scenario::model::selection::Selection;
use scenario::model::{Direction, Scenario};
use scenario::plan::announcement::{Announcement, Announcements};
use scenario::plan::{Plan, PortLatency, port_latencies, triggers_join_ports};
use scenario::replay::Engine;

use super::STAMP_NS;
use super::docket::Docket;
use super::epochs::{AFTER_LEAVING_NS, BACKLOG_NS, Group, ReplayLimit, Replayed};
use super::facts::EpochWrite;
use super::frame::{Digest, Sight, Way};
use super::odd::Ground;
use super::recovery::may_be_roce;
use super::trace::{Arrival, Passed, TOLD_BYTES};

/// The longest time, in nanoseconds, for which a switch may keep a frame: the holds of all faults,
/// the longest latency of its links, and a backlog of one second.
pub fn horizon_ns(scenario: &Scenario, switch: &str) -> u64 {
    let faults = scenario.faults.iter();
    let held = faults.map(|fault| fault.effect.longest_stay_ns());
    let latencies = port_latencies(&scenario.topology, switch).into_iter();
    let latest = latencies.map(|latency| latency.in_ns.max(latency.out_ns));
    held.chain(latest.max())
        .fold(BACKLOG_NS, u64::saturating_add)
}

/// Compares the captured frames of one faulting switch with the model of its fault engine.
pub struct Witness<'a> {
    ground: Ground<'a>,
    library: &'a Library,
    latencies: Vec<PortLatency>,
    /// Time in nanoseconds from a frame's arrival after which the frame cannot leave the switch any more.
    horizon_ns: u64,
    passed: Passed,
    groups: Vec<Group>,
    /// For each recorded port, the index of its group in `groups` and the number of frames that arrived by it.
    ports: BTreeMap<u32, (usize, u64)>,
    told: Announcements,
    /// Indices of the injections (faults on flows) that select packets by their sequence number.
    places: Vec<usize>,
    /// Whether some fault takes packets, so that the recovery of RDMA connections is reported.
    takes: bool,
    /// Time until which the captures have all frames, in nanoseconds since 1970.
    now_ns: u64,
    /// Frames that passed after this time are not judged, since some are missing from the captures; `None`: all are judged.
    ends_ns: Option<u64>,
    /// Whether the time `ends_ns` has passed, and the frames that were open then are forgotten.
    is_over: bool,
    /// Counts of the switch's decided frames, and the frames that wait for a decision.
    pub docket: Docket,
}

impl<'a> Witness<'a> {
    /// A witness of a switch that the plan names. `ports` lists the recorded ports.
    pub fn new(
        scenario: &'a Scenario,
        plan: &'a Plan,
        name: &'a str,
        ports: impl Iterator<Item = u32>,
        (digest, shares_stamps): (Digest, bool),
    ) -> Option<Witness<'a>> {
        let latencies = port_latencies(&scenario.topology, name);
        let engine = Engine::new(scenario, plan, name)?;
        // A port that holds frames for the latency of its link changes their arrival time.
        let engine = match shares_stamps && latencies.is_empty() {
            true => engine.with_shared_clock(),
            false => engine,
        };
        let counters = plan.injections.len() + scenario.triggers.len();
        let is_joined = triggers_join_ports(scenario, plan, name);
        let ports: BTreeSet<u32> = ports.collect();
        let ports: BTreeMap<u32, (usize, u64)> = ports
            .into_iter()
            .enumerate()
            .map(|(group, port)| (port, (if is_joined { 0 } else { group }, 0)))
            .collect();
        let groups = ports
            .values()
            .map(|(group, _)| group + 1)
            .max()
            .unwrap_or(0);
        let places = plan.injections.iter().enumerate().filter(|(_, injection)| {
            let mut faults = scenario.faults.iter();
            let fault = faults.find(|fault| fault.id == injection.fault);
            injection.switch == name
                && fault.is_some_and(|fault| matches!(fault.selection, Selection::Psn(_)))
        });
        Some(Witness {
            library: &scenario.protocols,
            horizon_ns: horizon_ns(scenario, name),
            passed: Passed::default(),
            groups: (0..groups).map(|_| Group::new(&engine, counters)).collect(),
            ports,
            latencies,
            told: Announcements::default(),
            places: places.map(|(index, _)| index).collect(),
            takes: scenario.faults.iter().any(|fault| fault.effect.takes()),
            now_ns: 0,
            ends_ns: None,
            is_over: false,
            docket: Docket::new(plan.injections.len(), scenario.triggers.len()),
            ground: Ground {
                name,
                plan,
                digest,
                writes: Vec::new(),
                has_ingress_alone: plan.switch(name)?.faulting() == [Direction::Ingress],
                is_timed: engine.is_timed(),
                engine,
            },
        })
    }

    /// Adds a write of an epoch that took effect on the switch.
    pub fn write(&mut self, write: EpochWrite) {
        self.ground.writes.push(write);
    }

    /// Adds an announcement, which the switch received, of an RDMA connection's first sequence number.
    pub fn announce(&mut self, announcement: &Announcement) {
        self.told.add(announcement);
    }

    /// Time in nanoseconds from a frame's arrival after which the frame cannot leave the switch any more.
    pub fn horizon_ns(&self) -> u64 {
        self.horizon_ns
    }

    /// Nanoseconds from a frame's arrival until it can be decided, if a later frame shows that the switch has taken it.
    fn certain_ns(&self) -> u64 {
        match self.ground.engine.has_triggers() {
            true => self.horizon_ns,
            false => self.longest_hold_ns() + AFTER_LEAVING_NS,
        }
    }

    /// Time before which every arrived frame has been replayed, and the witness has announced the changes to its bytes.
    pub fn replayed_ns(&self) -> u64 {
        if self.is_over {
            return u64::MAX;
        }
        let waiting = self.groups.iter().filter_map(Group::oldest_ns);
        let lately_ns = self.now_ns.saturating_sub(self.certain_ns());
        waiting.fold(lately_ns, u64::min)
    }

    /// Longest time, in nanoseconds, for which faults and links hold a frame.
    pub fn longest_hold_ns(&self) -> u64 {
        self.horizon_ns - BACKLOG_NS
    }

    /// Time before which every arrived frame has been replayed, and cannot leave the switch any more.
    pub fn until_ns(&self) -> u64 {
        let waiting = self.groups.iter().filter_map(Group::oldest_ns);
        let open = self.docket.oldest_open_ns();
        waiting.chain(open).min().unwrap_or(u64::MAX)
    }

    /// All frames that arrived before this time are judged, except those for which several choices of epochs remain.
    pub fn decided_ns(&self) -> u64 {
        if self.is_over {
            return u64::MAX;
        }
        let latencies = self.latencies.iter();
        let latest = latencies.map(|latency| latency.in_ns.max(latency.out_ns));
        let open = self.until_ns().min(self.now_ns);
        let open = open.min(self.docket.oldest_ns().unwrap_or(u64::MAX));
        match open {
            u64::MAX => open,
            _ => open.saturating_sub(latest.max().unwrap_or(0)),
        }
    }

    /// Stops judging at `since_ns`, because later frames are missing; only frames about which all is known by then are judged.
    /// Returns `false`, and continues judging, if later frames may be decided already.
    pub fn give_up(&mut self, since_ns: u64) -> bool {
        let is_in_time = self.is_over || self.now_ns <= since_ns;
        if is_in_time && !self.is_over {
            self.ends_ns = Some(self.ends_ns.unwrap_or(u64::MAX).min(since_ns));
        }
        is_in_time
    }

    /// Forgets the undecided frames, since no more frames of the switch are judged.
    fn close(&mut self) {
        self.is_over = true;
        self.groups.clear();
        self.passed = Passed::default();
        self.docket.forget_undecided();
    }

    /// Time from which the witness judges no frames, if it gave up, in nanoseconds since 1970.
    pub fn given_up_ns(&self) -> Option<u64> {
        self.ends_ns
    }

    /// Takes a frame that passed a recorded port of the switch. The frames of a port come in order of time.
    pub fn see(&mut self, port: u32, sight: &Sight<'_>, headers: &Headers) {
        if self.is_over || self.ends_ns.is_some_and(|ends_ns| sight.at_ns >= ends_ns) {
            return;
        }
        let latency = self.latencies.iter().find(|latency| latency.port == port);
        let (in_ns, out_ns) = latency.map_or((0, 0), |held| (held.in_ns, held.out_ns));
        if sight.way == Way::Out {
            let left_ns = sight.at_ns.saturating_sub(out_ns);
            self.passed.leaves(sight.identity, port, left_ns);
            return;
        }
        let Some((group, count)) = self.ports.get_mut(&port) else {
            return;
        };
        *count += 1;
        let at_ns = sight.at_ns.saturating_add(in_ns);
        let mut frame = self
            .ground
            .engine
            .classify_parsed(sight.bytes, headers, port);
        frame.at_ns = at_ns;
        let is_data = (self.takes || frame.data.is_some()) && may_be_roce(sight.bytes);
        let kept = match self.ground.engine.may_rewrite(&frame) {
            true => sight.bytes,
            false if self.ground.engine.ignores(&frame) => &[],
            false => &sight.bytes[..sight.bytes.len().min(TOLD_BYTES)],
        };
        let mut bytes = match kept.len() > TOLD_BYTES {
            true => self.docket.spare.pop().unwrap_or_default(),
            false => Vec::new(),
        };
        bytes.extend_from_slice(kept);
        let arrival = Arrival {
            port,
            number: *count,
            at_ns,
            from_ns: at_ns,
            is_at_boundary: false,
            wire_len: sight.wire_len,
            identity: sight.identity,
            bytes,
            packet: is_data
                .then(|| Packet::parse(self.library, sight.bytes))
                .flatten(),
            frame,
        };
        self.passed.comes(sight.identity);
        let group = &mut self.groups[*group];
        let number = match self.ground.engine.has_triggers() {
            true => group.queue.insert_by_time(arrival),
            false => group.queue.push(arrival),
        };
        group.tell_passed(&self.ground.engine, number);
    }

    /// Replays and decides the frames that can be decided, once all captured frames until `now_ns` are in.
    pub fn advance(&mut self, now_ns: u64) {
        match self.ends_ns {
            _ if self.is_over => {}
            Some(ends_ns) if now_ns >= ends_ns => {
                self.advance_to(ends_ns);
                self.close();
            }
            _ => self.advance_to(now_ns),
        }
    }

    fn advance_to(&mut self, now_ns: u64) {
        let known_ns = now_ns.saturating_sub(self.horizon_ns);
        let lately_ns = now_ns.saturating_sub(self.certain_ns());
        let has_triggers = self.ground.engine.has_triggers();
        let is_over = |write: &&EpochWrite| write.confirmed_ns.saturating_add(STAMP_NS) <= now_ns;
        let over = self.ground.writes.iter().take_while(is_over).count();
        // A live run learns of a write before this time; a judge that reads a folder does not.
        let next = self.ground.writes.get(over);
        let next = next.filter(|write| write.sent_ns < now_ns);
        let next_ns = next.map_or(u64::MAX, |write| {
            write.sent_ns.saturating_sub(BACKLOG_NS).saturating_sub(1)
        });
        // The next frames may show which trigger state a frame met.
        let replayed_ns = match has_triggers {
            true => known_ns.saturating_sub(self.horizon_ns),
            false => lately_ns,
        };
        let mut groups = std::mem::take(&mut self.groups);
        for group in &mut groups {
            group.bound(self.ground.scene(&self.passed), &self.ground.writes[..over]);
            let scene = self.ground.scene(&self.passed);
            let taken = match has_triggers {
                true => 0,
                false => group.taken(scene, lately_ns),
            };
            let limit = |until_ns: u64, taken_until_ns| ReplayLimit {
                until_ns,
                taken,
                taken_until_ns,
            };
            self.note(group, limit(known_ns, lately_ns));
            let (ground, docket) = (&self.ground, &mut self.docket);
            let limit = limit(
                known_ns.min(replayed_ns).min(next_ns),
                lately_ns.min(next_ns),
            );
            while let Some(replayed) =
                group.replay(ground.scene(&self.passed), &ground.writes[..over], limit)
            {
                let passed = &mut self.passed;
                match replayed {
                    Replayed::One(arrival, judged) => {
                        docket.take_one(ground, passed, arrival, judged);
                    }
                    Replayed::Stretch(stretch) => docket.take(ground, passed, stretch),
                }
            }
        }
        self.groups = groups;
        self.docket.settle(&self.ground, &mut self.passed, known_ns);
        // Decisions follow the frames' timestamps, so that judging the same frames again decides at the same times.
        let quarter_ns = self.horizon_ns / 4;
        let before_ns = std::mem::replace(&mut self.now_ns, now_ns);
        if now_ns / quarter_ns == before_ns / quarter_ns {
            return;
        }
        let decided_ns = replayed_ns
            .min(self.until_ns())
            .saturating_sub(self.horizon_ns);
        self.decide(decided_ns, replayed_ns);
        if now_ns / self.horizon_ns != before_ns / self.horizon_ns {
            self.sweep(decided_ns);
        }
    }

    /// Decides all remaining frames at the end of the run.
    pub fn end(&mut self) {
        // Odd frames are examined once all frames are replayed.
        self.now_ns = u64::MAX;
        self.advance(u64::MAX);
        if self.is_over {
            return;
        }
        let mut groups = std::mem::take(&mut self.groups);
        for group in &mut groups {
            if group.oldest_ns().is_some() {
                let scene = self.ground.scene(&self.passed);
                let stretch = group.close(scene, &self.ground.writes);
                self.docket.take(&self.ground, &mut self.passed, stretch);
            }
        }
        self.docket.settle(&self.ground, &mut self.passed, u64::MAX);
        self.decide(u64::MAX, u64::MAX);
        self.sweep(u64::MAX);
    }

    /// Whether some fault of the switch takes packets.
    pub fn takes(&self) -> bool {
        self.takes
    }

    /// Decides the odd frames that arrived until `until_ns`; frames before `replayed_ns` are replayed, unless still in a queue.
    fn decide(&mut self, until_ns: u64, replayed_ns: u64) {
        let oldest_ns = self.groups.iter().filter_map(Group::oldest_ns);
        let replayed_ns = oldest_ns.fold(replayed_ns, u64::min);
        let waiting = self.groups.iter().flat_map(|group| group.queue.iter());
        let (ground, passed) = (&self.ground, &mut self.passed);
        let bounds = (until_ns, replayed_ns);
        self.docket.decide(ground, passed, waiting, bounds);
    }

    /// Counts and forgets departures until `until_ns` without an arrival: frames changed, invented or sent by a wrong port.
    fn sweep(&mut self, until_ns: u64) {
        let waiting = self.groups.iter().filter_map(Group::oldest_ns);
        let oldest_ns = waiting
            .chain(self.docket.oldest_ns())
            .min()
            .unwrap_or(u64::MAX)
            .min(until_ns);
        let before_ns = match oldest_ns {
            u64::MAX => u64::MAX,
            oldest_ns => oldest_ns.saturating_sub(STAMP_NS),
        };
        let ground = &self.ground;
        self.docket.tally.strays.foreign += self
            .passed
            .sweep(before_ns, |at_ns| ground.is_under_watch(at_ns));
        self.docket
            .forget_before(before_ns.saturating_sub(self.horizon_ns));
    }

    /// Notes when each frame that may be replayed left the switch.
    fn note(&mut self, group: &mut Group, limit: ReplayLimit) {
        while let Some(number) = group.next_unknown(limit) {
            let arrival = &group.queue[number];
            let exits = arrival.frame.exits.iter();
            let left = exits
                .filter_map(|(port, _)| self.passed.left(*port, arrival.identity).first().copied());
            let left_ns = left.min();
            let is_unique = self.passed.is_unique(arrival.identity);
            let packet = arrival
                .packet
                .as_ref()
                .filter(|_| arrival.frame.data.is_some());
            let told = packet.and_then(|packet| self.told.begun(packet, arrival.at_ns));
            if packet.is_some_and(|packet| self.told.is_in_doubt(packet, arrival.at_ns)) {
                for injection in &self.places {
                    self.docket.tally.observations[*injection].in_doubt += 1;
                }
            }
            if let Some(arrival) = group.queue.get_mut(group.known) {
                let frame = &mut arrival.frame;
                frame.told = told;
                frame.seen_to_leave = is_unique.then_some(left_ns.is_some());
                frame.left_ns = left_ns.filter(|_| is_unique);
            }
            if self.ground.engine.has_triggers() {
                let frame = &group.queue[group.known].frame;
                let behind = group
                    .queue
                    .behind(group.known)
                    .map(|arrival| &arrival.frame);
                let may_turn = self.ground.engine.may_turn(frame, behind);
                if let Some(arrival) = group.queue.get_mut(group.known) {
                    arrival.frame.may_turn = may_turn;
                }
            }
            group.known += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use scenario::plan::{TargetModel, plan};

    use super::super::{Conditions, Judge, Loser, Loss};
    use super::*;

    const S: u64 = 1_000_000_000;

    fn planned() -> (Scenario, Plan) {
        let text = "weir: 1\nname: t\ntopology: {star: {hosts: [a, b], switch: sw}}\nflows: {all: {from: a, to: b}}\n\
             faults: [{id: lost, flows: all, effect: drop}]\n";
        let scenario = scenario::load("t.yaml", text).unwrap();
        let plan = plan(&scenario, &TargetModel::EMBEDDED).unwrap();
        (scenario, plan)
    }

    fn conditions(plan: &Plan) -> Conditions {
        Conditions {
            digest: Digest::of_seed(plan.seed),
            shares_stamps: true,
        }
    }

    /// A switch that has lost frames delays neither the judge nor callers that wait for it.
    #[test]
    fn a_switch_that_is_given_up_holds_nothing_open() {
        let (scenario, plan) = planned();
        let ports = [("sw".to_owned(), 1), ("sw".to_owned(), 2)];
        let conditions = conditions(&plan);
        let mut judge = Judge::new(&scenario, &plan, &ports, conditions);
        let frame = [0; 60];
        let show = |judge: &mut Judge<'_>, at_ns| {
            let (way, wire_len) = (Way::In, 60);
            let identity = conditions.digest.of(&frame, wire_len);
            let bytes = &frame[..];
            judge.see(
                0,
                &Sight {
                    at_ns,
                    way,
                    wire_len,
                    identity,
                    bytes,
                },
            );
            judge.advance(at_ns, |_| ());
        };
        show(&mut judge, 10 * S);
        show(&mut judge, 10 * S + S / 2);
        assert!(judge.decided_ns() <= 10 * S);
        let loss = |since_ns| Loss {
            switch: "sw".to_owned(),
            port: Some(1),
            frames: 1,
            by: Loser::Recorder,
            since_ns: Some(since_ns),
        };
        judge.lose(loss(10 * S + S / 2));
        show(&mut judge, 12 * S);
        assert_eq!(judge.decided_ns(), u64::MAX);
        // A second loss long after the first changes nothing.
        judge.lose(loss(11 * S));
        judge.end(|_| ());
        let proof = judge.conclude(&[0], &[], |_| ());
        assert_eq!(proof.unproved_from["sw"], 10 * S + S / 2);
        assert_eq!(proof.losses.len(), 1);
        assert_eq!(proof.losses[0].frames, 2);
    }

    /// The judge cannot take back a decision that it made before it learned of the loss, so it proves nothing.
    #[test]
    fn a_loss_that_is_known_too_late_is_of_any_time() {
        let (scenario, plan) = planned();
        let conditions = conditions(&plan);
        let mut judge = Judge::new(&scenario, &plan, &[("sw".to_owned(), 1)], conditions);
        judge.advance(20 * S, |_| ());
        judge.lose(Loss {
            switch: "sw".to_owned(),
            port: Some(1),
            frames: 1,
            by: Loser::Recorder,
            since_ns: Some(10 * S),
        });
        judge.end(|_| ());
        let proof = judge.conclude(&[0], &[], |_| ());
        assert!(proof.unproved_from.is_empty());
        assert_eq!(proof.losses[0].since_ns, None);
    }
}
