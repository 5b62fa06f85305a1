//! A queue of messages for one client of the stream channel.

use p4rt::v1;
use prost::Message as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};
use tonic::Status;

/// Maximum number of messages that wait for one client. Further packets are dropped; if even a notice does not fit, the
/// client is disconnected.
const MESSAGES: usize = 1024;
/// Maximum encoded size of the messages that wait for one client, in bytes; in memory they take several times as much.
/// A message has at most [`MESSAGE_BYTES`](super::MESSAGE_BYTES).
const BYTES: usize = 16 << 20;

type Response = Result<v1::StreamMessageResponse, Status>;

/// The end of the queue to which the server sends messages.
#[derive(Clone)]
pub struct Outbox {
    messages: mpsc::Sender<(usize, Response)>,
    bytes: Arc<AtomicUsize>,
}

/// Creates the queue of a new client: the end to which the server sends, and the stream that the client reads.
pub fn open() -> (Outbox, impl Stream<Item = Response> + Send + 'static) {
    let (messages, taken) = mpsc::channel(MESSAGES);
    let bytes = Arc::new(AtomicUsize::new(0));
    let outbox = Outbox {
        messages,
        bytes: Arc::clone(&bytes),
    };
    let taken = ReceiverStream::new(taken).map(move |(length, response)| {
        bytes.fetch_sub(length, Ordering::Relaxed);
        response
    });
    (outbox, taken)
}

impl Outbox {
    /// Puts a message into the queue without waiting; false if it is full. For a disconnected client it returns true.
    pub fn send(&self, response: Response) -> bool {
        if self.messages.is_closed() {
            return true;
        }
        let length = response.as_ref().map_or(0, |r| r.encoded_len());
        if self.bytes.fetch_add(length, Ordering::Relaxed) + length > BYTES {
            self.bytes.fetch_sub(length, Ordering::Relaxed);
            return false;
        }
        match self.messages.try_send((length, response)) {
            Ok(()) => true,
            Err(error) => {
                self.bytes.fetch_sub(length, Ordering::Relaxed);
                matches!(error, mpsc::error::TrySendError::Closed(_))
            }
        }
    }

    /// Waits until the client stops reading.
    pub async fn closed(&self) {
        self.messages.closed().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(bytes: usize) -> Response {
        let packet = v1::PacketIn {
            payload: vec![0; bytes],
            ..Default::default()
        };
        let update = v1::stream_message_response::Update::Packet(packet);
        Ok(v1::StreamMessageResponse {
            update: Some(update),
        })
    }

    #[tokio::test]
    async fn neither_many_nor_large_messages_pile_up() {
        let (outbox, mut read) = open();
        let sent = (0..).take_while(|_| outbox.send(packet(64))).count();
        assert_eq!(sent, MESSAGES);
        for _ in 0..sent {
            assert!(read.next().await.is_some());
        }
        let sent = (0..).take_while(|_| outbox.send(packet(1 << 20))).count();
        assert_eq!(sent, 15, "a little more than a MiB each");
        assert!(outbox.send(packet(64)), "there is room for a small one");
        assert!(read.next().await.is_some());
        assert!(outbox.send(packet(1 << 20)));
        drop(read);
        assert!(outbox.send(packet(1 << 20)), "nobody waits for it");
    }
}
