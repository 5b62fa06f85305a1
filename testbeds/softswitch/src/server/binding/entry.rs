//! Converts table entries between P4Runtime messages and the program (P4Runtime 1.4, section 9.1).

use super::cells::{
    clears, config_to_proto, counter_to_proto, counter_value, counts_to_proto, meter_config,
};
use super::profiles::check_size;
use super::{Binding, BoundTable, NewName, Sdn, invalid};
use p4lang::p4info::ActionProfile;
use p4rt::status::UpdateError;
use p4rt::translate::TranslateError;
use p4rt::translate::action::ActionUse;
use p4rt::translate::table::check_priority;
use p4rt::v1;
use pipeline::{
    CounterValue, EntryAction, EntryRef, EntryState, EntryWrite, FieldKey, GroupMember, Indirect,
    MeterConfig, Note, OneShotAction,
};
use v1::table_action::Type as ActionKind;
use v1::update::Type;

type Result<T> = std::result::Result<T, UpdateError>;

/// The parts of a table entry that a Read call asks for, besides key and action.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::server) struct ReadFlags {
    meter: bool,
    meter_counts: bool,
    counter: bool,
    since_hit: bool,
}

impl ReadFlags {
    pub(in crate::server) fn from_query(query: &v1::TableEntry) -> Self {
        Self {
            meter: query.meter_config.is_some(),
            meter_counts: query.meter_counter_data.is_some(),
            counter: query.counter_data.is_some(),
            since_hit: query.time_since_last_hit.is_some(),
        }
    }
}

impl BoundTable {
    fn name(&self) -> &str {
        &self.info.preamble.name
    }

    fn key(&self, entry: &v1::TableEntry, sdn: &Sdn, new: NewName) -> Result<Vec<FieldKey>> {
        let mut key = Vec::with_capacity(self.fields.len());
        let mut used = 0;
        for (at, field) in self.fields.iter().enumerate() {
            // Usually in order.
            let given = match entry.r#match.get(at) {
                Some(given) if given.field_id == field.info.id => Some(given),
                _ => entry.r#match.iter().find(|m| m.field_id == field.info.id),
            };
            key.push(match given {
                Some(given) => {
                    used += 1;
                    field.key(self.name(), given, sdn, new)?
                }
                None => field.left_out(self.name())?,
            });
        }
        if used == entry.r#match.len() {
            return Ok(key);
        }
        for (at, given) in entry.r#match.iter().enumerate() {
            let owner = self.name().to_owned();
            let Some(field) = self.fields.iter().find(|f| f.info.id == given.field_id) else {
                let field = format!("with id {}", given.field_id);
                let kind = "key field";
                return Err(TranslateError::UnknownField { owner, kind, field }.into());
            };
            if entry.r#match[..at]
                .iter()
                .any(|m| m.field_id == given.field_id)
            {
                let field = field.info.name.clone();
                let kind = "key field";
                return Err(TranslateError::Twice { owner, kind, field }.into());
            }
        }
        Ok(key)
    }

    /// The table entry that an update refers to; [`super::no_entry`] if its key contains a name to which no value is assigned.
    pub(in crate::server) fn entry_ref(
        &self,
        entry: &v1::TableEntry,
        binding: &Binding,
    ) -> Result<EntryRef> {
        if entry.is_default_action {
            self.check_default(entry)?;
            return Ok(EntryRef::Default);
        }
        check_priority(&self.info, entry.priority)?;
        Ok(EntryRef::Entry(
            entry.priority,
            self.key(entry, &binding.sdn, NewName::Unknown)?,
        ))
    }

    /// Checks that a P4Runtime message for a default entry has no key, priority or timeout.
    pub(in crate::server) fn check_default(&self, entry: &v1::TableEntry) -> Result<()> {
        if !entry.r#match.is_empty() || entry.priority != 0 {
            let name = self.name();
            return Err(invalid(format!(
                "{name}: the default entry has no key and no priority; leave them out"
            )));
        }
        if entry.idle_timeout_ns != 0 || entry.time_since_last_hit.is_some() {
            return Err(invalid(
                "the default entry has no idle timeout; leave it out",
            ));
        }
        Ok(())
    }

    /// Converts a table entry to insert or modify from P4Runtime, with all its parts.
    pub(in crate::server) fn write(
        &self,
        kind: Type,
        entry: &v1::TableEntry,
        binding: &Binding,
    ) -> Result<EntryWrite> {
        check_priority(&self.info, entry.priority)?;
        let new = match kind {
            Type::Insert => NewName::Named,
            _ => NewName::Unknown,
        };
        let key = self.key(entry, &binding.sdn, new)?;
        if self.fields.is_empty() {
            return Err(invalid("a table without a key has only the default entry"));
        }
        self.check_attached(entry)?;
        if entry.time_since_last_hit.is_some() {
            return Err(invalid("time_since_last_hit is set by the switch"));
        }
        let idle_timeout_ns = u64::try_from(entry.idle_timeout_ns)
            .map_err(|_| invalid("the idle timeout is negative"))?;
        if idle_timeout_ns != 0 && !self.info.idle_timeout {
            return Err(invalid(format!(
                "{} does not support idle timeouts",
                self.name()
            )));
        }
        let action = match &entry.action {
            Some(action) => self.action(action, binding)?,
            None if kind == Type::Modify => EntryAction::Keep,
            None => return Err(TranslateError::Unset { what: "action" }.into()),
        };
        #[allow(deprecated)]
        let number = entry.controller_metadata;
        let noted = number != 0 || !entry.metadata.is_empty();
        Ok(EntryWrite {
            key,
            priority: entry.priority,
            action,
            meter: entry
                .meter_config
                .as_deref()
                .map(meter_config)
                .transpose()?,
            clear_meter_counts: clears(entry.meter_counter_data.as_deref())?,
            counter: entry.counter_data.as_ref().map(counter_value).transpose()?,
            idle_timeout_ns,
            note: noted.then(|| {
                Box::new(Note {
                    metadata: entry.metadata.clone(),
                    number,
                })
            }),
        })
    }

    /// Refuses a table entry with data of a direct counter or meter that its table lacks.
    pub(in crate::server) fn check_attached(&self, entry: &v1::TableEntry) -> Result<()> {
        if entry.counter_data.is_some() && !self.has_counter {
            return Err(invalid(format!("{} has no direct counter", self.name())));
        }
        let metered = entry.meter_config.is_some() || entry.meter_counter_data.is_some();
        if metered && !self.has_meter {
            return Err(invalid(format!("{} has no direct meter", self.name())));
        }
        Ok(())
    }

    /// The table's action profile if the profile has a selector; else an error.
    fn selector<'b>(&self, binding: &'b Binding) -> Result<&'b ActionProfile> {
        let profile = binding
            .index
            .action_profiles
            .with_id(self.info.implementation_id);
        let selector = profile.filter(|p| p.with_selector);
        selector.ok_or_else(|| invalid("the table's action profile has no selector"))
    }

    fn action(&self, action: &v1::TableAction, binding: &Binding) -> Result<EntryAction> {
        let kind = action.r#type.as_ref();
        let kind = kind.ok_or(TranslateError::Unset {
            what: "action type",
        })?;
        let indirect = self.info.implementation_id != 0;
        if indirect == matches!(kind, ActionKind::Action(_)) {
            let name = self.name();
            let reason = if indirect {
                "its entries refer to members or groups, not to actions"
            } else {
                "it has no action profile"
            };
            return Err(invalid(format!("{name}: {reason}")));
        }
        Ok(match kind {
            ActionKind::Action(call) => {
                EntryAction::Own(self.bound(call, ActionUse::Entry, &binding.sdn)?)
            }
            ActionKind::ActionProfileMemberId(id) => EntryAction::Named(Indirect::Member(*id)),
            ActionKind::ActionProfileGroupId(id) => {
                self.selector(binding)?;
                EntryAction::Named(Indirect::Group(*id))
            }
            ActionKind::ActionProfileActionSet(set) => {
                let sized = self.selector(binding)?;
                let action = |a: &v1::ActionProfileAction| {
                    let call = a.action.as_ref();
                    let call = call.ok_or(TranslateError::Unset { what: "action" })?;
                    Ok(OneShotAction {
                        call: self.call(call, ActionUse::Entry, &binding.sdn)?,
                        weight: weight(a.weight)?,
                        watch_port: binding
                            .watch_port(a.watch_kind.as_ref().map(WatchKind::from))?,
                    })
                };
                let actions = set.action_profile_actions.iter().map(action);
                let actions = actions.collect::<Result<Vec<_>>>()?;
                let weights = actions.iter().map(|a| a.weight);
                check_size(sized, weights, sized.max_group_size)?;
                EntryAction::OneShot(actions)
            }
        })
    }

    /// The id in P4Info of the action that a table entry contains; `None` if it refers to an action profile instead.
    pub(in crate::server) fn action_id(&self, action: &EntryAction) -> Option<u32> {
        match action {
            EntryAction::Own(bound) => Some(self.actions.get(bound.index? as usize)?.id),
            _ => None,
        }
    }

    /// Converts the new default action of a table from P4Runtime.
    pub(in crate::server) fn default_call(
        &self,
        action: &v1::TableAction,
        binding: &Binding,
    ) -> Result<p4lang::runtime::ActionCall> {
        match &action.r#type {
            Some(ActionKind::Action(call)) => self.call(call, ActionUse::Default, &binding.sdn),
            Some(_) => Err(invalid(
                "the default entry refers to an action, not to a member or group",
            )),
            None => Err(TranslateError::Unset {
                what: "action type",
            }
            .into()),
        }
    }

    /// Converts a table entry to P4Runtime, with the parts that the Read call asks for.
    pub(in crate::server) fn entry_to_proto(
        &self,
        state: &EntryState,
        flags: ReadFlags,
        binding: &Binding,
    ) -> Result<v1::TableEntry> {
        let mut matches = Vec::with_capacity(self.fields.len());
        for (field, key) in self.fields.iter().zip(&state.key) {
            matches.extend(field.to_proto(self.name(), key, &binding.sdn)?);
        }
        Ok(v1::TableEntry {
            table_id: self.info.preamble.id,
            r#match: matches,
            action: self.entry_action_to_proto(&state.action, binding),
            priority: state.priority,
            #[allow(deprecated)]
            controller_metadata: state.note.number,
            metadata: state.note.metadata.clone(),
            is_const: state.is_const,
            idle_timeout_ns: state.idle_timeout_ns.cast_signed(),
            time_since_last_hit: (flags.since_hit && self.info.idle_timeout).then(|| {
                v1::table_entry::IdleTimeout {
                    elapsed_ns: state.since_hit_ns.cast_signed(),
                }
            }),
            ..self.attached_to_proto(flags, state.counter, state.meter, &state.meter_counts)
        })
    }

    fn attached_to_proto(
        &self,
        flags: ReadFlags,
        counter: CounterValue,
        meter: Option<MeterConfig>,
        counts: &pipeline::ColourCounts,
    ) -> v1::TableEntry {
        let (counted, metered) = (self.has_counter, self.has_meter);
        v1::TableEntry {
            meter_config: meter
                .filter(|_| flags.meter && metered)
                .map(|config| Box::new(config_to_proto(config))),
            counter_data: (flags.counter && counted).then(|| counter_to_proto(counter)),
            meter_counter_data: (flags.meter_counts && metered)
                .then(|| Box::new(counts_to_proto(counts))),
            ..Default::default()
        }
    }

    fn entry_action_to_proto(
        &self,
        action: &EntryAction,
        binding: &Binding,
    ) -> Option<v1::TableAction> {
        let sdn = &binding.sdn;
        let kind = match action {
            EntryAction::Own(bound) => ActionKind::Action(self.action_to_proto(bound, sdn)?),
            EntryAction::Named(Indirect::Member(id)) => ActionKind::ActionProfileMemberId(*id),
            EntryAction::Named(Indirect::Group(id)) => ActionKind::ActionProfileGroupId(*id),
            EntryAction::Named(Indirect::OneShot(_)) | EntryAction::Keep => return None,
            EntryAction::OneShot(actions) => {
                let action = |a: &OneShotAction| v1::ActionProfileAction {
                    action: self.call_to_proto(&a.call, sdn),
                    weight: a.weight.cast_signed(),
                    watch_kind: a.watch_port.map(|port| {
                        v1::action_profile_action::WatchKind::WatchPort(binding.port_to_proto(port))
                    }),
                };
                ActionKind::ActionProfileActionSet(v1::ActionProfileActionSet {
                    action_profile_actions: actions.iter().map(action).collect(),
                })
            }
        };
        Some(v1::TableAction { r#type: Some(kind) })
    }

    /// Converts the default entry of a table to P4Runtime, with the parts that the Read call asks for.
    pub(in crate::server) fn default_to_proto(
        &self,
        state: &DefaultState,
        flags: ReadFlags,
        binding: &Binding,
    ) -> v1::TableEntry {
        let action = self.action_to_proto(&state.bound, &binding.sdn);
        let (counter, meter) = (state.counter, &state.meter);
        v1::TableEntry {
            table_id: self.info.preamble.id,
            is_default_action: true,
            is_const: self.info.const_default_action_id != 0,
            action: action.map(|action| v1::TableAction {
                r#type: Some(ActionKind::Action(action)),
            }),
            metadata: state.note.metadata.clone(),
            #[allow(deprecated)]
            controller_metadata: state.note.number,
            ..self.attached_to_proto(flags, counter, meter.config(), &meter.counts())
        }
    }

    /// Converts the key of a table entry to P4Runtime, without action or other parts.
    pub(in crate::server) fn key_to_proto(
        &self,
        entry: &EntryRef,
        binding: &Binding,
    ) -> Result<v1::TableEntry> {
        let mut proto = v1::TableEntry {
            table_id: self.info.preamble.id,
            is_default_action: *entry == EntryRef::Default,
            ..Default::default()
        };
        if let EntryRef::Entry(priority, key) = entry {
            proto.priority = *priority;
            for (field, key) in self.fields.iter().zip(key) {
                let given = field.to_proto(self.name(), key, &binding.sdn)?;
                proto.r#match.extend(given);
            }
        }
        Ok(proto)
    }

    /// Converts the action of a member of this table's action profile from P4Runtime.
    pub(in crate::server) fn member_call(
        &self,
        call: &v1::Action,
        binding: &Binding,
    ) -> Result<p4lang::runtime::ActionCall> {
        self.call(call, ActionUse::Entry, &binding.sdn)
    }

    /// Converts the action of a member of this table's action profile to P4Runtime.
    pub(in crate::server) fn member_to_proto(
        &self,
        call: &p4lang::runtime::ActionCall,
        binding: &Binding,
    ) -> Option<v1::Action> {
        self.call_to_proto(call, &binding.sdn)
    }
}

/// A table's default entry: action, counter, meter and the client's note.
#[derive(Debug, Clone)]
pub(in crate::server) struct DefaultState {
    pub(in crate::server) bound: pipeline::Bound,
    pub(in crate::server) counter: CounterValue,
    pub(in crate::server) meter: pipeline::MeterCell,
    pub(in crate::server) note: Note,
}

/// The port on which a member's liveness depends, in one type for the two P4Runtime messages that contain it.
pub(in crate::server) enum WatchKind<'a> {
    Number(i32),
    Port(&'a [u8]),
}

impl<'a> From<&'a v1::action_profile_action::WatchKind> for WatchKind<'a> {
    fn from(kind: &'a v1::action_profile_action::WatchKind) -> Self {
        use v1::action_profile_action::WatchKind as Kind;
        match kind {
            #[allow(deprecated)]
            Kind::Watch(port) => Self::Number(*port),
            Kind::WatchPort(port) => Self::Port(port),
        }
    }
}

impl<'a> From<&'a v1::action_profile_group::member::WatchKind> for WatchKind<'a> {
    fn from(kind: &'a v1::action_profile_group::member::WatchKind) -> Self {
        use v1::action_profile_group::member::WatchKind as Kind;
        match kind {
            #[allow(deprecated)]
            Kind::Watch(port) => Self::Number(*port),
            Kind::WatchPort(port) => Self::Port(port),
        }
    }
}

impl Binding {
    /// The port that a member's liveness depends on; `None`: the client named none.
    pub(in crate::server) fn watch_port(&self, kind: Option<WatchKind<'_>>) -> Result<Option<u32>> {
        match kind {
            None | Some(WatchKind::Number(0) | WatchKind::Port([])) => Ok(None),
            Some(WatchKind::Number(port)) => Ok(Some(port.cast_unsigned())),
            Some(WatchKind::Port(port)) => self.port(port).map(Some),
        }
    }

    /// Converts a member of a group from P4Runtime.
    pub(in crate::server) fn group_member(
        &self,
        member: &v1::action_profile_group::Member,
    ) -> Result<GroupMember> {
        Ok(GroupMember {
            member: member.member_id,
            weight: weight(member.weight)?,
            watch_port: self.watch_port(member.watch_kind.as_ref().map(WatchKind::from))?,
        })
    }
}

fn weight(weight: i32) -> Result<u32> {
    match u32::try_from(weight) {
        Ok(0) | Err(_) => Err(invalid(format!("the weight is {weight}; use 1 or more"))),
        Ok(weight) => Ok(weight),
    }
}
