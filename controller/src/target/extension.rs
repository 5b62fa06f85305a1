//! Requests to the embedded switch that P4Runtime does not have: port counters, statistics, clock.

use std::future::Future;

use softswitch::DropReason;
use softswitch::server::{connect_extension, weir as extension};
use tokio::runtime::Runtime;
use tonic::transport::Channel;
use tonic::{Response, Status};

use super::{ANSWER_TIMEOUT, PortCount};

/// Reasons of drops by the switch itself, not by its P4 program, because a queue was full.
const FULL_QUEUES: [DropReason; 3] = [
    DropReason::QueueFull,
    DropReason::TransmitFull,
    DropReason::RecirculationFull,
];

type Client = extension::switch_client::SwitchClient<Channel>;

/// Counters of all ports of the switch at `address`, by port number; the error says why they cannot be read.
pub fn port_counts(runtime: &Runtime, address: &str) -> Result<Vec<PortCount>, String> {
    let response = ask(runtime, address, |mut switch: Client| async move {
        switch
            .port_counters(extension::PortCountersRequest {})
            .await
    })?;
    let count = |port: extension::Port| PortCount {
        port: port.port,
        rx_frames: port.rx_frames,
        rx_bytes: port.rx_bytes,
        tx_frames: port.tx_frames,
        tx_bytes: port.tx_bytes,
        errors: port.rx_errors + port.tx_errors,
        rx_lost_frames: port.rx_lost_frames,
        tx_lost_frames: port.tx_errors,
        tx_marked_frames: port.tx_marked_frames,
    };
    Ok(response.ports.into_iter().map(count).collect())
}

/// Number of frames that the switch dropped because a queue within it was full.
pub fn queue_losses(runtime: &Runtime, address: &str) -> Result<u64, String> {
    let response = ask(runtime, address, |mut switch: Client| async move {
        switch.statistics(extension::StatisticsRequest {}).await
    })?;
    let full =
        |drops: &&extension::Drops| FULL_QUEUES.iter().any(|full| full.name() == drops.reason);
    Ok(response
        .drops
        .iter()
        .filter(full)
        .map(|drops| drops.frames)
        .sum())
}

/// Scheduling priority of the switch's packet thread: `real-time`, `high` or `ordinary`.
pub fn priority(runtime: &Runtime, address: &str) -> Result<String, String> {
    let response = ask(runtime, address, |mut switch: Client| async move {
        switch.statistics(extension::StatisticsRequest {}).await
    })?;
    Ok(response.priority)
}

/// Reads the clock with which the switch stamps packets, in nanoseconds.
pub fn clock(runtime: &Runtime, address: &str) -> Result<u64, String> {
    let response = ask(runtime, address, |mut switch: Client| async move {
        switch.clock(extension::ClockRequest {}).await
    })?;
    Ok(response.now_ns)
}

/// A connection to the embedded switch for repeated readings of its clock.
pub struct ClockConnection(Client);

impl ClockConnection {
    /// Connects to the embedded switch at `address` (`host:port`).
    pub fn open(runtime: &Runtime, address: &str) -> Result<ClockConnection, String> {
        Ok(ClockConnection(runtime.block_on(connect(address))?))
    }

    /// Reads the clock with which the switch stamps packets, in nanoseconds.
    pub fn now(&mut self, runtime: &Runtime) -> Result<u64, String> {
        let call = self.0.clock(extension::ClockRequest {});
        Ok(runtime.block_on(answer(call))?.now_ns)
    }
}

fn ask<T, F: Future<Output = Result<Response<T>, Status>>>(
    runtime: &Runtime,
    address: &str,
    call: impl FnOnce(Client) -> F,
) -> Result<T, String> {
    runtime.block_on(async { answer(call(connect(address).await?)).await })
}

async fn connect(address: &str) -> Result<Client, String> {
    let connected = connect_extension(address, ANSWER_TIMEOUT).await;
    connected.map_err(|error| error.to_string())
}

async fn answer<T>(call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, String> {
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, call).await;
    answer
        .map_err(|_| format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))?
        .map(Response::into_inner)
        .map_err(|status| status.message().to_owned())
}
