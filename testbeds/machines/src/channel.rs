//! The connection by which a test sends commands to a virtual machine (to init.sh there) and receives their results.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of bytes that a machine sends of each output stream of a command; it cuts off the rest.
pub const OUTPUT_LIMIT: usize = 1 << 20;
/// Maximum length of the first line of a machine's reply, in bytes.
const LINE_LIMIT: u64 = 4096;

/// Result of a command that ran in a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Exit status as in a shell: 128 plus the signal's number if a signal ended the command.
    pub status: u8,
    /// Standard output, cut after [`OUTPUT_LIMIT`] bytes.
    pub stdout: String,
    /// Standard error, cut after [`OUTPUT_LIMIT`] bytes.
    pub stderr: String,
}

impl Output {
    /// Whether the command succeeded (status 0).
    pub fn is_success(&self) -> bool {
        self.status == 0
    }
}

/// Receivers of the running commands' results, by command number; `None` once the machine sends no more replies.
type Waiting = Arc<Mutex<Option<BTreeMap<u64, SyncSender<Output>>>>>;

/// The test's end of the connection to a virtual machine.
pub(crate) struct Channel {
    writer: Mutex<(UnixStream, u64)>,
    waiting: Waiting,
    greeting: Receiver<String>,
    reader: Option<std::thread::JoinHandle<()>>,
}

/// A command that runs in a virtual machine.
pub(crate) struct Ticket {
    pub(crate) id: u64,
    pub(crate) ended: Receiver<Output>,
}

impl Channel {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        let waiting: Waiting = Arc::new(Mutex::new(Some(BTreeMap::new())));
        let (greet, greeting) = sync_channel(1);
        let (input, answers) = (stream.try_clone()?, waiting.clone());
        let reader = std::thread::Builder::new()
            .name("machine".to_owned())
            .spawn(move || {
                // No reply follows, whatever the reason. Dropping the senders wakes all waiting callers.
                let _ = read(BufReader::new(input), &greet, &answers);
                *lock(&answers) = None;
            })?;
        Ok(Self {
            writer: Mutex::new((stream, 0)),
            waiting,
            greeting,
            reader: Some(reader),
        })
    }

    /// The first line that the machine sends: "ready", or the boot step that failed.
    pub(crate) fn greeting(&self, limit: Duration) -> Result<String, RecvTimeoutError> {
        self.greeting.recv_timeout(limit)
    }

    /// Starts a shell command in the machine.
    pub(crate) fn start(&self, command: &str) -> io::Result<Ticket> {
        let mut writer = lock(&self.writer);
        writer.1 += 1;
        let id = writer.1;
        // For one reply.
        let (sender, ended) = sync_channel(1);
        let mut waiting = lock(&self.waiting);
        let waiting = waiting.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        waiting.insert(id, sender);
        let head = format!("run {id} {} {OUTPUT_LIMIT}\n", command.len());
        writer.0.write_all((head + command).as_bytes())?;
        Ok(Ticket { id, ended })
    }

    /// Kills the command with this number and all processes of its session.
    pub(crate) fn end(&self, id: u64) -> io::Result<()> {
        lock(&self.writer)
            .0
            .write_all(format!("end {id}\n").as_bytes())
    }

    /// Closes the connection and waits for the thread that reads it, after the machine has ended.
    pub(crate) fn close(&mut self) {
        let _ = lock(&self.writer).0.shutdown(std::net::Shutdown::Both);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read(mut input: impl BufRead, greet: &SyncSender<String>, waiting: &Waiting) -> io::Result<()> {
    let _ = greet.send(line(&mut input)?);
    loop {
        let line = line(&mut input)?;
        let numbers = line.strip_prefix("done ").map(|numbers| {
            let numbers = numbers.split(' ').map(str::parse);
            numbers.collect::<Result<Vec<u64>, _>>()
        });
        let Some(Ok(numbers)) = numbers else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let &[id, status, out, err] = &*numbers else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let output = Output {
            status: status.try_into().unwrap_or(u8::MAX),
            stdout: text(&mut input, out)?,
            stderr: text(&mut input, err)?,
        };
        let sender = lock(waiting).as_mut().and_then(|of| of.remove(&id));
        if let Some(sender) = sender {
            // The caller may have stopped waiting.
            let _ = sender.send(output);
        }
    }
}

fn line(input: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    input.take(LINE_LIMIT).read_line(&mut line)?;
    match line.pop() {
        Some('\n') => Ok(line),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn text(input: &mut impl Read, length: u64) -> io::Result<String> {
    if length > OUTPUT_LIMIT as u64 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    fn pair() -> (Channel, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        (Channel::new(ours).expect("a thread"), theirs)
    }

    #[test]
    fn answers_come_in_any_order_and_keep_their_bytes() -> io::Result<()> {
        let (mut channel, mut machine) = pair();
        machine.write_all(b"ready\n")?;
        assert_eq!(channel.greeting(SOON).as_deref(), Ok("ready"));
        let (one, two) = (channel.start("first")?, channel.start("second\nline")?);
        channel.end(one.id)?;
        let expected = b"run 1 5 1048576\nfirstrun 2 11 1048576\nsecond\nlineend 1\n";
        let mut asked = vec![0; expected.len()];
        machine.read_exact(&mut asked)?;
        assert_eq!(asked, expected);
        machine.write_all(b"done 2 3 2 1\na\n!done 1 137 0 0\n")?;
        let of = |ticket: Ticket| ticket.ended.recv_timeout(SOON).expect("an answer");
        let output = |status, stdout: &str, stderr: &str| Output {
            status,
            stdout: stdout.to_owned(),
            stderr: stderr.to_owned(),
        };
        assert_eq!(of(one), output(137, "", ""));
        assert_eq!(of(two), output(3, "a\n", "!"));
        channel.close();
        Ok(())
    }

    #[test]
    fn a_machine_that_ends_or_errs_wakes_all_callers() -> io::Result<()> {
        for last in [
            &b""[..],
            b"done 1 0 9999999 0\n",
            b"done 1 0\n",
            b"what\n",
            b"done 1 0 5 0\nab",
        ] {
            let (channel, mut machine) = pair();
            machine.write_all(b"ready\n")?;
            let ticket = channel.start("true")?;
            machine.write_all(last)?;
            drop(machine);
            assert!(ticket.ended.recv_timeout(SOON).is_err(), "{last:?}");
            assert!(channel.start("true").is_err());
        }
        let (channel, machine) = pair();
        drop(machine);
        assert_eq!(channel.greeting(SOON), Err(RecvTimeoutError::Disconnected));
        Ok(())
    }
}
