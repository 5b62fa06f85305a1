//! The gRPC service `weir.v1.Switch`, which extends P4Runtime: port counters, statistics, shutdown.

use crate::driver;
use p4lang::ir::Arch;
use pipeline::{GeneratorApp, Trigger};
use proto::switch_server::{Switch, SwitchServer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::watch;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

/// Generated messages, client and server of the service.
#[allow(missing_docs, clippy::all, rustdoc::all)]
pub mod proto {
    tonic::include_proto!("weir.v1");
}

/// Connects a client of `weir.v1.Switch` to a switch at `host:port`, in another process.
pub async fn connect(
    address: &str,
    timeout: std::time::Duration,
) -> Result<proto::switch_client::SwitchClient<Channel>, tonic::transport::Error> {
    let endpoint = Endpoint::from_shared(format!("http://{address}"))?
        .connect_timeout(timeout)
        .timeout(timeout);
    Ok(proto::switch_client::SwitchClient::new(
        endpoint.connect().await?,
    ))
}

pub(super) struct Extension {
    driver: driver::Handle,
    shutdown: watch::Sender<bool>,
    /// Number of messages on stream channels that were lost because a client was too slow.
    lost: Arc<AtomicU64>,
}

pub(super) fn service(
    driver: driver::Handle,
    shutdown: watch::Sender<bool>,
    lost: Arc<AtomicU64>,
) -> SwitchServer<Extension> {
    SwitchServer::new(Extension {
        driver,
        shutdown,
        lost,
    })
}

#[tonic::async_trait]
impl Switch for Extension {
    async fn port_counters(
        &self,
        _: Request<proto::PortCountersRequest>,
    ) -> Result<Response<proto::PortCountersResponse>, Status> {
        let counters = self
            .driver
            .run(|core| core.port_counters())
            .await
            .map_err(super::stopped)?;
        let port = |counters: driver::PortCounters| proto::Port {
            port: counters.port,
            name: counters.name,
            rx_frames: counters.rx_frames,
            rx_bytes: counters.rx_bytes,
            tx_frames: counters.tx_frames,
            tx_bytes: counters.tx_bytes,
            rx_errors: counters.rx_errors,
            tx_errors: counters.tx_errors,
            rx_lost_frames: counters.rx_lost_frames,
            tx_marked_frames: counters.tx_marked,
        };
        Ok(Response::new(proto::PortCountersResponse {
            ports: counters.into_iter().map(port).collect(),
        }))
    }

    async fn statistics(
        &self,
        _: Request<proto::StatisticsRequest>,
    ) -> Result<Response<proto::StatisticsResponse>, Status> {
        let (statistics, priority) = self
            .driver
            .run(|core| (core.statistics(), core.priority()))
            .await
            .map_err(super::stopped)?;
        let mut drops = statistics.drops;
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            drops.insert("client too slow".to_owned(), lost);
        }
        let drops = drops
            .into_iter()
            .map(|(reason, frames)| proto::Drops { reason, frames });
        Ok(Response::new(proto::StatisticsResponse {
            rx_frames: statistics.rx_frames,
            tx_frames: statistics.tx_frames,
            packets_in: statistics.packets_in,
            packets_out: statistics.packets_out,
            drops: drops.collect(),
            priority: priority.name().to_owned(),
            latest_ns: statistics.latest_ns,
        }))
    }

    async fn clock(
        &self,
        _: Request<proto::ClockRequest>,
    ) -> Result<Response<proto::ClockResponse>, Status> {
        let now_ns = self
            .driver
            .run(|core| core.now_ns())
            .await
            .map_err(super::stopped)?;
        Ok(Response::new(proto::ClockResponse { now_ns }))
    }

    async fn set_generator(
        &self,
        request: Request<proto::SetGeneratorRequest>,
    ) -> Result<Response<proto::SetGeneratorResponse>, Status> {
        let request = request.into_inner();
        let config = request.config.map(generator_app).transpose()?;
        let set = move |core: &mut driver::Core| {
            // The running program, not a saved one: that makes no packets, and on commit it would make all that it
            // missed.
            let (now, switch) = core.running()?;
            if !matches!(switch.program().arch, Arch::Tna | Arch::T2na) {
                return None;
            }
            let buffer = (request.buffer_offset as usize, &request.buffer[..]);
            Some(switch.set_generator(now, request.pipe, buffer, request.app, config))
        };
        let set = self.driver.run(set).await.map_err(super::stopped)?;
        set.ok_or_else(|| Status::failed_precondition("no Tofino program runs"))?
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        Ok(Response::new(proto::SetGeneratorResponse {}))
    }

    async fn shutdown(
        &self,
        _: Request<proto::ShutdownRequest>,
    ) -> Result<Response<proto::ShutdownResponse>, Status> {
        self.shutdown.send_replace(true);
        Ok(Response::new(proto::ShutdownResponse {}))
    }
}

fn generator_app(app: proto::GeneratorApp) -> Result<GeneratorApp, Status> {
    use proto::generator_app::Trigger as Wanted;
    let unset = || Status::invalid_argument("the application has no trigger");
    Ok(GeneratorApp {
        trigger: match app.trigger.ok_or_else(unset)? {
            Wanted::OneShotAfterNs(after_ns) => Trigger::OneShot { after_ns },
            Wanted::PeriodNs(period_ns) => Trigger::Periodic { period_ns },
            Wanted::PortDown(proto::PortDown { ports }) => Trigger::PortDown {
                ports: ports.into_iter().collect(),
            },
            Wanted::Recirculation(proto::Recirculation { value, mask }) => {
                Trigger::Recirculation { value, mask }
            }
            Wanted::Deparser(proto::Deparser {}) => Trigger::Deparser,
        },
        offset: app.offset as usize,
        length: app.length as usize,
        batches: app.batches,
        packets: app.packets,
        batch_gap_ns: app.batch_gap_ns,
        packet_gap_ns: app.packet_gap_ns,
        port: app.port,
    })
}
