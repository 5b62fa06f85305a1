//! Answers reads of other objects than table entries: direct counters and meters, members, groups, cells, value sets, digests.

use super::answer::Answer;
use super::select::{Wanted, arrays, direct_tables, which};
use super::{Access, Found, Kind, Loaded, Service, Status, Switch, UpdateError, ready, some, v1};
use p4lang::p4info::{Counter, Digest, Meter, Register, ValueSet};
use p4rt::p4info::Index;

impl Service {
    pub(super) async fn direct_counters(
        &self,
        entry: &v1::DirectCounterEntry,
        loaded: &Loaded,
        access: &Access,
    ) -> Result<Found, Status> {
        let binding = &loaded.binding;
        let tables = wanted!(direct_tables(entry.table_entry.as_ref(), binding, access));
        let counted = |table: &Wanted| binding.table(table.id).is_ok_and(|t| t.has_counter);
        let mut found = Vec::new();
        for table in tables.into_iter().filter(counted) {
            let id = table.id;
            let read = self.direct(table, move |at, counter, _| {
                Answer::DirectCounter(id, at, counter)
            });
            found.extend(wanted!(read.await?));
        }
        Ok(Ok(found))
    }

    pub(super) async fn direct_meters(
        &self,
        entry: &v1::DirectMeterEntry,
        loaded: &Loaded,
        access: &Access,
    ) -> Result<Found, Status> {
        let binding = &loaded.binding;
        let tables = wanted!(direct_tables(entry.table_entry.as_ref(), binding, access));
        let metered = |table: &Wanted| binding.table(table.id).is_ok_and(|t| t.has_meter);
        let counts = entry.counter_data.is_some();
        let mut found = Vec::new();
        for table in tables.into_iter().filter(metered) {
            let id = table.id;
            let read = self.direct(table, move |at, _, meter| {
                Answer::DirectMeter(id, at, Box::new(meter), counts)
            });
            found.extend(wanted!(read.await?));
        }
        Ok(Ok(found))
    }

    pub(super) async fn members(
        &self,
        member: &v1::ActionProfileMember,
        index: &Index,
        access: &Access,
    ) -> Result<Found, Status> {
        let id = member.action_profile_id;
        let profiles = wanted!(which(&index.action_profiles, id, access));
        let wanted = member.member_id;
        let read = move |_, switch: &mut Switch| {
            let mut found = Vec::new();
            for (profile, name) in profiles {
                let members = switch.members(&name).unwrap_or_default().into_iter();
                let members = members.filter(|(id, _)| wanted == 0 || *id == wanted);
                found.extend(members.map(|(id, call)| Answer::Member(profile, id, call)));
            }
            found
        };
        let found = self.control(read).await?;
        Ok(some(found, wanted != 0, "member"))
    }

    pub(super) async fn groups(
        &self,
        group: &v1::ActionProfileGroup,
        index: &Index,
        access: &Access,
    ) -> Result<Found, Status> {
        let id = group.action_profile_id;
        let profiles = wanted!(which(&index.action_profiles, id, access));
        let wanted = group.group_id;
        let read = move |_, switch: &mut Switch| {
            let mut found = Vec::new();
            for (profile, name) in profiles {
                let groups = switch.groups(&name).unwrap_or_default().into_iter();
                let groups = groups.filter(|(id, _)| wanted == 0 || *id == wanted);
                found.extend(groups.map(|(id, group)| Answer::Group(profile, id, group)));
            }
            found
        };
        let found = self.control(read).await?;
        Ok(some(found, wanted != 0, "group"))
    }

    pub(super) async fn meters(
        &self,
        entry: &v1::MeterEntry,
        index: &Index,
        access: &Access,
    ) -> Result<Found, Status> {
        let size = |meter: &Meter| meter.size;
        let arrays = arrays(&index.meters, entry.meter_id, entry.index, size, access);
        let counts = entry.counter_data.is_some();
        self.each_cell(wanted!(arrays), move |switch, id, name, cells| {
            let first = cells.start;
            let meters = switch.meter_cells(name, cells)?;
            Ok(Answer::Meters(id, first, meters, counts))
        })
        .await
    }

    pub(super) async fn counters(
        &self,
        entry: &v1::CounterEntry,
        index: &Index,
        access: &Access,
    ) -> Result<Found, Status> {
        let size = |counter: &Counter| counter.size;
        let arrays = arrays(&index.counters, entry.counter_id, entry.index, size, access);
        self.each_cell(wanted!(arrays), |switch, id, name, cells| {
            let first = cells.start;
            let counters = switch.counter_cells(name, cells)?;
            Ok(Answer::Counters(id, first, counters))
        })
        .await
    }

    pub(super) async fn registers(
        &self,
        entry: &v1::RegisterEntry,
        index: &Index,
        access: &Access,
    ) -> Result<Found, Status> {
        let size = |register: &Register| register.size;
        let id = entry.register_id;
        let arrays = arrays(&index.registers, id, entry.index, size, access);
        self.each_cell(wanted!(arrays), |switch, id, name, cells| {
            let first = cells.start;
            let cells = switch.register_cells(name, cells)?;
            Ok(Answer::Registers(id, first, cells))
        })
        .await
    }

    pub(super) async fn value_sets(
        &self,
        entry: &v1::ValueSetEntry,
        loaded: &Loaded,
        access: &Access,
    ) -> Result<Found, Status> {
        let binding = &loaded.binding;
        let id = entry.value_set_id;
        let sets = wanted!(which::<ValueSet>(&binding.index.value_sets, id, access));
        let read = move |_, switch: &mut Switch| {
            let members = |(id, name): (u32, String)| {
                let members = switch.value_set_members(&name).unwrap_or_default();
                (id, members.to_vec())
            };
            sets.into_iter().map(members).collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        for (id, members) in self.control(read).await? {
            let entry = wanted!(binding.value_set_to_proto(id, &members));
            found.push(ready(Kind::ValueSetEntry(entry)));
        }
        Ok(Ok(found))
    }
}

/// Reads the configuration of digests from the server's record: the program does not know which digests are enabled.
pub(super) fn digests(entry: &v1::DigestEntry, loaded: &Loaded, access: &Access) -> Found {
    let index = &loaded.binding.index;
    let digests = which::<Digest>(&index.digests, entry.digest_id, access)?;
    let configs = loaded.digests().configs().clone();
    let on = digests.into_iter().filter_map(|(digest_id, _)| {
        let config = configs.get(&digest_id)?.to_proto();
        Some(ready(Kind::DigestEntry(v1::DigestEntry {
            digest_id,
            config: Some(config),
        })))
    });
    some(on.collect(), entry.digest_id != 0, "digest that is on")
}
