//! What others do, written from their papers, to be compared with.
//!
//! | baseline | what it does | source |
//! |---|---|---|
//! | [`raw`] | nothing is summed; shortest ways | parameter server |
//! | [`geryon`] | nothing is summed; ways that balance links | Geryon, INFOCOM 2020, as GRID reads it |
//! | [`lbmm`] | nothing is summed; several servers, shares by what they take in | LBMM, as InArt reads it |
//! | [`atp`] | the nearest switch sums what it can; the rest goes on raw | ATP, NSDI 2021 |
//! | [`equal_split`] | the nearest switch sums all, so workers wait for it; servers have equal shares | ATP, as InArt reads it |
//! | [`esa`] | as ATP, but jobs take switches by priority | ESA, 2022 |
//! | [`switchml`] | a switch sums all of its rack or nothing, in a fixed part of it | SwitchML, NSDI 2021 |
//! | [`rgria`] | GRID's own rounding: each worker draws where it is summed | GRID, ToN 2023 |
//!
//! Each baseline gives a [`Plan`](crate::gradient::Plan) for a job with servers. If a baseline does not define how a model is
//! divided among several servers, each server has an equal share. A stream that has several shortest paths takes one by the
//! worker's rank; flow hashing spreads streams like that on average.
//!
//! What flows leave out is told by none of them: memory that is held while a switch waits for the slowest worker, which is
//! what ESA is about, collisions, and losses. With no asynchrony they are as fast as here.

pub mod atp;
pub mod equal_split;
pub mod esa;
pub mod geryon;
pub mod lbmm;
mod nearest;
pub mod raw;
pub mod rgria;
pub mod switchml;
