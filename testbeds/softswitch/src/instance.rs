//! Runs a switch in this process: ports, packet loop and P4Runtime server together.

use crate::carrier::Carrier;
use crate::dataplane::{Loader, Program};
use crate::driver;
use crate::ports::Frames;
use crate::server;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::watch;

/// Configuration of a switch: ids, ports, programs and address.
pub struct Config {
    /// Device id of the switch in P4Runtime.
    pub device_id: u64,
    /// Number of the port by which the control plane exchanges packets with the program.
    pub cpu_port: u32,
    /// Number and back end of each port.
    pub ports: Vec<(u32, Box<dyn Frames>)>,
    /// Compiles the programs that P4Runtime clients send.
    pub loader: Arc<dyn Loader>,
    /// A program that runs from the start, with its device config; `None`: a client sends the first program.
    pub program: Option<(Program, Vec<u8>)>,
    /// Address of the P4Runtime server; TCP port 0 selects a free one.
    pub grpc: SocketAddr,
}

/// A switch that runs until it is stopped, dropped, or shut down by a client.
pub struct Instance {
    handle: driver::Handle,
    address: SocketAddr,
    shutdown: watch::Sender<bool>,
    packets: Option<JoinHandle<()>>,
    server: Option<JoinHandle<Result<(), server::ServeError>>>,
}

/// Starts a switch, which accepts P4Runtime calls as soon as this returns.
pub fn start(config: Config) -> io::Result<Instance> {
    let listener = std::net::TcpListener::bind(config.grpc)?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ports = config.ports.iter();
    let port_names = ports
        .map(|(port, io)| (io.name().to_owned(), *port))
        .collect();
    let interfaces = config.ports.iter().filter_map(|(_, io)| io.interface());
    let carrier = {
        let _inside = runtime.enter();
        Carrier::watch(interfaces.collect())
    };
    let driver::Driver {
        handle,
        packet_in,
        thread: packets,
    } = driver::start(config.ports, config.cpu_port)?;
    let (shutdown, _) = watch::channel(false);
    let server_config = server::Config {
        device_id: config.device_id,
        loader: config.loader,
        program: config.program,
        port_names,
    };
    let (driver, stop) = (handle.clone(), shutdown.clone());
    let server = std::thread::Builder::new()
        .name("p4runtime".to_owned())
        .spawn(move || {
            // The parent may have had a higher priority; compiling a program can wait.
            driver::lower_priority();
            let served = runtime.block_on(async {
                if let Some(carrier) = carrier {
                    tokio::spawn(carrier.report(driver.clone()));
                }
                let listener = tokio::net::TcpListener::from_std(listener)
                    .map_err(|error| server::ServeError::Listener(error.to_string()))?;
                server::serve(listener, server_config, driver, packet_in, stop).await
            });
            // Does not wait for compilations in progress.
            runtime.shutdown_background();
            served
        })?;
    driver::lower_priority();
    Ok(Instance {
        handle,
        address,
        shutdown,
        packets: Some(packets),
        server: Some(server),
    })
}

impl Instance {
    /// Address of the P4Runtime server, with its actual TCP port.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Handle that runs commands in the packet loop, between two frames.
    #[must_use]
    pub fn handle(&self) -> &driver::Handle {
        &self.handle
    }

    /// Counters of frames and bytes at each port, in order of port number.
    pub fn port_counters(&self) -> Result<Vec<driver::PortCounters>, driver::Stopped> {
        self.handle.run_blocking(|core| core.port_counters())
    }

    /// Packet statistics of the switch from its start until now.
    pub fn statistics(&self) -> Result<driver::Statistics, driver::Stopped> {
        self.handle.run_blocking(|core| core.statistics())
    }

    /// A sender by which any thread stops the switch: it sends true.
    #[must_use]
    pub fn stopper(&self) -> watch::Sender<bool> {
        self.shutdown.clone()
    }

    /// Waits until the switch stops because a client or a thread asked for it, or because its server failed.
    pub fn wait(mut self) -> Result<(), server::ServeError> {
        self.join()
    }

    /// Stops the switch and waits until it has stopped.
    pub fn stop(mut self) -> Result<(), server::ServeError> {
        self.shutdown.send_replace(true);
        self.join()
    }

    fn join(&mut self) -> Result<(), server::ServeError> {
        let served = match self.server.take().map(JoinHandle::join) {
            Some(Ok(served)) => served,
            Some(Err(_)) => Err(server::ServeError::Listener(
                "its thread panicked".to_owned(),
            )),
            None => Ok(()),
        };
        if let Some(packets) = self.packets.take() {
            // An error means that the packet loop has stopped already.
            let _ = self.handle.run_blocking(|core| core.stop());
            let _ = packets.join();
        }
        served
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.shutdown.send_replace(true);
        let _ = self.join();
    }
}
