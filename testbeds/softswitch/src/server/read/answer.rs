//! Results of the queries of a Read call, converted to P4Runtime messages as the client takes them.

use super::super::MESSAGE_BYTES;
use super::super::binding::{self, Binding, DefaultState, ReadFlags, profiles};
use p4lang::p4info::ActionProfile;
use p4rt::rpc::Code;
use p4rt::status::UpdateError;
use p4rt::translate::cells::index_to_proto;
use p4rt::v1;
use pipeline::{CounterValue, EntryRef, EntryState, MeterCell, ProfileGroup, RegisterCells};
use prost::Message as _;
use std::sync::Arc;
use tonic::Status;
use v1::entity::Entity as Kind;

/// A result of a query, to be converted to P4Runtime messages later. The first number of each variant is the object's id.
pub(super) enum Answer {
    Entry(u32, Box<EntryState>, ReadFlags),
    Default(u32, Box<DefaultState>, ReadFlags),
    DirectCounter(u32, EntryRef, CounterValue),
    /// Direct meter: table id, table entry, meter cell, and whether the client requests the counts.
    DirectMeter(u32, EntryRef, Box<MeterCell>, bool),
    Member(u32, u32, p4lang::runtime::ActionCall),
    Group(u32, u32, ProfileGroup),
    /// Meter cells: meter id, index of the first cell, the cells, and whether the client requests the counts.
    Meters(u32, u64, Vec<MeterCell>, bool),
    Counters(u32, u64, Vec<CounterValue>),
    Registers(u32, u64, RegisterCells),
    Ready(Box<v1::Entity>),
}

/// The response messages of a Read call, created as the client takes them.
pub(super) struct Responses {
    pub(super) binding: Arc<Binding>,
    pub(super) answers: std::vec::IntoIter<Answer>,
    /// Number of cells of the first remaining result that the client has already taken.
    pub(super) taken: usize,
    pub(super) end: Option<Status>,
    pub(super) _permit: tokio::sync::OwnedSemaphorePermit,
}

impl Iterator for Responses {
    type Item = Result<v1::ReadResponse, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut entities, mut bytes) = (Vec::new(), 0);
        while bytes < MESSAGE_BYTES {
            let Some(entity) = self.next_entity() else {
                break;
            };
            match entity {
                Ok(entity) => {
                    bytes += entity.encoded_len();
                    entities.push(entity);
                }
                // A value that only the data plane can hold may not be representable; all others are.
                Err(error) => {
                    let code = tonic::Code::from_i32(error.code.into());
                    let status = || Status::new(code, error.message);
                    self.end.get_or_insert_with(status);
                }
            }
        }
        if entities.is_empty() {
            return self.end.take().map(Err);
        }
        Some(Ok(v1::ReadResponse { entities }))
    }
}

impl Responses {
    /// Converts the next result to a message; array cells one by one, because as messages they take many times the memory.
    fn next_entity(&mut self) -> Option<Result<v1::Entity, UpdateError>> {
        while let Some(answer) = self.answers.as_slice().first() {
            let cell = match answer {
                Answer::Meters(id, first, cells, counts) => {
                    let cell = cells.get(self.taken);
                    cell.map(|meter| {
                        Ok(meter_entity(*id, first + self.taken as u64, meter, *counts))
                    })
                }
                Answer::Counters(id, first, cells) => {
                    let cell = cells.get(self.taken);
                    cell.map(|value| Ok(counter_entity(*id, first + self.taken as u64, *value)))
                }
                Answer::Registers(id, first, cells) => cells.fields(self.taken).map(|fields| {
                    let cell = first + self.taken as u64;
                    let entry = self.binding.register_to_proto(*id, cell, &fields)?;
                    Ok(Kind::RegisterEntry(entry))
                }),
                _ => {
                    let answer = self.answers.next()?;
                    return Some(answer.entity(&self.binding));
                }
            };
            match cell {
                Some(kind) => {
                    self.taken += 1;
                    return Some(kind.map(|kind| v1::Entity { entity: Some(kind) }));
                }
                None => {
                    self.taken = 0;
                    self.answers.next();
                }
            }
        }
        None
    }
}

fn meter_entity(meter_id: u32, cell: u64, meter: &MeterCell, counts: bool) -> Kind {
    Kind::MeterEntry(v1::MeterEntry {
        meter_id,
        index: Some(index_to_proto(cell)),
        config: meter.config().map(binding::config_to_proto),
        counter_data: counts.then(|| binding::counts_to_proto(&meter.counts())),
    })
}

fn counter_entity(counter_id: u32, cell: u64, value: CounterValue) -> Kind {
    Kind::CounterEntry(v1::CounterEntry {
        counter_id,
        index: Some(index_to_proto(cell)),
        data: Some(binding::counter_to_proto(value)),
    })
}

impl Answer {
    fn entity(self, binding: &Binding) -> Result<v1::Entity, UpdateError> {
        let kind = match self {
            Answer::Ready(entity) => return Ok(*entity),
            Answer::Entry(id, state, flags) => {
                Kind::TableEntry(binding.table(id)?.entry_to_proto(&state, flags, binding)?)
            }
            Answer::Default(id, state, flags) => {
                Kind::TableEntry(binding.table(id)?.default_to_proto(&state, flags, binding))
            }
            Answer::DirectCounter(id, at, value) => {
                Kind::DirectCounterEntry(Box::new(v1::DirectCounterEntry {
                    table_entry: Some(binding.table(id)?.key_to_proto(&at, binding)?),
                    data: Some(binding::counter_to_proto(value)),
                }))
            }
            Answer::DirectMeter(id, at, meter, counts) => {
                Kind::DirectMeterEntry(Box::new(v1::DirectMeterEntry {
                    table_entry: Some(binding.table(id)?.key_to_proto(&at, binding)?),
                    config: meter.config().map(binding::config_to_proto),
                    counter_data: counts.then(|| binding::counts_to_proto(&meter.counts())),
                }))
            }
            // Taken cell by cell in `next_entity`.
            Answer::Meters(..) | Answer::Counters(..) | Answer::Registers(..) => {
                return Err(UpdateError::new(Code::Internal, "cells are not an entity"));
            }
            Answer::Member(profile, id, call) => {
                let profile: &ActionProfile = profiles::profile(profile, binding)?;
                Kind::ActionProfileMember(profiles::member_to_proto(profile, id, &call, binding))
            }
            Answer::Group(profile, id, group) => {
                let profile: &ActionProfile = profiles::profile(profile, binding)?;
                Kind::ActionProfileGroup(profiles::group_to_proto(profile, id, &group, binding))
            }
        };
        Ok(v1::Entity { entity: Some(kind) })
    }
}
