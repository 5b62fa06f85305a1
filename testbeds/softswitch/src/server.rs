//! The gRPC server of a switch: P4Runtime 1.4 for one device, and the service `weir.v1.Switch`.

mod arbitration;
mod batch;
mod binding;
mod config;
mod digests;
mod errors;
mod extension;
mod local;
mod op;
mod outbox;
mod packet;
mod read;
mod stream;
mod write;

use crate::dataplane::{Event, Loader, Program};
use crate::driver::{self, Stopped};
use arbitration::{Access, Arbitration, ClientId};
use binding::Sdn;
use config::{Loaded, Pipelines};
use p4rt::v1;
use p4rt::v1::p4_runtime_server::{P4Runtime, P4RuntimeServer};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{RwLock, Semaphore, mpsc, watch};
use tokio_stream::Stream;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

/// Maximum size of a message in bytes: programs may be larger than tonic's default of 4 MiB.
const MESSAGE_LIMIT: usize = 64 << 20;
/// Size in bytes from which a response, digest list or notification is sent, and its remainder in another message: a
/// client with default settings accepts 4 MiB, and ends the stream on a larger message.
const MESSAGE_BYTES: usize = 1 << 20;

/// Maximum time for which the server finishes running calls after the switch stops.
const GRACE: std::time::Duration = std::time::Duration::from_millis(500);

/// Time without traffic after which the server probes a client; also the maximum time that it waits for the client's answer.
const KEEPALIVE: std::time::Duration = std::time::Duration::from_secs(20);

pub use extension::{connect as connect_extension, proto as weir};
pub use local::Local;

/// Configuration of the P4Runtime server.
pub struct Config {
    /// Id of the only device that the server offers.
    pub device_id: u64,
    /// Compiles the device configs that clients send.
    pub loader: Arc<dyn Loader>,
    /// A program that runs from the start, with its device config; `None`: a client sends the first program.
    pub program: Option<(Program, Vec<u8>)>,
    /// Names and numbers of the ports, for programs whose control plane uses names.
    pub port_names: Vec<(String, u32)>,
}

/// Serves P4Runtime clients until `shutdown` is true; a client's `Shutdown` call sets it too.
pub async fn serve(
    listener: tokio::net::TcpListener,
    config: Config,
    driver: driver::Handle,
    events: mpsc::Receiver<Event>,
    shutdown: watch::Sender<bool>,
) -> Result<(), ServeError> {
    let service = Service::new(config, &driver, shutdown.subscribe()).await?;
    let lost = Arc::clone(&service.lost);
    let forward = tokio::spawn(stream::forward(Arc::clone(&service), events));
    let runtime = P4RuntimeServer::new(Endpoint(service))
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT);
    // An error means that no sender is left that could stop the server: it stops.
    let (mut stop, mut grace) = (shutdown.subscribe(), shutdown.subscribe());
    let until = async move { drop(stop.wait_for(|stop| *stop).await) };
    let served = tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .add_service(runtime)
        .add_service(extension::service(driver, shutdown, lost))
        .serve_with_incoming_shutdown(
            // Headers and trailers of an answer are two small writes: the second must not wait for an acknowledgement.
            TcpIncoming::from(listener).with_nodelay(Some(true)),
            until,
        );
    let served = tokio::select! {
        served = served => served,
        // A client that keeps its connection open does not delay the shutdown.
        () = async {
            drop(grace.wait_for(|stop| *stop).await);
            tokio::time::sleep(GRACE).await;
        } => Ok(()),
    };
    forward.abort();
    Ok(served?)
}

/// The reason why the P4Runtime server stopped early.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The P4Info of the program that runs from the start is inconsistent.
    #[error("the program's P4Info: {0}")]
    P4Info(p4rt::p4info::DecodeError),
    /// The packet loop has stopped.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The listening socket or its thread failed.
    #[error("the P4Runtime server: {0}")]
    Listener(String),
    /// The gRPC transport failed.
    #[error("the P4Runtime server: {0}")]
    Transport(#[from] tonic::transport::Error),
}

/// The state that all calls share. The lock of `pipelines` also orders calls: a Write, a new program and a change of primary
/// hold it exclusively; a Read shares it with other Reads.
struct Service {
    loader: Arc<dyn Loader>,
    driver: driver::Handle,
    arbitration: Mutex<Arbitration>,
    clients: Mutex<BTreeMap<ClientId, outbox::Outbox>>,
    next_client: AtomicU64,
    pipelines: RwLock<Pipelines>,
    /// Permits for reads; a read holds one until the client has taken all results.
    reads: Arc<Semaphore>,
    /// Number of messages on stream channels that were lost because a client was too slow.
    lost: Arc<AtomicU64>,
    sdn: Sdn,
    stop: watch::Receiver<bool>,
}

/// The state of all calls, as the service that tonic runs. It is shared with streams, which outlive the call that opened them.
struct Endpoint(Arc<Service>);

impl Service {
    /// Creates the state of all calls, for a packet loop that has no program yet.
    async fn new(
        config: Config,
        driver: &driver::Handle,
        stop: watch::Receiver<bool>,
    ) -> Result<Arc<Service>, ServeError> {
        let mut pipelines = Pipelines::default();
        let sdn = Sdn::new(config.port_names);
        if let Some((program, device_config)) = config.program {
            let loaded = Loaded::of_program(&program, device_config, sdn.clone())
                .map_err(ServeError::P4Info)?;
            let dataplane = program.dataplane;
            driver
                .run(move |core| {
                    core.save(dataplane);
                    core.commit();
                })
                .await?;
            pipelines.committed = Some(loaded);
        }
        Ok(Arc::new(Service {
            loader: config.loader,
            driver: driver.clone(),
            arbitration: Mutex::new(Arbitration::new(config.device_id)),
            clients: Mutex::new(BTreeMap::new()),
            next_client: AtomicU64::new(0),
            pipelines: RwLock::new(pipelines),
            reads: Arc::new(Semaphore::new(read::READS)),
            lost: Arc::default(),
            sdn,
            stop,
        }))
    }

    fn arbitration(&self) -> MutexGuard<'_, Arbitration> {
        self.arbitration
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a command in the packet loop, between two frames: it gets the time in nanoseconds, and the program that clients
    /// write to.
    async fn control<R: Send + 'static>(
        &self,
        command: impl FnOnce(u64, &mut pipeline::Switch) -> R + Send + 'static,
    ) -> Result<R, Status> {
        let run = move |core: &mut driver::Core| {
            let (now, switch) = core.control()?;
            Some(command(now, switch))
        };
        let result = self.driver.run(run).await.map_err(stopped)?;
        result.ok_or_else(no_pipeline)
    }

    fn clients(&self) -> MutexGuard<'_, BTreeMap<ClientId, outbox::Outbox>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn no_pipeline() -> Status {
    Status::failed_precondition("no forwarding pipeline config is set")
}

fn stopped(_: Stopped) -> Status {
    Status::unavailable("the switch is stopping")
}

#[allow(deprecated)]
fn check_no_role_number(role_id: u64) -> Result<(), Status> {
    match role_id {
        0 => Ok(()),
        _ => Err(Status::unimplemented(
            "roles by number are deprecated; use the role's name",
        )),
    }
}

type ResponseStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Completes the work of a call even if the client disconnects: the server's record of the program and the program itself
/// must change together.
async fn finish(
    work: impl Future<Output = Result<(), Status>> + Send + 'static,
) -> Result<(), Status> {
    let done = tokio::spawn(work).await;
    done.map_err(|error| Status::internal(error.to_string()))?
}

#[tonic::async_trait]
impl P4Runtime for Endpoint {
    type ReadStream = ResponseStream<v1::ReadResponse>;
    type StreamChannelStream = ResponseStream<v1::StreamMessageResponse>;

    async fn write(
        &self,
        request: Request<v1::WriteRequest>,
    ) -> Result<Response<v1::WriteResponse>, Status> {
        let service = Arc::clone(&self.0);
        finish(async move { service.write_batch(request.into_inner()).await }).await?;
        Ok(Response::new(v1::WriteResponse {}))
    }

    async fn read(
        &self,
        request: Request<v1::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let responses = self.0.read_entities(request.into_inner()).await?;
        Ok(Response::new(responses))
    }

    async fn set_forwarding_pipeline_config(
        &self,
        request: Request<v1::SetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::SetForwardingPipelineConfigResponse>, Status> {
        let service = Arc::clone(&self.0);
        finish(async move { service.set_config(request.into_inner()).await }).await?;
        Ok(Response::new(v1::SetForwardingPipelineConfigResponse {}))
    }

    async fn get_forwarding_pipeline_config(
        &self,
        request: Request<v1::GetForwardingPipelineConfigRequest>,
    ) -> Result<Response<v1::GetForwardingPipelineConfigResponse>, Status> {
        let config = self.0.get_config(&request.into_inner()).await?;
        Ok(Response::new(v1::GetForwardingPipelineConfigResponse {
            config,
        }))
    }

    async fn stream_channel(
        &self,
        request: Request<Streaming<v1::StreamMessageRequest>>,
    ) -> Result<Response<Self::StreamChannelStream>, Status> {
        Ok(Response::new(self.0.open_stream(request.into_inner())))
    }

    async fn capabilities(
        &self,
        _: Request<v1::CapabilitiesRequest>,
    ) -> Result<Response<v1::CapabilitiesResponse>, Status> {
        Ok(Response::new(v1::CapabilitiesResponse {
            p4runtime_api_version: p4rt::API_VERSION.to_owned(),
        }))
    }
}
