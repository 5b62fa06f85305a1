//! Program for this crate's tests: enters a sandbox, does one experiment there and prints its result.
//! Exit status 77 means that this machine refuses the sandbox.

mod bundles;
mod hosts;
mod processes;
mod recorder;
mod redis;
mod training;
mod wire;

use std::process::ExitCode;

/// Exit status of this program when the machine refuses the sandbox.
const REFUSED: u8 = 77;

fn main() -> ExitCode {
    let which = std::env::args().nth(1).unwrap_or_default();
    let without_sandbox = [
        "redis-client",
        "agent",
        "train-on-a-cable",
        "stay-without-sandbox",
    ];
    if !without_sandbox.contains(&which.as_str())
        && let Err(error) = testbeds::sandbox::enter()
    {
        eprintln!("{error}");
        return ExitCode::from(REFUSED);
    }
    let outcome = match which.as_str() {
        "exchange" => wire::exchange(),
        "rate" => wire::rate(),
        "order" => wire::order(),
        "order-of-bundles" => wire::order_of_bundles(),
        "recorder-bundles" => bundles::recorded(),
        "recorder-tcp" => bundles::tcp(),
        "bundles-above-the-limit" => bundles::above_the_limit(),
        "recorder-two-ports" => recorder::two_ports(),
        "recorder-ends" => recorder::ends(),
        "recorder-loses" => recorder::loses(),
        "recorder-many" => recorder::many(),
        "recorder-goes-away" => recorder::goes_away(),
        "recorder-bed" => recorder::bed(),
        "recorder-cost" => recorder::cost(),
        "processes" => processes::processes(),
        "stay" => processes::stay(),
        "stay-without-sandbox" => processes::stay_without_sandbox(),
        "train" => training::train(),
        "train-on-a-cable" => training::train_on_a_cable(),
        "agent" => return training::agent(),
        "root-without-user-namespace" => processes::root_without_user_namespace(),
        "lost-worker" => training::lost_worker(),
        "refused" => processes::refused(),
        "redis" => redis::redis(),
        "redis-client" => redis::redis_client(),
        "status" => {
            return ExitCode::from(
                std::env::args()
                    .nth(2)
                    .and_then(|s| s.parse().ok())
                    .unwrap_or(0),
            );
        }
        other => Err(format!("no experiment {other:?}").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
