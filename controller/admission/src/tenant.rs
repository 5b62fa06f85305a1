//! Partitions: slots that are a tenant's alone, and what its jobs may have together.

use std::ops::Range;

use scenario::job::SLOTS;
use serde::{Deserialize, Serialize};

use crate::refusal::name_fault;

/// Who has slots of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its slots; nobody else's jobs are there, and its own are nowhere else.
    pub slots: u32,
    /// What all its jobs together may be granted, in bits a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// How many jobs it may have at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<usize>,
}

/// The tenants of a switch. What they do not have is for jobs without one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Tenants(Vec<Tenant>);

/// Why there is no such division of a switch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTenants {
    /// Two of one name.
    #[error("tenant `{0}` is there twice")]
    Twice(String),
    /// A name that is none.
    #[error("a tenant's name {fault}: `{name}`")]
    Name {
        /// As given.
        name: String,
        /// What is wrong.
        fault: &'static str,
    },
    /// A partition of nothing.
    #[error("tenant `{0}` has no slots: leave it out, or give it some")]
    Empty(String),
    /// A quota of nothing.
    #[error("tenant `{0}` may have nothing: a rate and a number of jobs are at least 1")]
    Nothing(String),
    /// More than there is.
    #[error("the tenants' slots are {0} together; a switch has {SLOTS}")]
    TooMany(u64),
}

impl Tenants {
    /// Tenants whose partitions fit, in their order from slot 0 on.
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

    /// All, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[Tenant] {
        &self.0
    }

    /// One by name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Tenant> {
        self.0.iter().find(|tenant| tenant.name == name)
    }

    /// The slots of a tenant, or those of nobody; `None` if there is no such tenant.
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
