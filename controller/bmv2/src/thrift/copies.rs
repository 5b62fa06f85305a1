//! Calls of BMv2's services `simple_pre_lag` (multicast) and `psa_switch` (clone sessions, clock), and loading of programs.

use super::connection::ThriftError;
use super::refusal::Family;
use super::runtime::{Runtime, arguments};
use super::types::Mirror;
use super::value::Value;

const MULTICAST: &str = "simple_pre_lag";
const PSA_SWITCH: &str = "psa_switch";

type Result<T> = std::result::Result<T, ThriftError>;

/// Port map for `bm_mc_node_create`: a string with a `1` for each of the ports, else `0`; port 0 is the last character.
fn port_map(ports: &[u32]) -> String {
    let Some(last) = ports.iter().max() else {
        return String::new();
    };
    let digit = |port: u32| if ports.contains(&port) { '1' } else { '0' };
    (0..=*last).rev().map(digit).collect()
}

impl Runtime {
    fn multicast(
        &mut self,
        method: &str,
        rest: impl IntoIterator<Item = Value>,
    ) -> Result<Option<Value>> {
        self.connection
            .call(MULTICAST, method, arguments(rest), Family::Multicast)
    }

    /// Creates an empty multicast group with the number `group`; returns its handle.
    pub fn create_multicast_group(&mut self, group: i32) -> Result<i32> {
        const METHOD: &str = "bm_mc_mgrp_create";
        let result = self.multicast(METHOD, [group.into()])?;
        self.expect(METHOD, result, Value::i32)
    }

    /// Removes a multicast group; its nodes stay.
    pub fn destroy_multicast_group(&mut self, handle: i32) -> Result<()> {
        self.multicast("bm_mc_mgrp_destroy", [handle.into()])?;
        Ok(())
    }

    /// Creates a multicast node, which copies a packet to each of these ports with this instance number; returns its handle.
    pub fn create_multicast_node(&mut self, instance: i32, ports: &[u32]) -> Result<i32> {
        const METHOD: &str = "bm_mc_node_create";
        // The node uses no link aggregation groups.
        let rest = [instance.into(), port_map(ports).as_str().into(), "".into()];
        let result = self.multicast(METHOD, rest)?;
        self.expect(METHOD, result, Value::i32)
    }

    /// Adds a node to a multicast group; `group` and `node` are handles.
    pub fn associate_multicast_node(&mut self, group: i32, node: i32) -> Result<()> {
        self.multicast("bm_mc_node_associate", [group.into(), node.into()])?;
        Ok(())
    }

    /// Removes a node from a multicast group; `group` and `node` are handles.
    pub fn dissociate_multicast_node(&mut self, group: i32, node: i32) -> Result<()> {
        self.multicast("bm_mc_node_dissociate", [group.into(), node.into()])?;
        Ok(())
    }

    /// Deletes the multicast node with the handle `node`.
    pub fn destroy_multicast_node(&mut self, node: i32) -> Result<()> {
        self.multicast("bm_mc_node_destroy", [node.into()])?;
        Ok(())
    }

    fn psa_switch(&mut self, method: &str, arguments: Vec<(i16, Value)>) -> Result<Option<Value>> {
        self.connection
            .call(PSA_SWITCH, method, arguments, Family::Mirroring)
    }

    /// Sets the port or multicast group to which a clone session's copies go.
    pub fn set_mirror(&mut self, session: i32, to: Mirror) -> Result<()> {
        let port = to.port.map(|port| (1, port.into()));
        let group = to.group.map(|group| (2, group.into()));
        let config = Value::Struct(port.into_iter().chain(group).collect());
        self.psa_switch(
            "mirroring_session_add",
            vec![(1, session.into()), (2, config)],
        )?;
        Ok(())
    }

    /// Removes a clone session.
    pub fn delete_mirror(&mut self, session: i32) -> Result<()> {
        self.psa_switch("mirroring_session_delete", vec![(1, session.into())])?;
        Ok(())
    }

    /// Time on the clock by which the switch stamps packets, in microseconds since the switch started.
    pub fn elapsed_us(&mut self) -> Result<u64> {
        const METHOD: &str = "get_time_elapsed_us";
        let result = self.psa_switch(METHOD, Vec::new())?;
        self.expect(METHOD, result, |value| u64::try_from(value.i64()?).ok())
    }

    // The program.

    /// Transfers a program's JSON to the switch; [`Runtime::swap`] activates it.
    pub fn load_config(&mut self, json: &str) -> Result<()> {
        self.standard("bm_load_new_config", vec![(1, json.into())], Family::Swap)?;
        Ok(())
    }

    /// Activates the program that was transferred with `load_config`.
    pub fn swap(&mut self) -> Result<()> {
        self.standard("bm_swap_configs", Vec::new(), Family::Swap)?;
        Ok(())
    }

    /// JSON of the program that runs on the switch.
    pub fn config(&mut self) -> Result<String> {
        const METHOD: &str = "bm_get_config";
        let result = self.standard(METHOD, Vec::new(), Family::None)?;
        self.expect(METHOD, result, |value| value.text().map(str::to_owned))
    }
}
