//! Everything that happens in real time: frames that cross real links, switches and jobs of several processes, runs in
//! namespaces.
//!
//! Each test takes its turn first: [`support::turn::alone`] or [`support::turn::beside`].
#![cfg(feature = "testbed")]

mod between;
mod bmv2;
mod bundles;
mod demo;
mod doctor;
mod existing;
mod job;
mod lease;
mod leftovers;
mod limits;
mod malformed;
mod mid_run;
mod mininet;
#[path = "../support/vectors/mod.rs"]
mod packet_vectors;
mod replaced;
mod scenarios;
mod start;
#[path = "../support/mod.rs"]
mod support;
mod switch;
mod vectors;
