//! A switch with two in-memory ports that runs a P4 program with an object of every kind.
// Not every test file uses all items.
#![allow(dead_code, unused_imports)]

pub mod items;
pub mod raw;
pub mod veth;

use p4lang::p4info::P4Info;
use p4rt::client::{Client, Events, PipelineAction};
use p4rt::p4info::to_proto;
use softswitch::dataplane::{Loader, Program};
use softswitch::instance::{Config, Instance, start};
use softswitch::p4::P4Loader;
use softswitch::ports::Frames;
use softswitch::ports::memory::{MemoryLink, link};
use std::sync::Arc;
use std::time::Duration;
pub use test_support::skip;

pub const DEVICE: u64 = 7;
pub const CPU_PORT: u32 = 510;
/// Timeout for events that must happen.
pub const TIMEOUT: Duration = Duration::from_secs(20);
/// Waiting time for events that must not happen.
pub const NEVER: Duration = Duration::from_millis(50);
/// The device config.
pub const PROGRAM: &[u8] = include_bytes!("everything.p4");

pub fn loader() -> P4Loader {
    let config = pipeline::Config {
        cpu_port: CPU_PORT,
        ..pipeline::Config::default()
    };
    P4Loader {
        config,
        ..P4Loader::default()
    }
}

pub fn program() -> Program {
    let loaded = loader().load(PROGRAM);
    loaded.unwrap_or_else(|error| panic!("{error}"))
}

pub fn p4info() -> P4Info {
    program().p4info
}

/// A switch with two in-memory ports, 1 and 2, and their other ends.
pub fn switch(program: Option<Program>) -> (Instance, MemoryLink, MemoryLink) {
    with_config(program.map(|program| (program, PROGRAM.to_vec())))
}

/// As [`switch`], with another program.
pub fn switch_running(text: &[u8]) -> (Instance, MemoryLink, MemoryLink) {
    let program = loader().load(text);
    let program = program.unwrap_or_else(|error| panic!("{error}"));
    with_config(Some((program, text.to_vec())))
}

fn with_config(program: Option<(Program, Vec<u8>)>) -> (Instance, MemoryLink, MemoryLink) {
    let (port1, link1) = link("one").unwrap();
    let (port2, link2) = link("two").unwrap();
    let instance = attached(vec![(1, Box::new(port1)), (2, Box::new(port2))], program);
    (instance, link1, link2)
}

/// A switch with these ports, and optionally a program with its device config.
pub fn attached(
    ports: Vec<(u32, Box<dyn Frames>)>,
    program: Option<(Program, Vec<u8>)>,
) -> Instance {
    let config = Config {
        device_id: DEVICE,
        cpu_port: CPU_PORT,
        ports,
        loader: Arc::new(loader()),
        program,
        grpc: "127.0.0.1:0".parse().unwrap(),
    };
    start(config).unwrap()
}

pub async fn connect(instance: &Instance) -> Client {
    Client::connect(&instance.address().to_string(), DEVICE, TIMEOUT)
        .await
        .unwrap()
}

/// A primary client of a switch that runs the program.
pub async fn primary(instance: &Instance) -> (Client, Events) {
    let mut client = connect(instance).await;
    let events = client.become_primary(1).await.unwrap();
    client
        .set_pipeline(
            PipelineAction::VerifyAndCommit,
            to_proto(&p4info()),
            PROGRAM.to_vec(),
            42,
        )
        .await
        .unwrap();
    (client, events)
}
