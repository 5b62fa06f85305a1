//! Planners of other systems, implemented from their papers as baselines for comparison.
//!
//! | baseline | method | source |
//! |---|---|---|
//! | [`raw`] | no switch sums; shortest paths | parameter server |
//! | [`geryon`] | no switch sums; paths that balance links | Geryon, INFOCOM 2020, as GRID reads it |
//! | [`lbmm`] | no switch sums; several servers, shares by ingress rate | LBMM, as InArt reads it |
//! | [`atp`] | the nearest switch sums as much as it can; the rest goes raw | ATP, NSDI 2021 |
//! | [`equal_split`] | the nearest switch sums all, so workers wait; servers have equal shares | ATP, as InArt reads it |
//! | [`esa`] | as ATP, but jobs take switches by priority | ESA, 2022 |
//! | [`switchml`] | a switch sums all of its rack or nothing, in a fixed partition | SwitchML, NSDI 2021 |
//! | [`rgria`] | GRID's own rounding: each worker draws the node that sums it | GRID, ToN 2023 |
//!
//! Each baseline gives a [`Plan`](crate::gradient::Plan) for a job with servers. If a baseline does not define how a model is
//! divided among several servers, each server has an equal share. A stream that has several shortest paths takes one by the
//! worker's rank; flow hashing spreads streams like that on average.
//!
//! All baselines leave out the effects that flows do not model: memory that is held while a switch waits for the slowest worker
//! (ESA's subject), collisions, and losses. Their rates hold for workers in step.

pub mod atp;
pub mod equal_split;
pub mod esa;
pub mod geryon;
pub mod lbmm;
mod nearest;
pub mod raw;
pub mod rgria;
pub mod switchml;
