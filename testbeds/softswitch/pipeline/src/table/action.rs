//! Actions bound to parameters, and their conversion: by name for the control plane, as slots for the data plane.

use super::spec::{ActionSpec, Spec};
use crate::bits::limbs;
use crate::error::TableError;
use p4lang::runtime::{ActionCall, Value};

/// An action with its parameters as slots, as the data plane uses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// Index into the table's actions; `None`: no action runs.
    pub index: Option<u32>,
    /// Values of all parameters, in 64-bit slots.
    pub params: Box<[u64]>,
}

impl Bound {
    /// A bound action without an effect: no action runs.
    pub fn nothing() -> Bound {
        Bound {
            index: None,
            params: Box::default(),
        }
    }

    /// Borrows the action in the form that a lookup returns.
    #[inline]
    pub fn as_action(&self) -> Action<'_> {
        Action {
            index: self.index,
            params: &self.params,
        }
    }
}

/// A bound action, as a lookup returns it from the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Action<'t> {
    /// Index into the table's actions; `None`: no action runs.
    pub index: Option<u32>,
    /// Values of all parameters, in 64-bit slots.
    pub params: &'t [u64],
}

impl From<Action<'_>> for Bound {
    fn from(action: Action) -> Bound {
        Bound {
            index: action.index,
            params: action.params.into(),
        }
    }
}

impl Spec {
    /// Converts an action call with named parameters to slots; checks that the table offers the action, here or `as_default`.
    pub fn bind(&self, call: &ActionCall, as_default: bool) -> Result<Bound, TableError> {
        let kept_out = |action: &ActionSpec| {
            if as_default {
                action.table_only
            } else {
                action.default_only
            }
        };
        let no_action = || {
            let offered = self.actions.iter().filter(|action| !kept_out(action));
            let offered = offered.map(|action| action.name.clone()).collect();
            TableError::NoSuchAction(call.name.clone(), offered)
        };
        let Some(index) = self.actions.iter().position(|a| a.name == call.name) else {
            // Every table may do nothing on a miss.
            if as_default && call.name == "NoAction" && call.params.is_empty() {
                return Ok(Bound::nothing());
            }
            return Err(no_action());
        };
        let action = &self.actions[index];
        if kept_out(action) {
            return Err(no_action());
        }
        let unknown = |(name, _): &&(String, Value)| !action.params.iter().any(|(p, _)| p == name);
        if let Some((name, _)) = call.params.iter().find(unknown) {
            let known = action.params.iter().map(|(name, _)| name.clone());
            return Err(TableError::NoSuchParam(name.clone(), known.collect()));
        }
        let mut params = Vec::with_capacity(action.slots());
        for (name, width) in &action.params {
            let (_, value) = call
                .params
                .iter()
                .find(|(n, _)| n == name)
                .ok_or_else(|| TableError::MissingParam(name.clone()))?;
            if !value.fits(*width) {
                return Err(TableError::ValueTooWide(name.clone(), *width));
            }
            params.extend((0..limbs(*width) as usize).map(|i| value.limb(i)));
        }
        Ok(Bound {
            index: Some(index as u32),
            params: params.into(),
        })
    }

    /// Converts a bound action to a call with the names of the action and its parameters.
    pub fn call(&self, bound: Action) -> ActionCall {
        let Some(action) = bound.index.and_then(|i| self.actions.get(i as usize)) else {
            return ActionCall {
                name: "NoAction".into(),
                params: Vec::new(),
            };
        };
        let mut slots = bound.params;
        let mut value = |width: u32| {
            let own = slots.split_off(..(limbs(width) as usize).min(slots.len()));
            Value::from_limbs(own.unwrap_or_default())
        };
        ActionCall {
            name: action.name.clone(),
            params: action
                .params
                .iter()
                .map(|(n, w)| (n.clone(), value(*w)))
                .collect(),
        }
    }
}
