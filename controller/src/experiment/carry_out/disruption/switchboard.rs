//! Takes switches down and brings them up again.

use std::path::Path;
use std::time::{Duration, Instant};

use testbeds::bed::Bed;

use super::super::workload::OrderProgress;
use crate::experiment::fleet::Fleet;
use crate::experiment::prepare::{LaunchError, START_TIMEOUT, SwitchProcess};

/// The resources needed to end and start switches.
pub struct Switchboard<'a> {
    /// Sessions with the switches.
    pub fleet: &'a mut Fleet,
    /// Processes of the switches.
    pub processes: &'a mut [SwitchProcess],
    /// The network that has the switches' ports.
    pub bed: &'a Bed,
    /// Path of the program that the switches run.
    pub weir: &'a Path,
    /// Switches that have been started and have not printed their address yet, with the time of their start.
    pub starting: &'a mut Vec<(String, Instant)>,
}

impl Switchboard<'_> {
    /// Kills a switch's process; [`Switchboard::progress`] sees it end.
    pub(super) fn take_down(&mut self, switch: &str) -> OrderProgress {
        self.fleet.take_down(switch);
        let Some((_, process)) = self.process(switch) else {
            return OrderProgress::Absent("the scenario has no such switch".to_owned());
        };
        process.take_down();
        OrderProgress::Pending
    }

    /// Starts a switch again; [`Switchboard::progress`] completes the start.
    pub(super) fn start(&mut self, switch: &str) -> Result<(), LaunchError> {
        let (bed, weir) = (self.bed, self.weir);
        if let Some((device_id, process)) = self.process(switch) {
            process.start_again(bed, weir, device_id)?;
            self.starting.push((switch.to_owned(), Instant::now()));
        }
        Ok(())
    }

    /// Whether a switch that has to be down is dead, and whether a started switch has received and shows all its entries. A
    /// switch that does not come back is not an error of the scenario.
    pub(super) fn progress(&mut self, switch: &str) -> Result<OrderProgress, LaunchError> {
        let done = || OrderProgress::Done {
            processes: 1,
            remark: None,
        };
        if let Some((_, process)) = self.process(switch)
            && process.is_down()
        {
            return Ok(match process.is_gone()? {
                true => done(),
                false => OrderProgress::Pending,
            });
        }
        let started = self.starting.iter().position(|(name, _)| name == switch);
        let Some(index) = started else {
            return Ok(OrderProgress::Pending);
        };
        let since = self.starting[index].1;
        let Some((_, process)) = self.process(switch) else {
            return Ok(OrderProgress::Pending);
        };
        let Some(address) = process.address(Duration::ZERO)? else {
            if since.elapsed() < START_TIMEOUT {
                return Ok(OrderProgress::Pending);
            }
            let reason = format!("it printed no address within {} s", START_TIMEOUT.as_secs());
            let switch = switch.to_owned();
            return Err(LaunchError::Start { switch, reason });
        };
        self.starting.remove(index);
        let (shown, written) = self.fleet.bring_up(switch, &address)?;
        Ok(match shown == written {
            true => done(),
            false => OrderProgress::Unseen(format!(
                "it shows {shown} of the {written} entries, groups and sessions that were written again"
            )),
        })
    }

    /// Process of a switch, and the switch's device id.
    fn process(&mut self, switch: &str) -> Option<(u64, &mut SwitchProcess)> {
        let mut numbered = (1..).zip(self.processes.iter_mut());
        numbered.find(|(_, process)| process.name() == switch)
    }
}
