//! Port counters: no P4Runtime, but a service of the embedded switch.

use softswitch::server::{connect_extension, weir as extension};
use tokio::runtime::Runtime;

use super::{ANSWER_TIMEOUT, PortCount};

/// All ports of the switch at `address`, by number; or why it does not tell.
pub fn port_counts(runtime: &Runtime, address: &str) -> Result<Vec<PortCount>, String> {
    let response = runtime.block_on(async {
        let connected = connect_extension(address, ANSWER_TIMEOUT).await;
        let mut switch = connected.map_err(|error| error.to_string())?;
        let call = switch.port_counters(extension::PortCountersRequest {});
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, call).await;
        answer
            .map_err(|_| format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))?
            .map_err(|status| status.message().to_owned())
    })?;
    let count = |port: extension::Port| PortCount {
        port: port.port,
        rx_frames: port.rx_frames,
        rx_bytes: port.rx_bytes,
        tx_frames: port.tx_frames,
        tx_bytes: port.tx_bytes,
        errors: port.rx_errors + port.tx_errors,
        rx_lost_frames: port.rx_lost_frames,
    };
    Ok(response.into_inner().ports.into_iter().map(count).collect())
}
