//! Converts actions and parameters between P4Runtime messages (ids, byte strings) and the program (indices, 64-bit words).

use super::{BoundAction, BoundParam, BoundTable, Form, NewName, Sdn};
use p4lang::p4info::ActionScope;
use p4lang::runtime::{ActionCall, Value};
use p4rt::status::UpdateError;
use p4rt::translate::TranslateError;
use p4rt::translate::action::ActionUse;
use p4rt::{bytes, v1};
use pipeline::Bound;

impl BoundTable {
    fn offered(
        &self,
        id: u32,
        used_as: ActionUse,
    ) -> Result<(usize, &BoundAction), TranslateError> {
        let mut actions = self.actions.iter().enumerate();
        let Some((position, action)) = actions.find(|(_, a)| a.id == id && id != 0) else {
            return Err(TranslateError::ActionNotOffered {
                table: self.info.preamble.name.clone(),
                action: format!("{id:#010x}"),
            });
        };
        let allowed = match (used_as, action.scope) {
            (ActionUse::Entry, ActionScope::DefaultOnly) => "as default action",
            (ActionUse::Default, ActionScope::TableOnly) => "in entries",
            _ => return Ok((position, action)),
        };
        Err(TranslateError::ActionScope {
            table: self.info.preamble.name.clone(),
            action: action.name.clone(),
            allowed,
        })
    }

    /// Converts an action of a P4Runtime message to the program's action index and parameter words.
    pub(super) fn bound(
        &self,
        call: &v1::Action,
        used_as: ActionUse,
        sdn: &Sdn,
    ) -> Result<Bound, UpdateError> {
        let (position, action) = self.offered(call.action_id, used_as)?;
        let mut params = Vec::with_capacity(action.params.len());
        action.values(call, sdn, |param, value| {
            params.extend((0..slots(param.width)).map(|i| value.limb(i)));
        })?;
        Ok(Bound {
            index: u32::try_from(position).ok(),
            params: params.into(),
        })
    }

    /// Converts an action of a P4Runtime message to an action call with parameters by name.
    pub(super) fn call(
        &self,
        call: &v1::Action,
        used_as: ActionUse,
        sdn: &Sdn,
    ) -> Result<ActionCall, UpdateError> {
        let (_, action) = self.offered(call.action_id, used_as)?;
        let mut params = Vec::with_capacity(action.params.len());
        action.values(call, sdn, |param, value| {
            params.push((param.name.clone(), value));
        })?;
        Ok(ActionCall {
            name: action.name.clone(),
            params,
        })
    }

    /// Converts an action of the program to a P4Runtime message; `None` if P4Info lacks the action.
    pub(super) fn action_to_proto(&self, bound: &Bound, sdn: &Sdn) -> Option<v1::Action> {
        let action = match bound.index {
            Some(index) => self.actions.get(index as usize)?,
            // In a default entry, no action means `NoAction`.
            None => self.actions.iter().find(|a| a.name == super::NO_ACTION)?,
        };
        let mut words = &bound.params[..];
        let params = action.params.iter().map(|param| {
            let own = words.split_off(..slots(param.width).min(words.len()));
            param.to_proto(&Value::from_limbs(own.unwrap_or_default()), sdn)
        });
        Some(v1::Action {
            action_id: action.id,
            params: params.collect(),
        })
        .filter(|action| action.action_id != 0)
    }

    /// Converts an action call to a P4Runtime message; `None` if P4Info lacks the action.
    pub(super) fn call_to_proto(&self, call: &ActionCall, sdn: &Sdn) -> Option<v1::Action> {
        let action = self.actions.iter().find(|a| a.name == call.name)?;
        let params = action.params.iter().filter_map(|param| {
            let (_, value) = call.params.iter().find(|(name, _)| *name == param.name)?;
            Some(param.to_proto(value, sdn))
        });
        Some(v1::Action {
            action_id: action.id,
            params: params.collect(),
        })
    }
}

impl BoundAction {
    /// Passes the value of each parameter of `call` to `each`, in the program's order.
    fn values(
        &self,
        call: &v1::Action,
        sdn: &Sdn,
        mut each: impl FnMut(&BoundParam, Value),
    ) -> Result<(), UpdateError> {
        for (at, param) in self.params.iter().enumerate() {
            // Usually in order.
            let given = match call.params.get(at) {
                Some(given) if given.param_id == param.id => given,
                _ => {
                    let mut given = call.params.iter();
                    let given = given.find(|p| p.param_id == param.id);
                    given.ok_or_else(|| TranslateError::Missing {
                        owner: self.name.clone(),
                        kind: "parameter",
                        field: param.name.clone(),
                    })?
                }
            };
            each(param, param.value(&given.value, sdn)?);
        }
        if call.params.len() == self.params.len() {
            return Ok(());
        }
        let known = |id: u32| self.params.iter().find(|p| p.id == id);
        for (at, given) in call.params.iter().enumerate() {
            let owner = self.name.clone();
            let Some(param) = known(given.param_id) else {
                return Err(TranslateError::UnknownField {
                    owner,
                    kind: "parameter",
                    field: format!("with id {}", given.param_id),
                }
                .into());
            };
            if call.params[..at]
                .iter()
                .any(|p| p.param_id == given.param_id)
            {
                return Err(TranslateError::Twice {
                    owner,
                    kind: "parameter",
                    field: param.name.clone(),
                }
                .into());
            }
        }
        Ok(())
    }
}

/// Number of 64-bit words that a value of `width` bits takes, at least 1.
fn slots(width: u32) -> usize {
    width.div_ceil(64).max(1) as usize
}

impl BoundParam {
    fn value(&self, given: &[u8], sdn: &Sdn) -> Result<Value, UpdateError> {
        if let Form::Text(uri) = &self.form {
            return sdn.value(uri, given, self.width, NewName::Named);
        }
        // A translated value is a number of the control plane's width that must also fit the program's width.
        let value = bytes::decode(given, self.bitwidth.min(self.width));
        value.map_err(|source| {
            TranslateError::Value {
                field: self.name.clone(),
                source,
            }
            .into()
        })
    }

    fn to_proto(&self, value: &Value, sdn: &Sdn) -> v1::action::Param {
        v1::action::Param {
            param_id: self.id,
            value: match &self.form {
                Form::Number => value.to_be_bytes(),
                Form::Text(uri) => sdn.text(uri, value),
            }
            .into(),
        }
    }
}
