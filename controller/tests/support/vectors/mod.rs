//! Packet vectors (testbeds/vectors): frames in, frames out, and what was written before, the same on every switch.
//!
//! | runner | the program runs in |
//! |---|---|
//! | `it::vectors` | `pipeline`, in this process, in virtual time |
//! | `real_time::vectors` | `weir switch`, on interfaces |
//! | `real_time::vectors` | BMv2, v1model, compiled by p4c, by P4Runtime |
//! | `real_time::vectors` | BMv2, PSA, compiled by p4c, by Thrift |

pub mod case;

use std::collections::BTreeMap;

use controller::target::Kind;

use case::{Case, Loaded, Plannable};

/// Something that takes frames and gives frames.
pub trait Runner {
    /// Sends one frame in at a host's port, and says which leave for the hosts, each host's in order. `expected` tells
    /// how many to wait for; what else leaves by then is told too.
    fn pass(
        &mut self,
        at: &str,
        frame: &[u8],
        expected: &BTreeMap<String, Vec<Vec<u8>>>,
    ) -> BTreeMap<String, Vec<Vec<u8>>>;

    /// Called after each step, when all that was expected has come: what came beyond that.
    fn settle(&mut self) -> BTreeMap<String, Vec<Vec<u8>>>;
}

/// Runs all cases that a kind of switch can carry out.
pub fn run_all(kind: Kind, start: impl Fn(&Loaded) -> Box<dyn Runner>) {
    let cases = Case::all();
    assert!(cases.len() >= 5, "the vectors are missing");
    for case in cases {
        let loaded = match case.load(kind) {
            Plannable::Yes(loaded) => loaded,
            Plannable::No(refusal) => {
                assert!(
                    case.not_on.contains_key(&kind.to_string()),
                    "{}: {refusal}",
                    case.path
                );
                continue;
            }
        };
        assert!(
            !case.not_on.contains_key(&kind.to_string()),
            "{}: {kind} can, after all",
            case.path
        );
        let mut runner = start(&loaded);
        for step in &case.steps {
            for (frame, expected) in step.frames() {
                let left = runner.pass(&step.at, &frame, &expected);
                assert!(
                    left == expected,
                    "{}: {} (at {}, {kind})\nsent     {}\nexpected {}\nleft     {}",
                    case.path,
                    step.what,
                    step.at,
                    case::show(&frame),
                    case::show_all(&expected),
                    case::show_all(&left)
                );
            }
            let more = runner.settle();
            assert!(
                more.is_empty(),
                "{}: {} ({kind}): more left than expected: {}",
                case.path,
                step.what,
                case::show_all(&more)
            );
        }
    }
}
