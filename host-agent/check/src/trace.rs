//! Traces: the fewest events that lead to an error in a model, in words.

use std::fmt;

use crate::machines::{Broken, Event, FrameSet, Machines};
use crate::model::{Act, Frame, Model, Wrong};
use crate::space::{Expanded, StateSpace};

/// The steps of a trace that leads to an error, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace(pub Vec<String>);

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, line) in self.0.iter().enumerate() {
            writeln!(f, "{:3}. {line}", at + 1)?;
        }
        Ok(())
    }
}

/// An error in a model, and the steps that lead to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The error that the model checker found.
    pub wrong: Wrong,
    /// The steps that lead to the error; without any of them, it would not occur.
    pub trace: Trace,
}

type Happening = (usize, Event);

/// The error at the end of a path of global states, with its trace.
pub(crate) fn find<M: Model>(
    space: &mut StateSpace<'_, M>,
    path: &[u128],
) -> Result<Found, Broken> {
    let happenings = concrete(space, path)?;
    let machines = &mut space.parts.machines;
    // The error must be reproducible.
    let wrong = replay(machines, &happenings)?.ok_or(Broken::Symmetry)?;
    let happenings = shorten(machines, happenings, &wrong)?;
    let lines = words(machines, &happenings)?;
    Ok(Found {
        wrong,
        trace: Trace(lines),
    })
}

/// The events along a path of global states. A state of the path stands for all its permutations, one of which they reach.
fn concrete<M: Model>(
    space: &mut StateSpace<'_, M>,
    path: &[u128],
) -> Result<Vec<Happening>, Broken> {
    let mut happenings = Vec::new();
    let mut state = space.parts.first.clone();
    let log = |node, event| happenings.push((node, event));
    if let Some(wrong) = space.parts.saturate(&mut state, None, log)? {
        happenings.push(wrong);
        return Ok(happenings);
    }
    for key in &path[1..] {
        let mut found = None;
        'events: for node in 0..state.len() {
            for event in space.parts.events(&state, node)? {
                let mut after = state.clone();
                let next = space.parts.next(state[node], event)?;
                if next.wrong || next.to == state[node] {
                    continue;
                }
                after[node] = next.to;
                let mut log = vec![(node, event)];
                let before = Some((node, state[node]));
                let wrong = space
                    .parts
                    .saturate(&mut after, before, |node, event| log.push((node, event)))?;
                if wrong.is_none() && space.symmetry.canonical(&mut space.parts, &after)? == *key {
                    found = Some((after, log));
                    break 'events;
                }
            }
        }
        let (after, log) = found.ok_or(Broken::Symmetry)?;
        state = after;
        happenings.extend(log);
    }
    if let Expanded::Wrong(node, event) = space.expand(&state, |_| {})? {
        happenings.push((node, event));
        let next = space.parts.next(state[node], event)?;
        if !next.wrong {
            let before = Some((node, state[node]));
            state[node] = next.to;
            let log = |node, event| happenings.push((node, event));
            let wrong = space.parts.saturate(&mut state, before, log)?;
            happenings.extend(wrong);
        }
    }
    Ok(happenings)
}

/// The error at the end of these events; `None` if there is none, or if an event is impossible, such as the delivery of a frame
/// that was not sent.
fn replay<M: Model>(
    machines: &mut Machines<'_, M>,
    happenings: &[Happening],
) -> Result<Option<Wrong>, Broken> {
    let mut nodes = machines.first.clone();
    let mut sent = FrameSet::default();
    for (node, event) in happenings {
        let can = match event.as_act() {
            Some(act) => machines.acts(nodes[*node]).contains(&act),
            None => sent.contains(event.0),
        };
        if !can {
            return Ok(None);
        }
        let step = machines.step(nodes[*node], *event)?;
        nodes[*node] = step.to;
        step.sent.iter().for_each(|(_, frame)| sent.insert(*frame));
        if step.wrong.is_some() {
            return Ok(step.wrong.clone());
        }
    }
    machines.stuck(&nodes)
}

/// Removes one event after another from a trace, as long as the same error remains at the end.
fn shorten<M: Model>(
    machines: &mut Machines<'_, M>,
    mut happenings: Vec<Happening>,
    wrong: &Wrong,
) -> Result<Vec<Happening>, Broken> {
    let same = |other: &Wrong| std::mem::discriminant(other) == std::mem::discriminant(wrong);
    loop {
        let before = happenings.len();
        let mut at = before;
        while at > 0 {
            at -= 1;
            let mut fewer = happenings.clone();
            fewer.remove(at);
            if replay(machines, &fewer)?.as_ref().is_some_and(same) {
                happenings = fewer;
            }
        }
        if happenings.len() == before {
            return Ok(happenings);
        }
    }
}

fn words<M: Model>(
    machines: &mut Machines<'_, M>,
    happenings: &[Happening],
) -> Result<Vec<String>, Broken> {
    let model = machines.model;
    let mut nodes = machines.first.clone();
    let mut lines = Vec::new();
    for (node, event) in happenings {
        let name = model.name(*node as u8);
        let mut line = match event.as_act() {
            Some(Act::Submit) => format!("{name} gets its next task"),
            Some(Act::Timer) => format!("{name}'s timers fire"),
            Some(Act::Crash) => format!("{name} crashes"),
            Some(Act::Restart) => format!("{name} restarts and loses its state"),
            Some(Act::More) => format!("{name} gets a further task"),
            None => {
                let frame = machines.frame(event.0);
                format!(
                    "{name} receives {} from {}",
                    frame_words(frame),
                    model.name(frame.from)
                )
            }
        };
        let step = machines.step(nodes[*node], *event)?.clone();
        nodes[*node] = step.to;
        let now = model.describe(machines.node(step.to));
        if !now.is_empty() {
            line.push_str(&format!(": {now}"));
        }
        let mut messages: Vec<u8> = step.sent.iter().map(|(message, _)| *message).collect();
        messages.dedup();
        for message in messages {
            let copies = step.sent.iter().filter(|(number, _)| *number == message);
            let frames: Vec<&Frame> = copies.map(|(_, frame)| machines.frame(*frame)).collect();
            let to: Vec<String> = frames.iter().map(|frame| model.name(frame.to)).collect();
            if let Some(frame) = frames.first() {
                line.push_str(&format!(
                    "; sends {} to {}",
                    frame_words(frame),
                    to.join(", ")
                ));
            }
        }
        lines.push(line);
    }
    Ok(lines)
}

/// Description of a frame in words, for a trace.
fn frame_words(frame: &Frame) -> String {
    let Ok(packet) = wire::Packet::new_checked(&frame.bytes[..]) else {
        return format!("{:02x?}", frame.bytes);
    };
    let repr = wire::Repr::parse(&packet);
    let mut words = format!("{:?} #{}", repr.kind, repr.chunk).to_uppercase();
    for (flag, word) in [
        (wire::Flags::PROBE, "PROBE"),
        (wire::Flags::SCALE_ONLY, "SCALE_ONLY"),
        (wire::Flags::AGAIN, "AGAIN"),
        (wire::Flags::NON_FINITE, "NON_FINITE"),
    ] {
        if repr.flags.contains(flag) {
            words.push_str(&format!(" {word}"));
        }
    }
    let ranks: Vec<String> = (0..64)
        .filter(|rank| repr.contributors & 1 << rank != 0)
        .map(|rank| rank.to_string())
        .collect();
    if repr.kind == wire::Kind::Update {
        words.push_str(&format!(" of {}", repr.worker));
    } else if repr.flags.contains(wire::Flags::PROBE) && repr.scale == 1 {
        words.push_str(&format!(
            " older by {}",
            0u32.wrapping_sub(repr.contributors as u32)
        ));
    } else if matches!(repr.kind, wire::Kind::Ask | wire::Kind::Here) {
        words.push_str(&format!(" of {}", repr.worker));
    } else {
        words.push_str(&format!(" with {{{}}}", ranks.join(" ")));
    }
    if repr.count > 0 {
        let values: Vec<String> = packet.values_i32().map(|value| value.to_string()).collect();
        words.push_str(&format!(" ({})", values.join(" ")));
    }
    words
}
