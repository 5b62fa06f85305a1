//! Declared flows (named packet filters), and the errors for flows that no P4 program can be generated for.

use std::collections::BTreeSet;

use crate::diagram::MAX_CLASSES;
use crate::filter::Filter;
use crate::terms::MAX_TERMS;

/// Maximum number of flows in one program.
pub const MAX_FLOWS: usize = 16_384;

/// A declared flow. Its index in the list of flows is its number in [`crate::Classes`].
#[derive(Debug, Clone)]
pub struct Flow {
    /// Name of the flow: letters, digits, `_` and `-` (which P4 names write as `_`), not beginning with a digit.
    pub name: String,
    /// Filter that matches the flow's packets.
    pub filter: Filter,
}

/// Why no program can be generated for a set of flows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// There are more than [`MAX_FLOWS`] flows.
    #[error("{count} flows are declared, but a switch distinguishes at most {MAX_FLOWS}")]
    TooManyFlows {
        /// Number of declared flows.
        count: usize,
    },
    /// The flow's name is not an identifier.
    #[error(
        "flow `{flow}`: a name consists of letters, digits, `_` and `-`, and begins with a letter or `_`"
    )]
    BadName {
        /// Name of the flow, as declared.
        flow: String,
    },
    /// Two flows have the same name.
    #[error("flow `{flow}` is declared twice (`-` and `_` are the same in P4)")]
    DuplicateName {
        /// Name that both flows have.
        flow: String,
    },
    /// The flow's filter unfolds into too many alternatives.
    #[error(
        "flow `{flow}`: the filter unfolds into more than {MAX_TERMS} alternatives; split it into several flows"
    )]
    TooManyTerms {
        /// Name of the flow.
        flow: String,
    },
    /// Packets can be in too many different sets of flows.
    #[error("the filters overlap in more than {MAX_CLASSES} combinations, above all {}", overlapping(.flows))]
    TooManyClasses {
        /// Names and filters of the flows that are in most of these sets of flows, at most six flows.
        flows: Vec<(String, String)>,
    },
    /// No packet can match the flow's filter.
    #[error("flow `{flow}`: no packet can match the filter `{filter}`")]
    NeverMatches {
        /// Name of the flow.
        flow: String,
        /// Text of the flow's filter.
        filter: String,
    },
    /// The flows' filters need several match tables, but a fault before a sum (Tofino) has one table to find its packets.
    #[error("the filters take more than one table; a fault before a sum can use only one")]
    TooDeepForSum,
    /// The flow's filter was parsed with another protocol library, and this library lacks one of its names.
    #[error("flow `{flow}`: the protocol library has no `{name}`")]
    ForeignFilter {
        /// Name of the flow.
        flow: String,
        /// Name in the filter that this library lacks.
        name: String,
    },
}

fn overlapping(flows: &[(String, String)]) -> String {
    let shown = flows
        .iter()
        .map(|(name, filter)| format!("`{name}` (`{filter}`)"));
    shown.collect::<Vec<_>>().join(", ")
}

pub(crate) fn check_names(flows: &[Flow]) -> Result<(), GenerateError> {
    if flows.len() > MAX_FLOWS {
        return Err(GenerateError::TooManyFlows { count: flows.len() });
    }
    let mut seen = BTreeSet::new();
    for flow in flows {
        let name = flow.name.clone();
        let is_legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !begins || !name.chars().all(is_legal) {
            return Err(GenerateError::BadName { flow: name });
        }
        if !seen.insert(name.replace('-', "_")) {
            return Err(GenerateError::DuplicateName { flow: name });
        }
    }
    Ok(())
}
