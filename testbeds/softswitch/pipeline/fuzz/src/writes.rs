//! Operations of a control plane, valid and invalid: entries, groups, sessions, cells, batches that are rolled back.

use arbitrary::{Result, Unstructured};
use p4lang::runtime::{
    ActionCall, CloneSession, FieldMatch, Match, MulticastGroup, Replica, TableEntry, Value,
};
use pipeline::{
    CounterValue, GeneratorApp, Indirect, MatchKind, MeterConfig, MirrorSession, MulticastNode,
    MulticastTree, Switch, TableSpec, Trigger,
};

/// Ignores whether the switch refused the operation.
fn tried<T, E>(_: std::result::Result<T, E>) {}

/// Performs one write, which the switch may accept or refuse.
pub fn one(switch: &mut Switch, now_ns: u64, input: &mut Unstructured<'_>) -> Result<()> {
    match input.int_in_range(0..=15u8)? {
        0..=4 => {
            let tables: Vec<TableSpec> = switch.tables().cloned().collect();
            if tables.is_empty() {
                return Ok(());
            }
            let table = input.choose(&tables)?;
            table_write(switch, table, input)?;
        }
        5 => {
            let group = MulticastGroup {
                id: input.int_in_range(0..=8)?,
                replicas: replicas(input)?,
            };
            match input.ratio(1, 5)? {
                true => tried(switch.delete_multicast_group(group.id)),
                false => tried(switch.set_multicast_group(&group)),
            }
        }
        6 => {
            let session = CloneSession {
                id: input.int_in_range(0..=8)?,
                replicas: replicas(input)?,
                class_of_service: input.int_in_range(0..=9)?,
                packet_length_bytes: *input.choose(&[0, 0, 1, 20, 64, u32::MAX])?,
            };
            match input.ratio(1, 5)? {
                true => tried(switch.delete_clone_session(session.id)),
                false => tried(switch.set_clone_session(&session)),
            }
        }
        7 => {
            let registers = switch.registers().to_vec();
            if !registers.is_empty() {
                let register = input.choose(&registers)?;
                let index = index(input)?;
                if switch.register_read(&register.name, index).is_ok() {
                    let written = register.widths.iter().map(|width| value(input, *width));
                    let written = written.collect::<Result<Vec<Value>>>()?;
                    if switch
                        .register_write(&register.name, index, &written)
                        .is_ok()
                    {
                        assert_eq!(
                            switch.register_read(&register.name, index).as_deref(),
                            Ok(&*written)
                        );
                    }
                }
            }
        }
        8 => counters_and_meters(switch, now_ns, input)?,
        9 => profiles(switch, input)?,
        10 => {
            let sets: Vec<String> = value_sets(switch);
            if !sets.is_empty() {
                let name = input.choose(&sets)?;
                let fields = switch.value_set_fields(name).map(<[_]>::to_vec);
                let fields = fields.unwrap_or_default();
                let member = fields.iter().map(|f| matched(input, f.kind, f.width));
                let member = member.collect::<Result<Vec<Match>>>()?;
                match input.ratio(1, 4)? {
                    true => tried(switch.value_set_delete(name, &member)),
                    false => tried(switch.value_set_insert(name, &member)),
                }
            }
        }
        11 => switch.set_port_up(input.int_in_range(0..=8)?, input.arbitrary()?),
        12 => tofino(switch, now_ns, input)?,
        kind => {
            // A batch that is rolled back leaves the state as before.
            let before = seen(switch);
            switch.begin();
            for _ in 0..input.int_in_range(0..=6u8)? {
                let batch = input.int_in_range(0..=9u8)?;
                match batch {
                    0..=9 if kind > 12 => {
                        let tables: Vec<TableSpec> = switch.tables().cloned().collect();
                        match (batch, tables.is_empty()) {
                            (0..=5, false) => {
                                let table = input.choose(&tables)?;
                                table_write(switch, table, input)?;
                            }
                            (6, _) => profiles(switch, input)?,
                            (7, _) => counters_and_meters(switch, now_ns, input)?,
                            (_, _) => {
                                let group = MulticastGroup {
                                    id: input.int_in_range(0..=8)?,
                                    replicas: replicas(input)?,
                                };
                                tried(switch.set_multicast_group(&group));
                            }
                        }
                    }
                    _ => {}
                }
            }
            if kind == 13 {
                switch.commit();
            } else {
                switch.rollback();
                assert_eq!(before, seen(switch), "a batch was not taken back");
            }
        }
    }
    Ok(())
}

/// All state that a control plane can read, as text.
fn seen(switch: &Switch) -> Vec<String> {
    let mut seen = Vec::new();
    for table in switch.tables() {
        seen.push(format!("{:?}", switch.default_action(&table.name)));
        for entry in switch.entries(&table.name).unwrap_or_default() {
            let member = switch.indirect(&entry);
            seen.push(format!("{entry:?} {member:?}"));
        }
    }
    for profile in switch.profiles() {
        seen.push(format!("{:?}", switch.members(&profile.name)));
        seen.push(format!("{:?}", switch.groups(&profile.name)));
    }
    seen.push(format!("{:?}", switch.multicast_groups()));
    seen.push(format!("{:?}", switch.clone_sessions()));
    seen
}

fn table_write(switch: &mut Switch, table: &TableSpec, input: &mut Unstructured<'_>) -> Result<()> {
    let action = action(input, table)?;
    let what = input.int_in_range(0..=7u8)?;
    if what == 0 {
        tried(
            switch.set_default_action(&table.name, input.arbitrary::<bool>()?.then_some(&action)),
        );
        return Ok(());
    }
    let there = switch.entries(&table.name).unwrap_or_default();
    let entry = if what < 3 && !there.is_empty() {
        TableEntry {
            action,
            ..input.choose(&there)?.clone()
        }
    } else {
        let mut key = Vec::new();
        for field in &table.fields {
            if field.kind != MatchKind::Exact && input.ratio(1, 4)? {
                continue;
            }
            key.push(FieldMatch {
                field: field.name.clone(),
                value: matched(input, field.kind, field.width)?,
            });
        }
        TableEntry {
            table: table.name.clone(),
            key,
            priority: match table.wants_priority() {
                true => input.int_in_range(0..=5)?,
                false => 0,
            },
            action,
        }
    };
    match what {
        1 => tried(switch.modify_entry(&entry)),
        2 => tried(switch.delete_entry(&entry)),
        3 if table.implementation.is_some() => {
            let indirect = match input.arbitrary::<bool>()? {
                true => Indirect::Member(input.int_in_range(0..=4)?),
                false => Indirect::Group(input.int_in_range(0..=4)?),
            };
            match input.arbitrary::<bool>()? {
                true => tried(switch.insert_indirect(&entry, indirect)),
                false => tried(switch.modify_indirect(&entry, indirect)),
            }
        }
        _ => tried(switch.insert_entry(&entry)),
    }
    Ok(())
}

fn action(input: &mut Unstructured<'_>, table: &TableSpec) -> Result<ActionCall> {
    if table.actions.is_empty() {
        return Ok(ActionCall {
            name: "NoAction".to_owned(),
            params: Vec::new(),
        });
    }
    let action = input.choose(&table.actions)?;
    let param = |(name, width): &(String, u32)| Ok((name.clone(), value(input, *width)?));
    Ok(ActionCall {
        name: action.name.clone(),
        params: action.params.iter().map(param).collect::<Result<_>>()?,
    })
}

fn matched(input: &mut Unstructured<'_>, kind: MatchKind, width: u32) -> Result<Match> {
    let v = value(input, width)?;
    Ok(match kind {
        MatchKind::Exact => Match::Exact(v),
        MatchKind::Optional => Match::Optional(v),
        MatchKind::Lpm => {
            let prefix_len = input.int_in_range(0..=width + 1)?;
            let mask = Value::prefix(width, prefix_len.min(width));
            Match::lpm(&v & &mask, prefix_len)
        }
        MatchKind::Ternary => {
            let mask = value(input, width)?;
            let value = if input.ratio(7, 8)? { &v & &mask } else { v };
            Match::Ternary { value, mask }
        }
        MatchKind::Range => {
            let other = value(input, width)?;
            Match::range(v.clone().min(other.clone()), v.max(other))
        }
    })
}

/// A value that is mostly within the width, and mostly small, so that packets match it.
fn value(input: &mut Unstructured<'_>, width: u32) -> Result<Value> {
    let ones = Value::ones(width);
    Ok(match input.int_in_range(0..=7u8)? {
        0..=4 => &Value::from(u128::from(input.arbitrary::<u8>()?)) & &ones,
        5 => ones,
        6 => {
            let limbs = (0..width.div_ceil(64).max(2)).map(|_| input.arbitrary());
            &Value::from_limbs(&limbs.collect::<Result<Vec<u64>>>()?) & &ones
        }
        _ => u128::from(input.arbitrary::<u64>()?).into(),
    })
}

fn index(input: &mut Unstructured<'_>) -> Result<u64> {
    match input.ratio(7, 8)? {
        true => input.int_in_range(0..=16),
        false => input.arbitrary(),
    }
}

fn replicas(input: &mut Unstructured<'_>) -> Result<Vec<Replica>> {
    let count = input.int_in_range(0..=5u8)?;
    let ports = [0, 1, 2, 3, 64, 68, 192, 510, 0xffff_fffa, 0xffff_fffd];
    let one = |_| {
        Ok(Replica {
            port: *input.choose(&ports)?,
            instance: input.int_in_range(0..=3)?,
        })
    };
    (0..count).map(one).collect()
}

fn counters_and_meters(
    switch: &mut Switch,
    now_ns: u64,
    input: &mut Unstructured<'_>,
) -> Result<()> {
    let controls = ["Ingress.", "MyIngress.", "I.", "pipe.I."];
    let control = *input.choose(&controls)?;
    let index = index(input)?;
    let config = MeterConfig {
        cir: 1 << input.int_in_range(0..=63u8)?,
        cburst: 1 << input.int_in_range(0..=63u8)?,
        pir: 1 << input.int_in_range(0..=63u8)?,
        pburst: 1 << input.int_in_range(0..=63u8)?,
    };
    let config = input.arbitrary::<bool>()?.then_some(config);
    let value = CounterValue {
        packets: input.arbitrary()?,
        bytes: input.arbitrary()?,
    };
    for name in ["counted", "fired"] {
        let name = format!("{control}{name}");
        if switch.counter_write(&name, index, value).is_ok() {
            assert_eq!(switch.counter_read(&name, index), Ok(value));
        }
    }
    let name = format!("{control}rate");
    if switch.meter_configure(&name, index, config, now_ns).is_ok() {
        assert_eq!(switch.meter_config(&name, index), Ok(config));
    }
    let tables: Vec<String> = switch.tables().map(|t| t.name.clone()).collect();
    for table in tables {
        let entry = switch.entries(&table).unwrap_or_default().pop();
        if switch
            .direct_counter_write(&table, entry.as_ref(), value)
            .is_ok()
        {
            assert_eq!(
                switch.direct_counter_read(&table, entry.as_ref()),
                Ok(value)
            );
        }
        tried(switch.direct_meter_configure(&table, entry.as_ref(), config, now_ns));
    }
    Ok(())
}

fn profiles(switch: &mut Switch, input: &mut Unstructured<'_>) -> Result<()> {
    let names: Vec<String> = switch.profiles().map(|p| p.name.clone()).collect();
    let tables: Vec<TableSpec> = switch.tables().cloned().collect();
    if names.is_empty() || tables.is_empty() {
        return Ok(());
    }
    let name = input.choose(&names)?;
    let of = |t: &&TableSpec| t.implementation.as_ref() == Some(name);
    let table = tables.iter().find(of).unwrap_or(&tables[0]);
    let id = input.int_in_range(0..=4)?;
    let action = action(input, table)?;
    let members: Vec<(u32, u32)> = (0..input.int_in_range(0..=4u8)?)
        .map(|_| Ok((input.int_in_range(0..=4)?, input.int_in_range(0..=9)?)))
        .collect::<Result<_>>()?;
    match input.int_in_range(0..=5u8)? {
        0 => tried(switch.insert_member(name, id, &action)),
        1 => tried(switch.modify_member(name, id, &action)),
        2 => tried(switch.delete_member(name, id)),
        3 => tried(switch.insert_group(name, id, &members)),
        4 => tried(switch.modify_group(name, id, &members)),
        _ => tried(switch.delete_group(name, id)),
    }
    Ok(())
}

/// Names of the parsers' value sets, taken from the program because the switch does not list them.
fn value_sets(switch: &Switch) -> Vec<String> {
    let parsers = switch.program().parsers.iter();
    let sets = parsers.flat_map(|p| p.value_sets.iter().map(|v| v.name.clone()));
    sets.collect()
}

/// Tofino-specific settings; other architectures ignore them.
fn tofino(switch: &mut Switch, now_ns: u64, input: &mut Unstructured<'_>) -> Result<()> {
    match input.int_in_range(0..=5u8)? {
        0 => {
            let bytes: [u8; 8] = input.arbitrary()?;
            switch.set_port_metadata(input.int_in_range(0..=8)?, &bytes);
        }
        1 => switch.set_loopback_ports([input.int_in_range(0..=8)?].into()),
        2 => {
            let session = MirrorSession {
                port: input
                    .arbitrary::<bool>()?
                    .then_some(input.int_in_range(0..=600)?),
                groups: [Some(input.int_in_range(0..=3)?), None],
                copy_to_cpu: input.arbitrary()?,
                max_length: input.arbitrary::<bool>()?.then_some(40),
                ..MirrorSession::default()
            };
            let session = input.ratio(4, 5)?.then_some(session);
            tried(switch.set_mirror_session(input.int_in_range(0..=8)?, session));
        }
        3 => {
            let mut node = || {
                Ok(MulticastNode {
                    rid: input.int_in_range(0..=3)?,
                    xid: input
                        .arbitrary::<bool>()?
                        .then_some(input.int_in_range(0..=2)?),
                    ports: vec![input.int_in_range(0..=70)?, 3],
                    lags: vec![vec![1, 2], Vec::new()],
                })
            };
            let tree = MulticastTree {
                nodes: vec![node()?, node()?],
                ecmp: vec![vec![node()?], Vec::new()],
                id: input.int_in_range(0..=8)?,
            };
            tried(switch.set_multicast_tree(&tree));
        }
        4 => switch.set_pruned_ports(
            input.int_in_range(0..=3)?,
            [input.int_in_range(0..=8)?].into(),
        ),
        _ => {
            let trigger = match input.int_in_range(0..=4u8)? {
                0 => Trigger::OneShot {
                    after_ns: input.int_in_range(0..=1 << 30)?,
                },
                1 => Trigger::Periodic {
                    period_ns: 1 << input.int_in_range(20..=40u8)?,
                },
                2 => Trigger::PortDown {
                    ports: [input.int_in_range(0..=300)?].into(),
                },
                3 => Trigger::Deparser,
                _ => Trigger::Recirculation {
                    value: 0,
                    mask: input.int_in_range(0..=1)?,
                },
            };
            let app = GeneratorApp {
                trigger,
                offset: input.int_in_range(0..=64)?,
                length: input.int_in_range(0..=128)?,
                batches: input.int_in_range(0..=2)?,
                packets: input.int_in_range(0..=3)?,
                batch_gap_ns: input.int_in_range(0..=1000)?,
                packet_gap_ns: input.int_in_range(0..=1000)?,
                port: 68,
            };
            let app = input.ratio(3, 4)?.then_some(app);
            let bytes: [u8; 32] = input.arbitrary()?;
            tried(switch.set_generator(
                now_ns,
                input.int_in_range(0..=4)?,
                (input.int_in_range(0..=17_000)?, &bytes),
                input.int_in_range(0..=8)?,
                app,
            ));
            switch.port_down(now_ns, input.int_in_range(0..=300)?);
        }
    }
    Ok(())
}
