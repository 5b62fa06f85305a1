//! Ends switches' processes and starts them again, for faults that restart a switch.

use std::path::Path;
use std::time::{Duration, Instant};

use testbeds::bed::Bed;

use super::super::workload::OrderProgress;
use crate::experiment::fleet::Fleet;
use crate::experiment::prepare::{LaunchError, START_TIMEOUT, SwitchProcess};

/// Access to the sessions, processes and ports of the switches that faults restart.
pub struct Switchboard<'a> {
    /// Sessions with the switches.
    pub fleet: &'a mut Fleet,
    /// Processes of the switches.
    pub processes: &'a mut [SwitchProcess],
    /// The network to whose links the switches' ports are attached.
    pub bed: &'a Bed,
    /// Path of the `weir` program that runs the embedded switches.
    pub weir: &'a Path,
    /// Names of switches that were started and have not printed their address yet, each with the time of its start.
    pub starting: &'a mut Vec<(String, Instant)>,
}

impl Switchboard<'_> {
    /// Kills the process of a switch; [`Switchboard::progress`] reports when it has ended.
    pub(super) fn take_down(&mut self, switch: &str) -> OrderProgress {
        self.fleet.take_down(switch);
        let Some((_, process)) = self.process(switch) else {
            return OrderProgress::Absent("the scenario has no such switch".to_owned());
        };
        process.take_down();
        OrderProgress::Pending
    }

    /// Starts the process of a switch again; [`Switchboard::progress`] reports when the switch has all its entries.
    pub(super) fn start(&mut self, switch: &str) -> Result<(), LaunchError> {
        let (bed, weir) = (self.bed, self.weir);
        if let Some((device_id, process)) = self.process(switch) {
            process.start_again(bed, weir, device_id)?;
            self.starting.push((switch.to_owned(), Instant::now()));
        }
        Ok(())
    }

    /// Progress of the last order to a switch: whether the killed process has ended, or whether the restarted switch shows all
    /// its entries. A restarted switch that does not show them is a result of the fault, not an error of the run.
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

    /// Device id and process of the switch of this name.
    fn process(&mut self, switch: &str) -> Option<(u64, &mut SwitchProcess)> {
        let mut numbered = (1..).zip(self.processes.iter_mut());
        numbered.find(|(_, process)| process.name() == switch)
    }
}
