//! Classes: numbered sets of flows, one for each combination of flows that a packet can be in.
//!
//! A switch keeps one class number per packet instead of one bit per flow. Questions about pairs of flows (can one packet be
//! in both? is every packet of one in the other?) are answered from the classes.

use crate::diagram::Diagram;
use crate::flow::{Flow, GenerateError};
use crate::library::Library;
use crate::slice::Slice;
use crate::terms::{Implications, Term, TermError, terms};

/// Sets of flows that packets can be in. Class 0 is the empty set: packets of no flow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classes {
    flows_of: Vec<Vec<usize>>,
    classes_of: Vec<Vec<u32>>,
}

impl Classes {
    /// Computes the classes of `flows`. A flow whose filter matches no packet is in no class.
    ///
    /// # Errors
    ///
    /// If a filter is too large, or filters overlap too much; the error names them.
    pub fn new(library: &Library, flows: &[Flow]) -> Result<Classes, GenerateError> {
        let (terms, _) = flow_terms(library, flows, false)?;
        Ok(Classes::from_diagram(
            &diagram(library, flows, &terms)?,
            flows.len(),
        ))
    }

    pub(crate) fn from_diagram(diagram: &Diagram, num_flows: usize) -> Classes {
        let mut classes_of = vec![Vec::new(); num_flows];
        for (class, flows) in (0..).zip(&diagram.classes) {
            for flow in flows {
                classes_of[*flow].push(class);
            }
        }
        Classes {
            flows_of: diagram.classes.clone(),
            classes_of,
        }
    }

    /// Flow indexes of each class, ascending. Classes are sorted by their number of flows, then by their flow indexes.
    #[must_use]
    pub fn sets(&self) -> &[Vec<usize>] {
        &self.flows_of
    }

    /// The classes whose packets are in a flow, ascending.
    #[must_use]
    pub fn containing(&self, flow: usize) -> &[u32] {
        self.classes_of.get(flow).map_or(&[], Vec::as_slice)
    }

    /// Class of packets that are in exactly these flows (indexes, ascending); `None` if no packet is in exactly these flows.
    #[must_use]
    pub fn number(&self, flows: &[usize]) -> Option<u32> {
        let order = |set: &Vec<usize>| set.len().cmp(&flows.len()).then(set.as_slice().cmp(flows));
        let found = self.flows_of.binary_search_by(order);
        found.ok().map(|class| class as u32)
    }

    /// Whether a packet can be in both flows.
    #[must_use]
    pub fn meet(&self, a: usize, b: usize) -> bool {
        let (mut a, mut b) = (self.containing(a), self.containing(b));
        while let ([first, rest @ ..], [other, others @ ..]) = (a, b) {
            match first.cmp(other) {
                std::cmp::Ordering::Less => a = rest,
                std::cmp::Ordering::Greater => b = others,
                std::cmp::Ordering::Equal => return true,
            }
        }
        false
    }

    /// Whether every packet of flow `a` is also in flow `b`.
    #[must_use]
    pub fn implies(&self, a: usize, b: usize) -> bool {
        let b = self.containing(b);
        self.containing(a)
            .iter()
            .all(|class| b.binary_search(class).is_ok())
    }
}

/// Terms of each flow (terms that no packet matches are removed), and the slice of the protocol library that the terms need.
pub(crate) fn flow_terms(
    library: &Library,
    flows: &[Flow],
    aggregate: bool,
) -> Result<(Vec<Vec<Term>>, Slice), GenerateError> {
    let mut all = Vec::new();
    for flow in flows {
        let of_flow = terms(library, flow.filter.root()).map_err(|error| match error {
            TermError::TooMany => GenerateError::TooManyTerms {
                flow: flow.name.clone(),
            },
            TermError::Unknown(name) => GenerateError::ForeignFilter {
                flow: flow.name.clone(),
                name,
            },
        })?;
        all.push(of_flow);
    }
    let slice = Slice::new(library, all.iter_mut(), aggregate);
    Ok((all, slice))
}

/// Builds the decision diagram that finds a packet's flows from the flows' terms.
pub(crate) fn diagram(
    library: &Library,
    flows: &[Flow],
    terms: &[Vec<Term>],
) -> Result<Diagram, GenerateError> {
    let keys = terms
        .iter()
        .flatten()
        .flat_map(Term::keys)
        .copied()
        .collect();
    let implications = Implications::new(library, keys);
    let closed: Vec<Vec<Term>> = terms
        .iter()
        .map(|terms| {
            terms
                .iter()
                .filter_map(|term| implications.close(term))
                .collect()
        })
        .collect();
    Diagram::new(&closed, |key| key.largest(library)).map_err(|overflow| {
        let flows = overflow.flows.into_iter().map(|flow| &flows[flow]);
        let flows = flows.map(|flow| (flow.name.clone(), flow.filter.text().to_owned()));
        GenerateError::TooManyClasses {
            flows: flows.collect(),
        }
    })
}
