//! What queries have selected, made into messages as the client takes them.

use super::super::binding::{self, Binding, DefaultState, ReadFlags};
use super::super::profiles;
use p4lang::p4info::ActionProfile;
use p4lang::runtime::Value;
use p4rt::status::UpdateError;
use p4rt::translate::Item;
use p4rt::translate::cells::index_to_proto;
use p4rt::v1;
use pipeline::{CounterValue, EntryRef, EntryState, MeterCell, ProfileGroup};
use prost::Message as _;
use std::sync::Arc;
use tonic::Status;
use v1::entity::Entity as Kind;

/// Bytes of one response: clients accept 4 MiB.
const BYTES_PER_RESPONSE: usize = 1 << 20;

/// Something that a query selects.
pub(super) enum Answer {
    Entry(u32, Box<EntryState>, ReadFlags),
    Default(u32, Box<DefaultState>, ReadFlags),
    DirectCounter(u32, EntryRef, CounterValue),
    /// And whether its counts are asked for.
    DirectMeter(u32, EntryRef, Box<MeterCell>, bool),
    Member(u32, u32, p4lang::runtime::ActionCall),
    Group(u32, u32, ProfileGroup),
    Meter(u32, u64, Box<MeterCell>, bool),
    Register(u32, u64, Vec<Value>),
    Item(Item),
    Ready(Box<v1::Entity>),
}

/// The responses of a read, made as they are taken.
pub(super) struct Responses {
    pub(super) binding: Arc<Binding>,
    pub(super) answers: std::vec::IntoIter<Answer>,
    pub(super) end: Option<Status>,
    pub(super) _permit: tokio::sync::OwnedSemaphorePermit,
}

impl Iterator for Responses {
    type Item = Result<v1::ReadResponse, Status>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut entities, mut bytes) = (Vec::new(), 0);
        while bytes < BYTES_PER_RESPONSE {
            let Some(answer) = self.answers.next() else {
                break;
            };
            match answer.entity(&self.binding) {
                Ok(entity) => {
                    bytes += entity.encoded_len();
                    entities.push(entity);
                }
                Err(error) => {
                    self.answers = Vec::new().into_iter();
                    return Some(Err(Status::internal(error.to_string())));
                }
            }
        }
        if entities.is_empty() {
            return self.end.take().map(Err);
        }
        Some(Ok(v1::ReadResponse { entities }))
    }
}

impl Answer {
    fn entity(self, binding: &Binding) -> Result<v1::Entity, UpdateError> {
        let kind = match self {
            Answer::Ready(entity) => return Ok(*entity),
            Answer::Item(item) => return Ok(item.to_entity(&binding.index)?),
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
            Answer::Meter(id, cell, meter, counts) => Kind::MeterEntry(v1::MeterEntry {
                meter_id: id,
                index: Some(index_to_proto(cell)),
                config: meter.config().map(binding::config_to_proto),
                counter_data: counts.then(|| binding::counts_to_proto(&meter.counts())),
            }),
            Answer::Register(id, cell, scalars) => {
                Kind::RegisterEntry(binding.register_to_proto(id, cell, &scalars)?)
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
