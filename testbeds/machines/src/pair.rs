//! A program that has a server and a client, in two machines.

use crate::{Machine, MachineError};
use std::time::Duration;

/// Where `ibv_rc_pingpong` and perftest meet, unless they are told otherwise.
pub const PORT: u16 = 18515;
/// What the server may take longer than the client.
const END_LIMIT: Duration = Duration::from_secs(60);

/// Runs a program of rdma-core's or perftest's in both machines, for a minute at most: what the client wrote. Errors: either did not
/// succeed.
pub fn between(server: &Machine, client: &Machine, program: &str) -> Result<String, MachineError> {
    let serving = server.spawn(program)?;
    server.await_listening(PORT)?;
    let output = client.succeed(&format!("{program} {}", server.address()))?;
    serving.succeed(END_LIMIT)?;
    Ok(output)
}
