//! Tenants: partitions of the slots, and quotas of each tenant's jobs.

use std::ops::Range;

use scenario::model::job::SLOTS;
use serde::{Deserialize, Serialize};

use crate::refusal::name_fault;

/// A tenant, which has its own slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// The tenant's name.
    pub name: String,
    /// Number of the tenant's slots: only its jobs use them, and its jobs use no others.
    pub slots: u32,
    /// Maximum rate of all the tenant's jobs together, in bits per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Maximum number of the tenant's jobs at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
}

/// The tenants of a switch. The remaining slots are for jobs without a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Tenants(Vec<Tenant>);

/// Why a switch cannot be divided in this way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTenants {
    /// Two tenants have the same name.
    #[error("tenant `{0}` is declared twice")]
    Twice(String),
    /// The name is not valid.
    #[error("a tenant's name {fault}: `{name}`")]
    Name {
        /// The requested name.
        name: String,
        /// The defect in the name.
        fault: &'static str,
    },
    /// The partition has no slots.
    #[error("tenant `{0}` has no slots: leave it out, or give it some")]
    Empty(String),
    /// A quota is 0.
    #[error("tenant `{0}` has a quota of 0: a rate and a number of jobs are at least 1")]
    Nothing(String),
    /// The partitions have more slots than a switch.
    #[error("the tenants' slots are {0} together; a switch has {SLOTS}")]
    TooMany(u64),
}

impl Tenants {
    /// Creates the tenants, with partitions in this order from slot 0 on, if they fit.
    pub fn new(tenants: Vec<Tenant>) -> Result<Self, BadTenants> {
        let mut sum = 0_u64;
        for (index, tenant) in tenants.iter().enumerate() {
            if let Some(fault) = name_fault(&tenant.name) {
                let name = tenant.name.clone();
                return Err(BadTenants::Name { name, fault });
            }
            if tenants[..index]
                .iter()
                .any(|other| other.name == tenant.name)
            {
                return Err(BadTenants::Twice(tenant.name.clone()));
            }
            if tenant.slots == 0 {
                return Err(BadTenants::Empty(tenant.name.clone()));
            }
            if tenant.rate_bps == Some(0) || tenant.jobs == Some(0) {
                return Err(BadTenants::Nothing(tenant.name.clone()));
            }
            sum += u64::from(tenant.slots);
        }
        match sum > u64::from(SLOTS) {
            true => Err(BadTenants::TooMany(sum)),
            false => Ok(Self(tenants)),
        }
    }

    /// All tenants, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Tenant] {
        &self.0
    }

    /// The tenant of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Tenant> {
        self.0.iter().find(|tenant| tenant.name == name)
    }

    /// The slots of a tenant, or those without a tenant; `None` if there is no such tenant.
    #[must_use]
    pub fn partition(&self, tenant: Option<&str>) -> Option<Range<u32>> {
        let mut from = 0;
        for other in &self.0 {
            if tenant == Some(&other.name) {
                return Some(from..from + other.slots);
            }
            from += other.slots;
        }
        tenant.is_none().then_some(from..SLOTS)
    }
}
