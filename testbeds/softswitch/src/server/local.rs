//! A switch in this process with P4Runtime calls as functions, without a network.

use super::*;
use arbitration::Step;
use std::thread::JoinHandle;
use tokio_stream::StreamExt as _;

/// A switch without ports that runs in this process, and its only P4Runtime client, which is primary.
pub struct Local {
    service: Arc<Service>,
    packets: Option<JoinHandle<()>>,
    /// Receives the program's events for the control plane. Nobody reads them: once it is full, the packet loop drops them.
    _events: mpsc::Receiver<Event>,
    _shutdown: watch::Sender<bool>,
}

impl Local {
    /// Starts a switch, whose packet-ins and packet-outs pass the port `cpu_port`.
    pub async fn start(
        config: Config,
        cpu_port: u32,
        election_id: u128,
    ) -> Result<Local, ServeError> {
        let device_id = config.device_id;
        let driver::Driver {
            handle,
            packet_in,
            thread,
        } = driver::start(Vec::new(), cpu_port)
            .map_err(|error| ServeError::Listener(error.to_string()))?;
        let (shutdown, stop) = watch::channel(false);
        let service = Service::new(config, &handle, stop).await?;
        let update = v1::MasterArbitrationUpdate {
            device_id,
            election_id: Some(v1::Uint128 {
                high: (election_id >> 64) as u64,
                low: election_id as u64,
            }),
            ..v1::MasterArbitrationUpdate::default()
        };
        {
            let mut arbitration = service.arbitration();
            if let Ok(Step::TakeOver(_, id)) = arbitration.update(0, &update) {
                arbitration.complete(id);
            }
        }
        Ok(Local {
            service,
            packets: Some(thread),
            _events: packet_in,
            _shutdown: shutdown,
        })
    }

    /// Calls Write of P4Runtime.
    pub async fn write(&self, request: v1::WriteRequest) -> Result<(), Status> {
        self.service.write_batch(request).await
    }

    /// Calls Read of P4Runtime, and returns the entities of all responses.
    pub async fn read(&self, request: v1::ReadRequest) -> Result<Vec<v1::Entity>, Status> {
        let mut responses = self.service.read_entities(request).await?;
        let mut entities = Vec::new();
        while let Some(response) = responses.next().await {
            entities.extend(response?.entities);
        }
        Ok(entities)
    }

    /// Calls SetForwardingPipelineConfig of P4Runtime.
    pub async fn set_config(
        &self,
        request: v1::SetForwardingPipelineConfigRequest,
    ) -> Result<(), Status> {
        self.service.set_config(request).await
    }

    /// Calls GetForwardingPipelineConfig of P4Runtime; `None`: the switch has no program.
    pub async fn config(
        &self,
        request: &v1::GetForwardingPipelineConfigRequest,
    ) -> Result<Option<v1::ForwardingPipelineConfig>, Status> {
        self.service.get_config(request).await
    }

    /// Stops the switch, and waits for its packet loop; false if the loop had panicked.
    pub async fn stop(mut self) -> bool {
        let stopped = self.service.driver.run(driver::Core::stop).await;
        let packets = self.packets.take();
        stopped.is_ok() && packets.is_none_or(|thread| thread.join().is_ok())
    }
}
