//! Store of the ranks' texts in the memory of rank 0, which other ranks reach over TCP; for hosts without a common folder.
//!
//! | client | server |
//! |---|---|
//! | `publish NAME LENGTH`, the text | `done`, or `taken` |
//! | `look NAME` | `text LENGTH`, the text, or `none` |
//!
//! A line consists of words separated by spaces. Rank 0 keeps one text per name, up to a maximum number and length. It serves
//! at once as many clients as there are ranks, and a few more, in case other programs connect.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{MOST, Store, StoreError};

/// Maximum length of a protocol line in bytes: a word, a name, a length.
const LINE: u64 = 128;
/// Maximum number of texts that the store keeps per rank.
const NAMES_OF_RANK: usize = 4;
/// Number of clients that rank 0 serves at once in addition to one per rank.
const STRANGERS: usize = 16;
/// Interval of rank 0's polls for clients, and of clients' attempts to reach rank 0.
const LOOK: Duration = Duration::from_millis(5);

/// Store of texts in the memory of rank 0, over TCP.
pub struct TcpStore {
    address: SocketAddr,
    end: End,
}

enum End {
    /// At rank 0: the texts, and the flag that stops its server.
    Kept {
        kept: Kept,
        is_over: Arc<AtomicBool>,
    },
    /// At all other ranks: the connection to rank 0.
    Asked(BufReader<TcpStream>),
}

#[derive(Clone)]
struct Kept {
    texts: Arc<Mutex<BTreeMap<String, String>>>,
    most: usize,
}

impl TcpStore {
    /// Opens the store. Rank 0 listens at this address; the other ranks try for at most `patience` to connect, and wait as long
    /// for a reply. When rank 0 drops its store, no more clients are accepted; connected clients are served until they close
    /// the connection, or send nothing for `patience`.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn open(
        address: SocketAddr,
        rank: usize,
        ranks: usize,
        patience: Duration,
    ) -> Result<Self, StoreError> {
        match rank {
            0 => {
                let listen = |source| StoreError::Listen { address, source };
                let listener = TcpListener::bind(address).map_err(listen)?;
                listener.set_nonblocking(true).map_err(listen)?;
                let address = listener.local_addr().map_err(listen)?;
                let kept = Kept {
                    texts: Arc::default(),
                    most: ranks * NAMES_OF_RANK,
                };
                let is_over = Arc::new(AtomicBool::new(false));
                let (its, over) = (kept.clone(), Arc::clone(&is_over));
                std::thread::spawn(move || {
                    receive(&listener, &its, &over, ranks + STRANGERS, patience);
                });
                let end = End::Kept { kept, is_over };
                Ok(Self { address, end })
            }
            _ => {
                let gone = |source| StoreError::Gone { address, source };
                let stream = reach(address, patience).map_err(gone)?;
                let end = End::Asked(BufReader::new(stream));
                Ok(Self { address, end })
            }
        }
    }

    /// TCP address of rank 0's server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for TcpStore {
    fn drop(&mut self) {
        if let End::Kept { is_over, .. } = &self.end {
            is_over.store(true, Ordering::Relaxed);
        }
    }
}

impl Store for TcpStore {
    fn publish(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
        let address = self.address;
        let is_new = match &mut self.end {
            End::Kept { kept, .. } => kept.publish(name, text),
            End::Asked(stream) => {
                let head = format!("publish {name} {}\n", text.len());
                let told = ask(stream, &(head + text));
                match &*told.map_err(|source| StoreError::Gone { address, source })? {
                    "done" => true,
                    "taken" => false,
                    _ => return Err(StoreError::Strange(address)),
                }
            }
        };
        match is_new {
            true => Ok(()),
            false => Err(StoreError::Taken(self.place(name))),
        }
    }

    fn read(&mut self, name: &str) -> Result<Option<String>, StoreError> {
        let address = self.address;
        let gone = |source| StoreError::Gone { address, source };
        let stream = match &mut self.end {
            End::Kept { kept, .. } => return Ok(kept.read(name)),
            End::Asked(stream) => stream,
        };
        let told = ask(stream, &format!("look {name}\n")).map_err(gone)?;
        if told == "none" {
            return Ok(None);
        }
        let len = told.strip_prefix("text ").and_then(|len| len.parse().ok());
        let len = len.filter(|len| *len <= MOST);
        let text = text(stream, len.ok_or(StoreError::Strange(address))?);
        Ok(Some(text.map_err(gone)?))
    }

    fn place(&self, name: &str) -> String {
        format!("{name} at {}", self.address)
    }
}

impl Kept {
    /// Stores a text; returns false if the name has a text already, or the store is full.
    fn publish(&self, name: &str, text: &str) -> bool {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = !texts.contains_key(name) && texts.len() < self.most;
        if is_new {
            texts.insert(name.to_owned(), text.to_owned());
        }
        is_new
    }

    fn read(&self, name: &str) -> Option<String> {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.get(name).cloned()
    }
}

/// Connects to a server; retries for at most `patience` until the server listens.
pub(super) fn reach(address: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let deadline = Instant::now() + patience;
    let stream = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(LOOK)) {
            Ok(stream) => break stream,
            Err(_) if Instant::now() + LOOK < deadline => std::thread::sleep(LOOK),
            Err(error) => return Err(error),
        }
    };
    prepare(&stream, patience)?;
    Ok(stream)
}

fn prepare(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience.max(LOOK)))?;
    stream.set_write_timeout(Some(patience.max(LOOK)))
}

/// Server loop of rank 0: one thread per client, until it is stopped.
fn receive(
    listener: &TcpListener,
    kept: &Kept,
    is_over: &AtomicBool,
    most: usize,
    patience: Duration,
) {
    let there = Arc::new(AtomicUsize::new(0));
    while !is_over.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(LOOK);
            continue;
        };
        if there.load(Ordering::Relaxed) >= most {
            continue;
        }
        there.fetch_add(1, Ordering::Relaxed);
        let (kept, there) = (kept.clone(), Arc::clone(&there));
        std::thread::spawn(move || {
            // A client that violates the protocol is disconnected.
            let _ = serve(stream, &kept, patience);
            there.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn serve(stream: TcpStream, kept: &Kept, patience: Duration) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    prepare(&stream, patience)?;
    let mut stream = BufReader::new(stream);
    loop {
        let asked = line(&mut stream)?;
        let words: Vec<&str> = asked.split(' ').collect();
        let answer = match words[..] {
            ["publish", name, len] => {
                let len = len.parse().ok().filter(|len| *len <= MOST);
                let text = text(&mut stream, len.ok_or(io::ErrorKind::InvalidData)?)?;
                match kept.publish(name, &text) {
                    true => "done\n".to_owned(),
                    false => "taken\n".to_owned(),
                }
            }
            ["look", name] => match kept.read(name) {
                Some(text) => format!("text {}\n{text}", text.len()),
                None => "none\n".to_owned(),
            },
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        stream.get_mut().write_all(answer.as_bytes())?;
    }
}

/// Sends a request to rank 0, and returns the line of the reply.
fn ask(stream: &mut BufReader<TcpStream>, words: &str) -> io::Result<String> {
    stream.get_mut().write_all(words.as_bytes())?;
    line(stream)
}

fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    stream.take(LINE).read_line(&mut line)?;
    match line.pop() {
        Some('\n') => Ok(line),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn text(stream: &mut impl Read, len: usize) -> io::Result<String> {
    let mut bytes = vec![0; len];
    stream.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const PATIENCE: Duration = Duration::from_secs(10);

    fn store(rank: usize, address: SocketAddr, patience: Duration) -> TcpStore {
        TcpStore::open(address, rank, 2, patience).unwrap_or_else(|error| panic!("{error}"))
    }

    fn nowhere() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    #[test]
    fn a_published_text_is_read_by_the_other_rank() {
        let mut kept = store(0, nowhere(), PATIENCE);
        let mut asked = store(1, kept.address(), PATIENCE);
        assert_eq!(asked.read("rank-0").unwrap(), None);
        let long = "x\n".repeat(MOST / 2);
        kept.publish("rank-0", &long).unwrap();
        assert!(
            asked
                .read("rank-0")
                .unwrap()
                .is_some_and(|text| text == long)
        );
        asked.publish("rank-1", "").unwrap();
        assert_eq!(kept.read("rank-1").unwrap().as_deref(), Some(""));
        for taken in [asked.publish("rank-0", "y"), kept.publish("rank-1", "y")] {
            assert!(matches!(taken, Err(StoreError::Taken(_))), "{taken:?}");
        }
        // A client connected before rank 0's store was dropped still finds its texts.
        drop(kept);
        assert!(asked.read("rank-0").unwrap().is_some());
    }

    #[test]
    fn invalid_requests_end_only_their_own_connection() {
        let mut kept = store(0, nowhere(), PATIENCE);
        for words in [
            "GET / HTTP/1.1\r\n\r\n".to_owned(),
            format!("publish x {}\n", MOST + 1),
            "publish x -1\n".to_owned(),
            "look".repeat(LINE as usize),
        ] {
            let mut stranger = TcpStream::connect(kept.address()).unwrap();
            stranger.set_read_timeout(Some(PATIENCE)).unwrap();
            stranger.write_all(words.as_bytes()).unwrap();
            let mut told = String::new();
            // The connection is closed, possibly with a reset because of unread bytes.
            let _ = stranger.read_to_string(&mut told);
            assert_eq!(told, "", "{words}");
        }
        let mut asked = store(1, kept.address(), PATIENCE);
        for number in 0..2 * NAMES_OF_RANK {
            asked.publish(&format!("name-{number}"), "").unwrap();
        }
        let full = asked.publish("one-more", "");
        assert!(matches!(full, Err(StoreError::Taken(_))), "{full:?}");
        assert!(kept.publish("one-more", "").is_err());
    }

    #[test]
    fn no_server_or_another_server_is_an_error() {
        let free = TcpListener::bind(nowhere()).unwrap();
        let address = free.local_addr().unwrap();
        let taken = TcpStore::open(address, 0, 2, PATIENCE).err();
        assert!(
            matches!(taken, Some(StoreError::Listen { .. })),
            "{taken:?}"
        );
        let mut silent = store(1, address, Duration::from_millis(50));
        let gone = silent.read("rank-0");
        assert!(matches!(gone, Err(StoreError::Gone { .. })), "{gone:?}");
        drop(free);
        let nobody = TcpStore::open(address, 1, 2, Duration::from_millis(50)).err();
        assert!(
            matches!(nobody, Some(StoreError::Gone { .. })),
            "{nobody:?}"
        );
    }
}
