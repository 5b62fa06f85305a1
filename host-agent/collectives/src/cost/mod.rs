//! Predicts the time of a schedule, and chooses the fastest algorithm for a collective.
//!
//! The α-β model: a message of m bytes alone, over edges with delays α and a lowest rate β, takes Σα + m/β. Concurrent messages
//! share the rates of edges max-min fairly, as flows ([`simulate`]). Steps have no common clock: each begins when the tiles
//! that it needs have arrived. A simpler model, in which all ranks begin each step together, would miss this, and would miss
//! that steps of different ranks share edges.

pub mod bounds;
pub mod choose;
mod fair;
pub mod simulate;

use std::collections::BTreeMap;

use crate::algorithms::Hierarchy;

/// Index of an edge in [`Model::edges`], from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeId(pub usize);

/// An edge of the cost model: one direction of a link, bus, port or memory, with a rate and a delay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// Name of the edge for reports.
    pub name: String,
    /// Rate of the edge in bits per second.
    pub rate_bps: u64,
    /// Delay α that the edge adds to a message, in nanoseconds.
    pub delay_ns: u64,
}

/// Model of a cluster for predictions: ranks, and the edges that messages between them pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    edges: Vec<Edge>,
    routes: BTreeMap<(usize, usize), Vec<EdgeId>>,
    memory: Vec<Option<EdgeId>>,
    /// Division of the ranks into nodes; `None` if the model has no nodes.
    pub hierarchy: Option<Hierarchy>,
    /// Minimum time between two puts of a rank in nanoseconds: the cost of a message of any length.
    pub post_ns: u64,
}

/// Reason why a cost model is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The edge with this name has rate 0.
    #[error("edge `{0}` carries 0 bit/s")]
    NoRate(String),
    /// A machine has no component of this required kind.
    #[error("a machine needs at least one {0}")]
    Without(&'static str),
    /// The edge with this index does not exist; the second number is the number of edges.
    #[error("edge {0} does not exist: there are {1}")]
    NoEdge(usize, usize),
    /// This rank does not exist; the second number is the number of ranks.
    #[error("rank {0} does not exist: there are {1}")]
    NoRank(usize, usize),
}

impl Model {
    /// Creates a model of `ranks` ranks without edges.
    pub fn new(ranks: usize) -> Self {
        Self {
            edges: Vec::new(),
            routes: BTreeMap::new(),
            memory: vec![None; ranks],
            hierarchy: None,
            post_ns: 0,
        }
    }

    /// Creates a model of ranks with one full-duplex port each at a switch that never blocks; a message takes α = `delay_ns`.
    ///
    /// # Errors
    /// If the rate is 0.
    pub fn star(ranks: usize, rate_bps: u64, delay_ns: u64) -> Result<Self, ModelError> {
        let mut model = Self::new(ranks);
        let mut ports = Vec::new();
        for rank in 0..ranks {
            let out = model.add_edge(&format!("rank {rank} out"), rate_bps, delay_ns)?;
            let into = model.add_edge(&format!("rank {rank} in"), rate_bps, 0)?;
            ports.push((out, into));
        }
        for (from, (out, _)) in ports.iter().enumerate() {
            for (to, (_, into)) in ports.iter().enumerate() {
                if from != to {
                    model.set_route(from, to, vec![*out, *into])?;
                }
            }
        }
        Ok(model)
    }

    /// Adds an edge to the model, and returns its index.
    ///
    /// # Errors
    /// If the rate is 0.
    pub fn add_edge(
        &mut self,
        name: &str,
        rate_bps: u64,
        delay_ns: u64,
    ) -> Result<EdgeId, ModelError> {
        if rate_bps == 0 {
            return Err(ModelError::NoRate(name.to_owned()));
        }
        self.edges.push(Edge {
            name: name.to_owned(),
            rate_bps,
            delay_ns,
        });
        Ok(EdgeId(self.edges.len() - 1))
    }

    /// Sets the edges that messages from one rank to another pass. An edge listed twice carries the traffic twice.
    ///
    /// # Errors
    /// If a rank or edge does not exist.
    pub fn set_route(
        &mut self,
        from: usize,
        to: usize,
        route: Vec<EdgeId>,
    ) -> Result<(), ModelError> {
        for rank in [from, to] {
            self.has_rank(rank)?;
        }
        for edge in &route {
            self.has_edge(*edge)?;
        }
        self.routes.insert((from, to), route);
        Ok(())
    }

    /// Sets the edge that a rank's copies and reductions load; ranks may share the edge. Without it, they take no time.
    ///
    /// # Errors
    /// If the rank or edge does not exist.
    pub fn set_memory(&mut self, rank: usize, edge: EdgeId) -> Result<(), ModelError> {
        self.has_rank(rank)?;
        self.has_edge(edge)?;
        self.memory[rank] = Some(edge);
        Ok(())
    }

    /// Number of ranks of the model.
    pub fn ranks(&self) -> usize {
        self.memory.len()
    }

    /// All edges, in the order in which they were added.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The edges that messages from one rank to another pass; `None` if no route was set.
    pub fn route(&self, from: usize, to: usize) -> Option<&[EdgeId]> {
        self.routes.get(&(from, to)).map(Vec::as_slice)
    }

    /// The edge that a rank's copies and reductions load; `None` if they take no time.
    pub fn memory(&self, rank: usize) -> Option<EdgeId> {
        self.memory[rank]
    }

    fn has_rank(&self, rank: usize) -> Result<(), ModelError> {
        if rank < self.ranks() {
            Ok(())
        } else {
            Err(ModelError::NoRank(rank, self.ranks()))
        }
    }

    fn has_edge(&self, edge: EdgeId) -> Result<(), ModelError> {
        if edge.0 < self.edges.len() {
            Ok(())
        } else {
            Err(ModelError::NoEdge(edge.0, self.edges.len()))
        }
    }
}
