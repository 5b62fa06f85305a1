//! `writes`, `writes_bmv2`: rate of writing exact table entries over P4Runtime, from one client
//! over loopback, to our switch and to BMv2's simple_switch_grpc.

use crate::measure::Args;
use crate::measure::bmv2::Rival;
use crate::measure::clock::{process_cpu_ns, thread_cpu_ns};
use crate::measure::row::{Goal, Row};
use crate::measure::veth::Running;
use ::bmv2::tools::Tool;
use anyhow::{Context, Result, anyhow};
use p4rt::p4info::Index;
use p4rt::v1;
use p4rt::v1::p4_runtime_client::P4RuntimeClient;
use prost::Message as _;
use softswitch::dataplane::Loader;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::transport::Channel;

pub const NAMES: &[&str] = &["writes", "writes_bmv2"];

const PROGRAM: &str = include_str!("../p4/exact.p4");
const DEVICE: u64 = 1;
/// Number of updates in one write request.
const BATCH: usize = 1000;
const BATCHES: usize = 100;
/// Number of passes. The best pass counts: other programs on the machine only slow a pass down.
const PASSES: usize = 5;
/// Number of batches to BMv2, which gets fewer batches and passes than our switch.
const BMV2_BATCHES: usize = 20;
const BMV2_PASSES: usize = 2;
/// Time limit until BMv2 listens for P4Runtime.
const BMV2_START: Duration = Duration::from_secs(20);

pub fn run(args: &Args) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let loader = softswitch::p4::P4Loader::default();
    let program = loader
        .load(PROGRAM.as_bytes())
        .map_err(|error| anyhow!("{error}"))?;
    let p4info = p4rt::p4info::to_proto(&program.p4info);
    let index = Index::new(program.p4info.clone())?;
    let requests = requests(&index)?;
    let config = softswitch::instance::Config {
        device_id: DEVICE,
        cpu_port: pipeline::CPU_PORT,
        ports: Vec::new(),
        loader: Arc::new(loader),
        program: Some((program, PROGRAM.as_bytes().to_vec())),
        grpc: "127.0.0.1:0".parse()?,
    };
    let instance = softswitch::instance::start(config)?;
    let address = instance.address();
    let (mut inserts, mut deletes) = (PassTimes::MOST, PassTimes::MOST);
    runtime.block_on(async {
        let mut client = connect(address).await?;
        let _stream = become_primary(&mut client).await?;
        for _ in 0..PASSES {
            let inserted = pass(&mut client, &requests, v1::update::Type::Insert).await?;
            inserts = inserts.least(inserted);
            let deleted = pass(&mut client, &requests, v1::update::Type::Delete).await?;
            deletes = deletes.least(deleted);
        }
        Ok::<_, anyhow::Error>(())
    })?;
    instance.stop()?;
    let rate = |time: Duration| (BATCH * BATCHES) as f64 / time.as_secs_f64();
    let each = |ns: u64| ns as f64 / 1000.0 / (BATCH * BATCHES) as f64;
    let floor = floor(&requests)?;
    let rival = Rival::find(Tool::SimpleSwitchGrpc, PROGRAM, &args.bmv2_dir, None);
    let mut rows = vec![Row {
        name: "writes",
        value: Some(rate(inserts.wall)),
        unit: "entries/s",
        goal: Goal::AtLeast(200_000.0),
        floor: Some(rate(floor)),
        note: format!(
            "{BATCHES} batches of {BATCH} inserts, each answered before the next is sent, client and switch in one \
             process; {:.2} µs of CPU an entry in the client, {:.2} in the switch; {:.0} deletes/s; floor: prost's \
             decoding and an insertion into a hash map",
            each(inserts.client_ns),
            each(inserts.switch_ns),
            rate(deletes.wall)
        ),
    }];
    match rival {
        Ok(rival) => {
            let entries = (BMV2_BATCHES * BATCH) as f64;
            let requests = &requests[..BMV2_BATCHES];
            let time = runtime.block_on(bmv2(&rival, p4info, requests))?;
            rows.push(Row {
                name: "writes_bmv2",
                value: Some(entries / time.as_secs_f64()),
                unit: "entries/s",
                goal: Goal::Nothing,
                floor: None,
                note: format!(
                    "{BMV2_BATCHES} of these batches to {} ({}), the better of {BMV2_PASSES} passes",
                    rival.program().display(),
                    rival.version()
                ),
            });
        }
        Err(why) => rows.push(Row {
            name: "writes_bmv2",
            value: None,
            unit: "entries/s",
            goal: Goal::Nothing,
            floor: None,
            note: why,
        }),
    }
    Ok(rows)
}

async fn connect(address: SocketAddr) -> Result<P4RuntimeClient<Channel>> {
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{address}"))?;
    Ok(P4RuntimeClient::new(channel.connect().await?))
}

/// Shortest time in which BMv2's simple_switch_grpc handles these requests.
async fn bmv2(
    rival: &Rival,
    p4info: p4rt::config::P4Info,
    requests: &[v1::WriteRequest],
) -> Result<Duration> {
    let free = || std::net::TcpListener::bind("127.0.0.1:0")?.local_addr();
    let (address, thrift) = (free()?, free()?.port());
    let mut command = rival.grpc_command(DEVICE, address, thrift)?;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _running = Running(command.spawn()?);
    let start = Instant::now();
    let mut client = loop {
        match connect(address).await {
            Ok(client) => break client,
            Err(error) if start.elapsed() > BMV2_START => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    };
    let _stream = become_primary(&mut client).await?;
    let config = v1::ForwardingPipelineConfig {
        p4info: Some(p4info),
        p4_device_config: std::fs::read(rival.json())?,
        ..Default::default()
    };
    let action = v1::set_forwarding_pipeline_config_request::Action::VerifyAndCommit;
    let request = v1::SetForwardingPipelineConfigRequest {
        device_id: DEVICE,
        election_id: election_id(),
        action: action.into(),
        config: Some(config),
        ..Default::default()
    };
    client.set_forwarding_pipeline_config(request).await?;
    let mut best = Duration::MAX;
    for _ in 0..BMV2_PASSES {
        let inserted = pass(&mut client, requests, v1::update::Type::Insert).await?;
        pass(&mut client, requests, v1::update::Type::Delete).await?;
        best = best.min(inserted.wall);
    }
    Ok(best)
}

async fn become_primary(client: &mut P4RuntimeClient<Channel>) -> Result<impl Sized + use<>> {
    let (requests, outgoing) = tokio::sync::mpsc::channel(1);
    let arbitration = v1::MasterArbitrationUpdate {
        device_id: DEVICE,
        election_id: election_id(),
        ..Default::default()
    };
    let update = v1::stream_message_request::Update::Arbitration(arbitration);
    let request = v1::StreamMessageRequest {
        update: Some(update),
    };
    requests.send(request).await?;
    let outgoing = tokio_stream::wrappers::ReceiverStream::new(outgoing);
    let mut responses = client.stream_channel(outgoing).await?.into_inner();
    let first = responses.message().await?;
    first.context("no answer to the arbitration")?;
    // The client stays primary while the caller holds both ends of the stream.
    Ok((requests, responses))
}

/// Times of one pass over all requests.
#[derive(Clone, Copy)]
struct PassTimes {
    /// Time from the first request to the last response.
    wall: Duration,
    /// CPU time of the client's thread, in nanoseconds.
    client_ns: u64,
    /// CPU time of all other threads of this process, in nanoseconds.
    switch_ns: u64,
}

impl PassTimes {
    const MOST: PassTimes = PassTimes {
        wall: Duration::MAX,
        client_ns: u64::MAX,
        switch_ns: u64::MAX,
    };

    /// The minimum of each time of two passes: different things disturb the times.
    fn least(self, other: PassTimes) -> PassTimes {
        PassTimes {
            wall: self.wall.min(other.wall),
            client_ns: self.client_ns.min(other.client_ns),
            switch_ns: self.switch_ns.min(other.switch_ns),
        }
    }
}

async fn pass(
    client: &mut P4RuntimeClient<Channel>,
    requests: &[v1::WriteRequest],
    kind: v1::update::Type,
) -> Result<PassTimes> {
    let of_kind = |request: &v1::WriteRequest| {
        let mut request = request.clone();
        for update in &mut request.updates {
            update.r#type = kind.into();
        }
        request
    };
    let requests: Vec<_> = requests.iter().map(of_kind).collect();
    let (start, client_ns, all_ns) = (Instant::now(), thread_cpu_ns(), process_cpu_ns());
    for request in requests {
        client.write(request).await?;
    }
    let wall = start.elapsed();
    let client_ns = thread_cpu_ns() - client_ns;
    Ok(PassTimes {
        wall,
        client_ns,
        switch_ns: (process_cpu_ns() - all_ns).saturating_sub(client_ns),
    })
}

fn requests(index: &Index) -> Result<Vec<v1::WriteRequest>> {
    let table = index.tables.named("ingress.forward").context("the table")?;
    let action = index.actions.named("ingress.send").context("the action")?;
    let update = |number: u64| {
        // Spread over the key space like addresses.
        let address = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        let exact = v1::field_match::Exact {
            value: p4rt::bytes::encode(address.into()).into(),
        };
        let entry = v1::TableEntry {
            table_id: table.preamble.id,
            r#match: vec![v1::FieldMatch {
                field_id: 1,
                field_match_type: Some(v1::field_match::FieldMatchType::Exact(exact)),
            }],
            action: Some(v1::TableAction {
                r#type: Some(v1::table_action::Type::Action(v1::Action {
                    action_id: action.preamble.id,
                    params: vec![v1::action::Param {
                        param_id: 1,
                        value: vec![(number % 64) as u8].into(),
                    }],
                })),
            }),
            ..Default::default()
        };
        v1::Update {
            r#type: v1::update::Type::Insert.into(),
            entity: Some(v1::Entity {
                entity: Some(v1::entity::Entity::TableEntry(entry)),
            }),
        }
    };
    let batch = |batch: usize| {
        let numbers = batch * BATCH..(batch + 1) * BATCH;
        v1::WriteRequest {
            device_id: DEVICE,
            election_id: election_id(),
            updates: numbers.map(|n| update(n as u64)).collect(),
            ..Default::default()
        }
    };
    Ok((0..BATCHES).map(batch).collect())
}

fn election_id() -> Option<v1::Uint128> {
    Some(v1::Uint128 { high: 0, low: 1 })
}

/// Lower bound of the switch's time: decodes the requests, and inserts keys and actions into a map.
fn floor(requests: &[v1::WriteRequest]) -> Result<Duration> {
    let encoded: Vec<Vec<u8>> = requests.iter().map(|r| r.encode_to_vec()).collect();
    let mut best = Duration::MAX;
    for _ in 0..PASSES {
        let mut map = HashMap::new();
        let start = Instant::now();
        for bytes in &encoded {
            let request = v1::WriteRequest::decode(bytes.as_slice())?;
            for update in request.updates {
                let Some(v1::entity::Entity::TableEntry(entry)) =
                    update.entity.and_then(|e| e.entity)
                else {
                    continue;
                };
                let exact = match entry.r#match.into_iter().next() {
                    Some(v1::FieldMatch {
                        field_match_type: Some(v1::field_match::FieldMatchType::Exact(exact)),
                        ..
                    }) => exact.value,
                    _ => continue,
                };
                map.insert(exact, entry.action);
            }
        }
        std::hint::black_box(&map);
        best = best.min(start.elapsed());
    }
    Ok(best)
}
