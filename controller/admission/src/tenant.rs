//! Tenants of a switch: each has its own partition of the slots, and quotas for its jobs.

use std::ops::Range;

use scenario::model::job::SLOTS;
use serde::{Deserialize, Serialize};

use crate::refusal::name_fault;

/// A tenant of a switch: a user or team whose jobs have their own slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Name of the tenant, unique on its switch.
    pub name: String,
    /// Number of the tenant's aggregation slots. Only the tenant's jobs use these slots, and they use no others.
    pub slots: u32,
    /// Maximum rate of all the tenant's jobs together, in bits per second; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Maximum number of jobs that the tenant may run at once; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
}

/// The tenants of a switch. Slots that belong to no tenant are for jobs without a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Tenants(Vec<Tenant>);

/// Why a list of tenants is not valid for a switch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTenants {
    /// Two tenants have this name.
    #[error("tenant `{0}` is declared twice")]
    Twice(String),
    /// The name of a tenant is not valid.
    #[error("a tenant's name {fault}: `{name}`")]
    Name {
        /// The name of the tenant.
        name: String,
        /// Rule that the name breaks, such as "has at most 64 characters".
        fault: &'static str,
    },
    /// The partition of this tenant has no slots.
    #[error("tenant `{0}` has no slots: leave it out, or give it some")]
    Empty(String),
    /// A quota (rate or number of jobs) of this tenant is 0.
    #[error("tenant `{0}` has a quota of 0: a rate and a number of jobs are at least 1")]
    Nothing(String),
    /// The partitions have this number of slots together, more than a switch has.
    #[error("the tenants' slots are {0} together; a switch has {SLOTS}")]
    TooMany(u64),
}

impl Tenants {
    /// Checks the tenants, and gives them partitions in the given order from slot 0 on.
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

    /// All tenants, in the order of their partitions.
    #[must_use]
    pub fn as_slice(&self) -> &[Tenant] {
        &self.0
    }

    /// The tenant with this name, if it exists.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Tenant> {
        self.0.iter().find(|tenant| tenant.name == name)
    }

    /// Indices of a tenant's slots; for `tenant: None`, of the slots without a tenant. Returns `None` if no such tenant exists.
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
