//! A Thrift connection to a BMv2 switch: sends a call, and waits for its answer before it sends the next one.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use ::thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType,
    TOutputProtocol,
};
use ::thrift::transport::{
    ReadHalf, TBufferedReadTransport, TBufferedWriteTransport, TIoChannel, TTcpChannel, WriteHalf,
};

use super::refusal::{Family, Refusal};
use super::value::Value;

/// Interval between two attempts to connect to the switch.
const RETRY: Duration = Duration::from_millis(20);

/// Why a Thrift call to a switch failed. Every variant names the switch's address.
#[derive(Debug, thiserror::Error)]
pub enum ThriftError {
    /// No switch listens at the address.
    #[error("no switch answers Thrift at {address} (tried for {} s): {source}", .waited.as_secs_f64())]
    Connect {
        /// Address of the switch, `host:port`.
        address: SocketAddr,
        /// How long weir tried to connect to the switch.
        waited: Duration,
        /// Error of the last attempt to connect.
        source: io::Error,
    },
    /// The connection broke, the answer did not come in time, or it was invalid.
    #[error("the switch at {address} did not answer {call}: {reason}")]
    Exchange {
        /// Address of the switch, `host:port`.
        address: SocketAddr,
        /// The failed call, `service:method`.
        call: String,
        /// Text that describes the failure.
        reason: String,
    },
    /// The switch does not know the Thrift service or method, or it had an internal error.
    #[error("the switch at {address} cannot carry out {call}: {message}")]
    Application {
        /// Address of the switch, `host:port`.
        address: SocketAddr,
        /// The failed call, `service:method`.
        call: String,
        /// The error message of the switch.
        message: String,
    },
    /// The switch refused the call, and gave a reason.
    #[error("the switch at {address} refused {call}: {refusal}")]
    Refused {
        /// Address of the switch, `host:port`.
        address: SocketAddr,
        /// The refused call, `service:method`.
        call: String,
        /// The switch's reason for the refusal.
        refusal: Refusal,
    },
}

/// A Thrift connection to a switch. After any error but a refusal by the switch, it cannot be used any more.
pub struct Connection {
    address: SocketAddr,
    input: TBinaryInputProtocol<TBufferedReadTransport<ReadHalf<TTcpChannel>>>,
    output: TBinaryOutputProtocol<TBufferedWriteTransport<WriteHalf<TTcpChannel>>>,
    sequence: i32,
}

impl Connection {
    /// Connects to a switch, which may still be starting. `timeout` limits this wait, and the wait for each answer.
    pub fn open(address: SocketAddr, timeout: Duration) -> Result<Connection, ThriftError> {
        let start = Instant::now();
        let stream = loop {
            let left = timeout.saturating_sub(start.elapsed());
            match TcpStream::connect_timeout(&address, left.max(RETRY)) {
                Ok(stream) => break stream,
                Err(source) if left.is_zero() => {
                    let waited = start.elapsed();
                    return Err(ThriftError::Connect {
                        address,
                        waited,
                        source,
                    });
                }
                Err(_) => std::thread::sleep(RETRY.min(left)),
            }
        };
        let connect = |source| ThriftError::Connect {
            address,
            waited: start.elapsed(),
            source,
        };
        stream.set_nodelay(true).map_err(connect)?;
        stream.set_read_timeout(Some(timeout)).map_err(connect)?;
        stream.set_write_timeout(Some(timeout)).map_err(connect)?;
        let halves = TTcpChannel::with_stream(stream).split();
        let (read, write) = halves.map_err(|error| connect(io::Error::other(error)))?;
        Ok(Connection {
            address,
            input: TBinaryInputProtocol::new(TBufferedReadTransport::new(read), true),
            output: TBinaryOutputProtocol::new(TBufferedWriteTransport::new(write), true),
            sequence: 0,
        })
    }

    /// Address of the switch, `host:port`.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Calls a Thrift method, and returns its result; `None` for a method without a result. `refusals`: family of the error
    /// codes with which the switch may refuse this call.
    pub fn call(
        &mut self,
        service: &str,
        method: &str,
        arguments: Vec<(i16, Value)>,
        refusals: Family,
    ) -> Result<Option<Value>, ThriftError> {
        // Thrift's multiplexing puts the service's name before the method's.
        let call = format!("{service}:{method}");
        let address = self.address;
        let broken = |reason: String| ThriftError::Exchange {
            address,
            call: call.clone(),
            reason,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let sent = self.send(&call, &Value::Struct(arguments));
        sent.map_err(|error| broken(describe(&error)))?;
        let (kind, sequence, answer) = self.receive().map_err(|error| broken(describe(&error)))?;
        if sequence != self.sequence {
            let expected = self.sequence;
            let reason = format!("answer {sequence} came where {expected} was expected");
            return Err(broken(reason));
        }
        match kind {
            TMessageType::Exception => Err(ThriftError::Application {
                address,
                message: application_message(&answer),
                call,
            }),
            TMessageType::Reply => {
                let Value::Struct(fields) = answer else {
                    return Ok(None);
                };
                match fields.into_iter().next() {
                    None => Ok(None),
                    Some((0, result)) => Ok(Some(result)),
                    // Each method declares one exception, with a code in its first field.
                    Some((_, exception)) => {
                        let code = exception.field(1).and_then(Value::i32).unwrap_or(0);
                        Err(ThriftError::Refused {
                            address,
                            call,
                            refusal: Refusal::new(refusals, code),
                        })
                    }
                }
            }
            other => Err(broken(format!("a message of type {other:?} came"))),
        }
    }

    fn send(&mut self, call: &str, arguments: &Value) -> ::thrift::Result<()> {
        let output = &mut self.output;
        let message = TMessageIdentifier::new(call, TMessageType::Call, self.sequence);
        output.write_message_begin(&message)?;
        arguments.write(output)?;
        output.write_message_end()?;
        output.flush()
    }

    fn receive(&mut self) -> ::thrift::Result<(TMessageType, i32, Value)> {
        let message = self.input.read_message_begin()?;
        let answer = Value::read_struct(&mut self.input)?;
        self.input.read_message_end()?;
        Ok((message.message_type, message.sequence_number, answer))
    }
}

/// Text of a Thrift error, without the kind of error with which the Thrift crate begins it.
fn describe(error: &::thrift::Error) -> String {
    match error {
        ::thrift::Error::Transport(error) => error.message.clone(),
        ::thrift::Error::Protocol(error) => error.message.clone(),
        ::thrift::Error::Application(error) => error.message.clone(),
        ::thrift::Error::User(error) => error.to_string(),
    }
}

/// Formats a `TApplicationException` from a switch: its message and its type.
fn application_message(exception: &Value) -> String {
    let message = exception.field(1).and_then(Value::text).unwrap_or("");
    match (message, exception.field(2).and_then(Value::i32)) {
        ("", Some(kind)) => format!("it gives no reason (type {kind})"),
        ("", None) => "it gives no reason".to_owned(),
        (message, _) => message.to_owned(),
    }
}
