//! The stream channel: arbitration, packets from and to the CPU port (P4Runtime 1.4, section 16).

use super::arbitration::{Notice, Step};
use super::*;
use p4lang::p4info::ControllerPacketMetadata;
use p4rt::rpc::Code;
use p4rt::translate::{TranslateError, packet_fields, packet_metadata};
use std::sync::atomic::Ordering;
use tokio_stream::wrappers::ReceiverStream;
use v1::stream_message_request::Update as Incoming;
use v1::stream_message_response::Update as Outgoing;

/// Messages waiting for one client. Packets beyond are dropped; a client that does not take notices either is cut off.
const BACKLOG: usize = 1024;

impl Service {
    pub(super) fn open_stream(
        self: &Arc<Self>,
        requests: Streaming<v1::StreamMessageRequest>,
    ) -> ResponseStream<v1::StreamMessageResponse> {
        let id = self.next_client.fetch_add(1, Ordering::Relaxed);
        let (outgoing, responses) = mpsc::channel(BACKLOG);
        self.clients().insert(id, outgoing.clone());
        tokio::spawn(Arc::clone(self).session(id, requests, outgoing));
        Box::pin(ReceiverStream::new(responses))
    }

    /// Serves one client until it goes, breaks a rule, or the switch ends.
    async fn session(
        self: Arc<Self>,
        id: ClientId,
        mut requests: Streaming<v1::StreamMessageRequest>,
        outgoing: mpsc::Sender<Result<v1::StreamMessageResponse, Status>>,
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
                // A client that does not read learns of it by the end of its stream.
                let _ = outgoing.try_send(Err(status));
                break;
            }
        }
        self.clients().remove(&id);
        let notices = self.arbitration().leave(id);
        self.tell(notices);
    }

    async fn handle(&self, id: ClientId, request: Option<Incoming>) -> Result<(), Status> {
        match request {
            Some(Incoming::Arbitration(update)) => {
                let step = self.arbitration().update(id, &update)?;
                match step {
                    Step::Notify(notices) => self.tell(notices),
                    Step::TakeOver(notices, id) => {
                        self.tell(notices);
                        // Free once every write in flight has ended.
                        let writes = self.pipelines.write().await;
                        let notices = self.arbitration().complete(id);
                        drop(writes);
                        self.tell(notices);
                    }
                }
            }
            Some(Incoming::Packet(packet)) => {
                if let Err((code, message)) = self.packet_out(id, &packet).await {
                    let details = v1::stream_error::Details::PacketOut(v1::PacketOutError {
                        packet_out: Some(packet),
                    });
                    self.send_error(id, code, message, details);
                }
            }
            Some(Incoming::DigestAck(ack)) => {
                let details = v1::stream_error::Details::DigestListAck(v1::DigestListAckError {
                    digest_list_ack: Some(ack),
                });
                self.send_error(
                    id,
                    Code::Unimplemented,
                    "digests: not supported yet".to_owned(),
                    details,
                );
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
            None => return Err(Status::invalid_argument("a stream message without content")),
        }
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
            let header = pipelines
                .committed
                .as_ref()
                .ok_or_else(no_pipeline)?
                .index
                .controller_headers
                .named("packet_out");
            let mut frame = match header {
                Some(header) => {
                    let refused = |error: TranslateError| (error.code(), error.to_string());
                    pack(
                        header,
                        &packet_fields(header, &packet.metadata).map_err(refused)?,
                    )
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
                format!("a frame of {} bytes", frame.len()),
            ));
        }
        let sent = self.driver.run(move |core| core.packet_out(&frame)).await;
        sent.map_err(|_| (Code::Unavailable, "the switch is ending".to_owned()))
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
        // The specification lets error reports be dropped under load.
        self.send(id, Outgoing::Error(error));
    }

    fn tell(&self, notices: Vec<Notice>) {
        for (id, notice) in notices {
            if !self.send(id, Outgoing::Arbitration(notice)) {
                tracing::warn!(client = id, "cut off: it takes no messages");
                self.clients().remove(&id);
            }
        }
    }

    /// Never waits; false if the client's backlog is full.
    fn send(&self, id: ClientId, update: Outgoing) -> bool {
        let response = Ok(v1::StreamMessageResponse {
            update: Some(update),
        });
        let full = |outgoing: &mpsc::Sender<_>| {
            matches!(
                outgoing.try_send(response),
                Err(mpsc::error::TrySendError::Full(_))
            )
        };
        !self.clients().get(&id).is_some_and(full)
    }
}

/// Hands packets from the CPU port to the primary client.
pub(super) async fn forward_packets(service: Arc<Service>, mut packets: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = packets.recv().await {
        let Some(primary) = service.arbitration().primary() else {
            continue;
        };
        let packet = {
            let pipelines = service.pipelines.read().await;
            let index = pipelines.committed.as_ref().map(|loaded| &loaded.index);
            match index.and_then(|index| index.controller_headers.named("packet_in")) {
                None => Some(v1::PacketIn {
                    payload: frame,
                    metadata: Vec::new(),
                }),
                Some(header) => unpack(header, &frame).and_then(|(fields, payload)| {
                    let metadata = packet_metadata(header, &fields).ok()?;
                    Some(v1::PacketIn {
                        payload: payload.to_vec(),
                        metadata,
                    })
                }),
            }
        };
        match packet {
            Some(packet) => drop(service.send(primary, Outgoing::Packet(packet))),
            None => tracing::warn!("a packet on the CPU port is shorter than its packet_in header"),
        }
    }
}

/// A header's fields, one after the other, most significant bit first.
fn pack(header: &ControllerPacketMetadata, fields: &[u128]) -> Vec<u8> {
    let widths = header.metadata.iter().map(|field| field.bitwidth);
    let bits: u32 = widths.clone().sum();
    let mut bytes = vec![0; (bits as usize).div_ceil(8)];
    let mut at = 0;
    for (width, value) in widths.zip(fields) {
        for bit in (0..width).rev() {
            let set = bit < 128 && value >> bit & 1 == 1;
            bytes[at / 8] |= u8::from(set) << (7 - at % 8);
            at += 1;
        }
    }
    bytes
}

/// The fields of the header that `frame` begins with, and the rest; none if it is too short.
fn unpack<'a>(header: &ControllerPacketMetadata, frame: &'a [u8]) -> Option<(Vec<u128>, &'a [u8])> {
    let bits: u32 = header.metadata.iter().map(|field| field.bitwidth).sum();
    let (head, payload) = frame.split_at_checked((bits as usize).div_ceil(8))?;
    let mut at = 0;
    let field = |field: &p4lang::p4info::PacketMetadata| {
        let mut value = 0u128;
        for _ in 0..field.bitwidth {
            value = value << 1 | u128::from(head[at / 8] >> (7 - at % 8) & 1);
            at += 1;
        }
        value
    };
    Some((header.metadata.iter().map(field).collect(), payload))
}

#[cfg(test)]
mod tests {
    use super::*;
    use p4lang::p4info::PacketMetadata;

    fn header(widths: &[u32]) -> ControllerPacketMetadata {
        let field = |(&bitwidth, id)| PacketMetadata {
            id,
            name: format!("f{id}"),
            bitwidth,
            annotations: Vec::new(),
            type_name: None,
        };
        ControllerPacketMetadata {
            preamble: Default::default(),
            metadata: widths.iter().zip(1..).map(field).collect(),
        }
    }

    #[test]
    fn fields_are_packed_without_gaps() {
        let header = header(&[9, 7, 16]);
        let packed = pack(&header, &[0x1ff, 1, 0xbeef]);
        assert_eq!(packed, [0xff, 0x81, 0xbe, 0xef]);
        let frame = [packed.as_slice(), b"payload"].concat();
        assert_eq!(
            unpack(&header, &frame),
            Some((vec![0x1ff, 1, 0xbeef], &b"payload"[..]))
        );
    }

    #[test]
    fn an_odd_header_is_padded_and_a_short_frame_refused() {
        let header = header(&[9]);
        assert_eq!(pack(&header, &[1]), [0x00, 0x80]);
        assert_eq!(unpack(&header, &[0xff]), None);
    }
}
