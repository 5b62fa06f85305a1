//! Runs a program's server and client in two virtual machines.

use crate::{Machine, MachineError};
use std::time::Duration;

/// Default TCP port of `ibv_rc_pingpong` and perftest.
pub const PORT: u16 = 18515;
/// Time limit within which the server has to end after the client has ended.
const END_LIMIT: Duration = Duration::from_secs(60);

/// Runs a program of rdma-core or perftest in both machines, for at most a minute; returns the client's output. Both have to
/// succeed.
pub fn between(server: &Machine, client: &Machine, program: &str) -> Result<String, MachineError> {
    let serving = server.spawn(program)?;
    server.await_listening(PORT)?;
    let output = client.succeed(&format!("{program} {}", server.address()))?;
    serving.succeed(END_LIMIT)?;
    Ok(output)
}
