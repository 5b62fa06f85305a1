//! A session with BMv2's `psa_switch` by Thrift.

use std::net::SocketAddr;
use std::sync::Arc;

use bmv2::device::{Device, DeviceError};
use bmv2::program::Program;
use p4lang::p4info::P4Info;
use tokio::runtime::Runtime;

use super::{ANSWER_TIMEOUT, Clock, Item, LeaseSession, Query, Target, TargetError, UpdateType};

/// A Thrift session with a `psa_switch`.
pub struct PsaSwitch {
    name: String,
    device: Device,
}

impl PsaSwitch {
    /// Connects to the Thrift server of the `psa_switch` at `address`.
    pub fn connect(name: &str, address: SocketAddr) -> Result<PsaSwitch, TargetError> {
        let device = Device::connect(address, ANSWER_TIMEOUT, Program::default());
        Ok(PsaSwitch {
            name: name.to_owned(),
            device: device.map_err(|source| failure(name, source))?,
        })
    }

    /// The Thrift client, for calls that [`Target`] does not have.
    pub fn device(&mut self) -> &mut Device {
        &mut self.device
    }
}

impl Target for PsaSwitch {
    fn name(&self) -> &str {
        &self.name
    }

    /// Loads the program in `device_config`, p4c's JSON: the one with which the switch was started, or another one.
    fn load(&mut self, _: &P4Info, device_config: &[u8]) -> Result<(), TargetError> {
        let json = String::from_utf8_lossy(device_config);
        let program = Program::parse(&json).map_err(|source| TargetError::Config {
            switch: self.name.clone(),
            reason: source.to_string(),
        })?;
        let loaded = self.device.load(&json, program);
        loaded.map_err(|source| failure(&self.name, source))
    }

    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError> {
        self.device.write(updates).map_err(|(position, source)| {
            let (update, item) = &updates[position];
            TargetError::Update {
                switch: self.name.clone(),
                what: format!("{update:?} {item:?}"),
                source: Box::new(source),
            }
        })
    }

    fn read(&mut self, queries: &[Query]) -> Result<Vec<Item>, TargetError> {
        let items = self.device.read(queries);
        items.map_err(|source| failure(&self.name, source))
    }

    fn clock(&mut self) -> Result<Clock, TargetError> {
        let elapsed_us = self.device.elapsed_us();
        Ok(Clock {
            ticks: elapsed_us.map_err(|source| failure(&self.name, source))?,
            tick_ns: 1_000,
        })
    }

    fn lease_session(&self, _: &Arc<Runtime>) -> Result<Box<dyn LeaseSession>, TargetError> {
        let program = self.device.program().clone();
        let device = Device::connect(self.device.address(), ANSWER_TIMEOUT, program);
        Ok(Box::new(PsaSwitch {
            name: self.name.clone(),
            device: device.map_err(|source| failure(&self.name, source))?,
        }))
    }

    #[cfg(feature = "testbed")]
    fn port_counts(&mut self) -> Result<Vec<super::PortCount>, TargetError> {
        Err(TargetError::PortCounters {
            switch: self.name.clone(),
            reason: "psa_switch has no port counters".to_owned(),
        })
    }
}

impl LeaseSession for PsaSwitch {
    fn clock(&mut self) -> Result<Clock, TargetError> {
        Target::clock(self)
    }

    fn write(&mut self, updates: &[(UpdateType, Item)]) -> Result<(), TargetError> {
        Target::write(self, updates)
    }
}

fn failure(switch: &str, source: DeviceError) -> TargetError {
    TargetError::Thrift {
        switch: switch.to_owned(),
        source: Box::new(source),
    }
}
