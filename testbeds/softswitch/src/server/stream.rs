//! Serves the stream channel: arbitration, packets from and to the CPU port, digest lists, idle entries (P4Runtime 1.4,
//! section 16).

use super::arbitration::{Notice, Step};
use super::binding::{Binding, ReadFlags};
use super::digests::List;
use super::outbox::{self, Outbox};
use super::packet::{pack, unpack};
use super::*;
use p4rt::rpc::Code;
use prost::Message as _;
use std::sync::atomic::Ordering;
use std::time::Duration;
use v1::stream_message_request::Update as Incoming;
use v1::stream_message_response::Update as Outgoing;

/// Number of events passed to clients before the server checks for due digest lists.
const EVENTS_PER_TURN: usize = 256;

impl Service {
    pub(super) fn open_stream(
        self: &Arc<Self>,
        requests: Streaming<v1::StreamMessageRequest>,
    ) -> ResponseStream<v1::StreamMessageResponse> {
        let id = self.next_client.fetch_add(1, Ordering::Relaxed);
        let (outgoing, responses) = outbox::open();
        self.clients().insert(id, outgoing.clone());
        tokio::spawn(Arc::clone(self).session(id, requests, outgoing));
        Box::pin(responses)
    }

    /// Serves the stream of one client until the client disconnects or breaks a rule, or the switch stops.
    async fn session(
        self: Arc<Self>,
        id: ClientId,
        mut requests: Streaming<v1::StreamMessageRequest>,
        outgoing: Outbox,
    ) {
        let mut stop = self.stop.clone();
        loop {
            let request = tokio::select! {
                request = requests.message() => request,
                () = outgoing.closed() => break,
                _ = stop.wait_for(|stop| *stop) => break,
            };
            let Ok(Some(request)) = request else { break };
            if let Err(status) = self.handle(id, request.update).await {
                // A client that does not read only sees the end of its stream.
                outgoing.send(Err(status));
                break;
            }
        }
        self.clients().remove(&id);
        let mut arbitration = self.arbitration();
        let notices = arbitration.leave(id);
        self.send_notices(notices);
    }

    async fn handle(&self, id: ClientId, request: Option<Incoming>) -> Result<(), Status> {
        match request {
            Some(Incoming::Arbitration(update)) => self.arbitrate(id, &update).await?,
            Some(Incoming::Packet(packet)) => {
                if let Err((code, message)) = self.packet_out(id, &packet).await {
                    let details = v1::stream_error::Details::PacketOut(v1::PacketOutError {
                        packet_out: Some(packet),
                    });
                    self.send_error(id, code, message, details);
                }
            }
            Some(Incoming::DigestAck(ack)) => {
                if let Err((code, message)) = self.acknowledge(id, &ack).await {
                    let details =
                        v1::stream_error::Details::DigestListAck(v1::DigestListAckError {
                            digest_list_ack: Some(ack),
                        });
                    self.send_error(id, code, message, details);
                }
            }
            Some(Incoming::Other(other)) => {
                let details =
                    v1::stream_error::Details::Other(v1::StreamOtherError { other: Some(other) });
                self.send_error(
                    id,
                    Code::Unimplemented,
                    "unknown stream message".to_owned(),
                    details,
                );
            }
            None => return Err(Status::invalid_argument("stream message without content")),
        }
        Ok(())
    }

    /// Handles an arbitration update. The lock that decides notices is held while they are sent, so each client's last is
    /// correct.
    async fn arbitrate(
        &self,
        id: ClientId,
        update: &v1::MasterArbitrationUpdate,
    ) -> Result<(), Status> {
        {
            let mut arbitration = self.arbitration();
            match arbitration.update(id, update)? {
                Step::Notify(notices) => {
                    self.send_notices(notices);
                    return Ok(());
                }
                Step::TakeOver(notices, _) => self.send_notices(notices),
            }
        }
        // Acquired once every write in flight has finished.
        let _writes = self.pipelines.write().await;
        let mut arbitration = self.arbitration();
        let notices = arbitration.complete(id);
        self.send_notices(notices);
        Ok(())
    }

    async fn packet_out(&self, id: ClientId, packet: &v1::PacketOut) -> Result<(), (Code, String)> {
        if !self.arbitration().is_primary(id) {
            return Err((
                Code::PermissionDenied,
                "this client is not primary".to_owned(),
            ));
        }
        let frame = {
            let pipelines = self.pipelines.read().await;
            let no_pipeline = || {
                (
                    Code::FailedPrecondition,
                    "no forwarding pipeline config is set".to_owned(),
                )
            };
            let committed = pipelines.committed.as_ref().ok_or_else(no_pipeline)?;
            let binding = &committed.binding;
            let mut frame = match binding.index.controller_headers.named("packet_out") {
                Some(header) => {
                    let values = binding.header_values(header, &packet.metadata);
                    pack(&values.map_err(|error| (error.code, error.message))?)
                }
                None if packet.metadata.is_empty() => Vec::new(),
                None => {
                    return Err((
                        Code::InvalidArgument,
                        "the program has no packet_out header".to_owned(),
                    ));
                }
            };
            frame.extend_from_slice(&packet.payload);
            frame
        };
        if frame.len() > crate::ports::MAX_FRAME {
            return Err((
                Code::InvalidArgument,
                format!("frame too long: {} bytes", frame.len()),
            ));
        }
        let sent = self.driver.run(move |core| core.packet_out(&frame)).await;
        sent.map_err(|_| (Code::Unavailable, "the switch is stopping".to_owned()))
    }

    fn send_error(
        &self,
        id: ClientId,
        code: Code,
        message: String,
        details: v1::stream_error::Details,
    ) {
        let error = v1::StreamError {
            canonical_code: code.into(),
            message,
            details: Some(details),
            ..Default::default()
        };
        // The specification permits to drop error reports under load.
        self.send(id, Outgoing::Error(error));
    }

    fn send_notices(&self, notices: Vec<Notice>) {
        for (id, notice) in notices {
            if !self.send(id, Outgoing::Arbitration(notice)) {
                tracing::warn!(client = id, "disconnected: it reads no messages");
                self.clients().remove(&id);
            }
        }
    }

    /// Sends a message to a client without waiting; false if too many messages wait for the client.
    fn send(&self, id: ClientId, update: Outgoing) -> bool {
        let response = Ok(v1::StreamMessageResponse {
            update: Some(update),
        });
        let sent = self.clients().get(&id).is_none_or(|c| c.send(response));
        if !sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }
}

/// Passes packet-ins, digests and idle entries of the program to the clients that receive them.
pub(super) async fn forward(service: Arc<Service>, mut events: mpsc::Receiver<Event>) {
    let origin = tokio::time::Instant::now();
    loop {
        let due = {
            let pipelines = service.pipelines.read().await;
            let committed = pipelines.committed.as_ref();
            committed.and_then(|loaded| loaded.digests().next_ns())
        };
        // A digest that is enabled later starts with a message, which ends the wait.
        let wait = async {
            match due {
                Some(due) => tokio::time::sleep_until(origin + Duration::from_nanos(due)).await,
                None => std::future::pending().await,
            }
        };
        let event = tokio::select! {
            event = events.recv() => match event {
                Some(event) => Some(event),
                None => return,
            },
            () = wait => None,
        };
        let pipelines = service.pipelines.read().await;
        let Some(loaded) = &pipelines.committed else {
            continue;
        };
        let now = u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Takes all events that have arrived meanwhile, so that related ones are reported together.
        let mut idle = Idle::default();
        let mut next = event;
        let mut taken = 0;
        while let Some(event) = next {
            service.forward_event(loaded, now, event, &mut idle);
            taken += 1;
            next = (taken < EVENTS_PER_TURN)
                .then(|| events.try_recv().ok())
                .flatten();
        }
        service.send_idle(idle);
        loop {
            let list = loaded.digests().due(now);
            let Some(list) = list else { break };
            service.send_list(loaded, list);
        }
    }
}

/// Idle table entries that wait to be sent, by the table's id.
type Idle = BTreeMap<u32, Vec<v1::TableEntry>>;

impl Service {
    fn forward_event(&self, loaded: &Loaded, now: u64, event: Event, idle: &mut Idle) {
        let binding = &loaded.binding;
        match event {
            Event::Packet(frame) => self.packet_in(binding, frame),
            Event::Digest(message) => {
                let Some(digest) = binding.index.digests.named(&message.name) else {
                    return;
                };
                let id = digest.preamble.id;
                let list = loaded.digests().message(now, id, message.fields);
                if let Some(list) = list {
                    self.send_list(loaded, list);
                }
            }
            Event::Idle(position, state) => {
                let Some(table) = binding.table_at(position) else {
                    return;
                };
                match table.entry_to_proto(&state, ReadFlags::default(), binding) {
                    Ok(entry) => idle.entry(entry.table_id).or_default().push(entry),
                    Err(error) => tracing::warn!(%error, "cannot report an idle entry"),
                }
            }
        }
    }

    fn packet_in(&self, binding: &Binding, frame: Vec<u8>) {
        let packet = match binding.index.controller_headers.named("packet_in") {
            None => v1::PacketIn {
                payload: frame,
                metadata: Vec::new(),
            },
            Some(header) => {
                let Some((values, payload)) = unpack(&binding.header_widths(header), &frame) else {
                    tracing::warn!("a packet on the CPU port is shorter than its packet_in header");
                    return;
                };
                v1::PacketIn {
                    payload: payload.to_vec(),
                    metadata: binding.header_to_proto(header, &values),
                }
            }
        };
        let receivers = self.arbitration().receivers(&packet.metadata);
        for client in receivers {
            self.send(client, Outgoing::Packet(packet.clone()));
        }
    }

    fn send_list(&self, loaded: &Loaded, list: List) {
        let Some(digest) = loaded.binding.index.digests.with_id(list.digest) else {
            return;
        };
        let messages = list.messages.iter();
        let data: Result<Vec<_>, _> = messages
            .map(|m| loaded.binding.digest_to_proto(digest, m))
            .collect();
        let data = match data {
            Ok(data) => data,
            Err(error) => {
                tracing::warn!(%error, "cannot send a digest list");
                return;
            }
        };
        let message = v1::DigestList {
            digest_id: list.digest,
            list_id: list.id,
            data,
            timestamp: epoch_ns(),
        };
        let holders = self.arbitration().holders(list.digest);
        for client in holders {
            self.send(client, Outgoing::Digest(message.clone()));
        }
    }

    fn send_idle(&self, idle: Idle) {
        for (table, entries) in idle {
            let holders: Vec<ClientId> = self.arbitration().holders(table);
            for table_entry in in_pieces(entries) {
                let notification = v1::IdleTimeoutNotification {
                    table_entry,
                    timestamp: epoch_ns(),
                };
                for client in &holders {
                    self.send(
                        *client,
                        Outgoing::IdleTimeoutNotification(notification.clone()),
                    );
                }
            }
        }
    }

    async fn acknowledge(
        &self,
        id: ClientId,
        ack: &v1::DigestListAck,
    ) -> Result<(), (Code, String)> {
        if !self.arbitration().is_primary(id) {
            let message = "this client is not primary".to_owned();
            return Err((Code::PermissionDenied, message));
        }
        let pipelines = self.pipelines.read().await;
        let committed = pipelines.committed.as_ref();
        let loaded = committed.filter(|l| l.binding.index.digests.with_id(ack.digest_id).is_some());
        let Some(loaded) = loaded else {
            let message = format!("the program has no digest {:#010x}", ack.digest_id);
            return Err((Code::InvalidArgument, message));
        };
        loaded.digests().acknowledge(ack.digest_id, ack.list_id);
        Ok(())
    }
}

/// Splits idle entries into messages of a size that clients accept.
fn in_pieces(entries: Vec<v1::TableEntry>) -> Vec<Vec<v1::TableEntry>> {
    let mut pieces = Vec::new();
    let mut bytes = MESSAGE_BYTES;
    for entry in entries {
        if bytes >= MESSAGE_BYTES {
            pieces.push(Vec::new());
            bytes = 0;
        }
        bytes += entry.encoded_len();
        if let Some(last) = pieces.last_mut() {
            last.push(entry);
        }
    }
    pieces
}

/// Time since the Unix epoch in nanoseconds, for notifications.
fn epoch_ns() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_are_no_longer_than_clients_take() {
        let entry = |metadata: usize| v1::TableEntry {
            metadata: vec![1; metadata],
            ..Default::default()
        };
        assert!(in_pieces(Vec::new()).is_empty());
        let pieces = in_pieces(vec![
            entry(600_000),
            entry(600_000),
            entry(2_000_000),
            entry(1),
        ]);
        let sizes: Vec<usize> = pieces.iter().map(Vec::len).collect();
        assert_eq!(sizes, [2, 1, 1]);
    }
}
