//! Client of torch's `TCPStore` for servers of both protocol generations: the store that `torchrun` provides to its processes.
//!
//! A request is a byte followed by its content; numbers have 8 bytes in the machine's byte order, and texts follow their length.
//!
//! | request | content | answer |
//! |---|---|---|
//! | compare-set | a key, the expected value, the new value | the current value |
//! | get | a key | the value |
//! | check | a number of keys, the keys | a byte: 0 if all exist, 1 if not |
//! | number of keys | | a number |
//!
//! Since torch 2.1 a connection begins with a byte 0 and a magic number, and all other requests have numbers higher by one.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::tcp::reach;
use super::{MOST, Store, StoreError};

/// Request numbers of the protocol's first generation (before torch 2.1).
const COMPARE_SET: u8 = 1;
const GET: u8 = 2;
const CHECK: u8 = 4;
const NUMBER_OF_KEYS: u8 = 6;

/// Request number and magic number that begin a connection in the second generation (since torch 2.1).
const VALIDATE: u8 = 0;
const MAGIC: u32 = 0x3C85_F7CE;
/// Number of "number of keys" requests that follow the greeting, so that a server of the first generation notices: it takes the
/// 0 for "set", and all bytes that follow for the length of a key. It cannot allocate so much, and closes the connection.
const ASKED_FIRST: usize = 4;

/// Prefix of all keys of torch's own clients.
const PREFIX: &str = "/";

/// Store of texts in torch's `TCPStore`.
pub struct TorchStore {
    address: SocketAddr,
    stream: TcpStream,
    /// Number that is added to request numbers: 1 if the server speaks the protocol's second generation, 0 if the first.
    added: u8,
    prefix: String,
}

impl TorchStore {
    /// Connects to the `TCPStore` at this address, tries for at most `patience`, and waits as long for a reply. All names begin
    /// with `prefix`, which differs for each group of ranks.
    ///
    /// # Errors
    /// [`StoreError`], if no server answers, or it does not speak this protocol.
    pub fn open(address: SocketAddr, prefix: &str, patience: Duration) -> Result<Self, StoreError> {
        let gone = |source| StoreError::Gone { address, source };
        let mut store = Self {
            address,
            stream: reach(address, patience).map_err(gone)?,
            added: 1,
            prefix: format!("{PREFIX}{prefix}/"),
        };
        match store.greet() {
            Ok(()) => return Ok(store),
            Err(error) if has_ended(&error) => {}
            Err(error) => return Err(gone(error)),
        }
        store.added = 0;
        store.stream = reach(address, patience).map_err(gone)?;
        match store.ask(NUMBER_OF_KEYS, &[]).and_then(|()| store.number()) {
            Ok(_) => Ok(store),
            Err(_) => Err(StoreError::Strange(address)),
        }
    }

    /// Sends the greeting of the protocol's second generation; fails if the server is of the first and closes the connection.
    fn greet(&mut self) -> io::Result<()> {
        let magic = MAGIC.to_ne_bytes();
        let asked = [NUMBER_OF_KEYS + self.added; ASKED_FIRST];
        self.stream
            .write_all(&[&[VALIDATE], &magic[..], &asked].concat())?;
        for _ in asked {
            self.number()?;
        }
        Ok(())
    }

    fn ask(&mut self, request: u8, what: &[u8]) -> io::Result<()> {
        self.stream
            .write_all(&[&[request + self.added], what].concat())
    }

    fn number(&mut self) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.stream.read_exact(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Reads a text in a reply; `None` if it exceeds the maximum length.
    fn text(&mut self) -> io::Result<Option<String>> {
        let len = usize::try_from(self.number()?)
            .ok()
            .filter(|len| *len <= MOST);
        let Some(len) = len else { return Ok(None) };
        let mut bytes = vec![0; len];
        self.stream.read_exact(&mut bytes)?;
        let text = String::from_utf8(bytes);
        text.map(Some)
            .map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn key(&self, name: &str) -> Vec<u8> {
        with_length(&format!("{}{name}", self.prefix))
    }

    fn is_there(&mut self, name: &str) -> io::Result<bool> {
        let keys = [&1u64.to_ne_bytes()[..], &self.key(name)].concat();
        self.ask(CHECK, &keys)?;
        let mut answer = [0];
        self.stream.read_exact(&mut answer)?;
        match answer {
            [0] => Ok(true),
            [1] => Ok(false),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn gone<T>(&self, result: io::Result<T>) -> Result<T, StoreError> {
        let address = self.address;
        result.map_err(|source| StoreError::Gone { address, source })
    }

    fn too_long(&self, name: &str) -> StoreError {
        StoreError::TooLong(self.place(name))
    }
}

/// Whether the error says that the server has closed the connection.
fn has_ended(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

/// Encodes a text: its length in 8 bytes, and its bytes.
fn with_length(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_ne_bytes(), text.as_bytes()].concat()
}

impl Store for TorchStore {
    fn publish(&mut self, name: &str, text: &str) -> Result<(), StoreError> {
        if text.len() > MOST {
            return Err(self.too_long(name));
        }
        let is_there = self.is_there(name);
        if self.gone(is_there)? {
            return Err(StoreError::Taken(self.place(name)));
        }
        // With an empty expected value, the key is set only if it does not exist; the second publisher reads the first one's
        // text.
        let what = [self.key(name), with_length(""), with_length(text)].concat();
        let now = self.ask(COMPARE_SET, &what).and_then(|()| self.text());
        match self.gone(now)? {
            Some(now) if now == text => Ok(()),
            _ => Err(StoreError::Taken(self.place(name))),
        }
    }

    fn read(&mut self, name: &str) -> Result<Option<String>, StoreError> {
        let is_there = self.is_there(name);
        if !self.gone(is_there)? {
            return Ok(None);
        }
        let key = self.key(name);
        let text = self.ask(GET, &key).and_then(|()| self.text());
        match self.gone(text)? {
            Some(text) => Ok(Some(text)),
            None => Err(self.too_long(name)),
        }
    }

    fn place(&self, name: &str) -> String {
        format!("{}{name} at {}", self.prefix, self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::{Ipv4Addr, TcpListener};
    use std::process::{Child, Command, Stdio};

    /// Interpreter of Debian's PyTorch package.
    const PYTHON: &str = "/usr/bin/python3";
    const PATIENCE: Duration = Duration::from_secs(20);

    struct Ends(Child);

    impl Drop for Ends {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// The installed torch's own server, and a client that sets `theirs` and, on request, prints the value at `ours`: torch
    /// 1.13 does not wake clients that wait for a key set by compare-set.
    const SERVER: &str = r#"
import torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, None, True)
print(store.port, flush=True)
store.set("runs/1/theirs", "set by torch")
input()
print(store.get("runs/1/ours").decode(), flush=True)
input()
"#;

    #[test]
    fn torchs_store_keeps_the_ranks_texts() {
        let test = "torchs_store_keeps_the_ranks_texts";
        let has_torch = Command::new(PYTHON).args(["-c", "import torch"]).output();
        if !has_torch.is_ok_and(|output| output.status.success()) {
            return test_support::skip(test, "python3-torch");
        }
        let mut python = Command::new(PYTHON);
        python.args(["-c", SERVER]);
        python.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut python = Ends(python.spawn().unwrap());
        let mut lines = BufReader::new(python.0.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let address = (Ipv4Addr::LOCALHOST, port).into();
        let open = || TorchStore::open(address, "runs/1", PATIENCE).unwrap();
        let (mut one, mut other) = (open(), open());
        assert_eq!(one.read("ours").unwrap(), None);
        let long = "x".repeat(100_000);
        one.publish("ours", &long).unwrap();
        python.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        assert!(lines.next().unwrap().is_ok_and(|heard| heard == long));
        assert_eq!(other.read("ours").unwrap(), Some(long));
        assert_eq!(
            other.read("theirs").unwrap().as_deref(),
            Some("set by torch")
        );
        for (store, text) in [(&mut one, "again"), (&mut other, "mine")] {
            let taken = store.publish("ours", text);
            assert!(matches!(taken, Err(StoreError::Taken(_))), "{taken:?}");
        }
        // Another group has other names.
        let mut second = TorchStore::open(address, "runs/2", PATIENCE).unwrap();
        assert_eq!(second.read("ours").unwrap(), None);
        second.publish("ours", "").unwrap();
        assert_eq!(second.read("ours").unwrap().as_deref(), Some(""));
        drop(python);
        let gone = one.read("theirs");
        assert!(matches!(gone, Err(StoreError::Gone { .. })), "{gone:?}");
    }

    fn number(stream: &mut TcpStream) -> io::Result<usize> {
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes) as usize)
    }

    fn texts<const N: usize>(stream: &mut TcpStream) -> io::Result<[Vec<u8>; N]> {
        let mut texts = [const { Vec::new() }; N];
        for text in &mut texts {
            text.resize(number(stream)?, 0);
            stream.read_exact(text)?;
        }
        Ok(texts)
    }

    /// A server of the second generation: it begins with the magic number, and its requests are numbered one higher.
    fn second_generation(listener: &TcpListener) -> io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let mut head = [0; 5];
        stream.read_exact(&mut head)?;
        assert_eq!(head, [0, 0xCE, 0xF7, 0x85, 0x3C]);
        let key = b"/job/rank-0".to_vec();
        let mut kept: Option<Vec<u8>> = None;
        loop {
            let mut request = [0];
            stream.read_exact(&mut request)?;
            let answer = match request {
                [2] => {
                    let [asked, expected, text] = texts(&mut stream)?;
                    assert_eq!((asked, expected), (key.clone(), vec![]));
                    Some(kept.get_or_insert(text).clone())
                }
                [3] => {
                    let [asked] = texts(&mut stream)?;
                    assert_eq!(asked, key);
                    kept.clone()
                }
                [5] => {
                    assert_eq!(number(&mut stream)?, 1);
                    let [asked] = texts(&mut stream)?;
                    assert_eq!(asked, key);
                    stream.write_all(&[u8::from(kept.is_none())])?;
                    None
                }
                [7] => {
                    stream.write_all(&3u64.to_le_bytes())?;
                    None
                }
                other => panic!("request {other:?}"),
            };
            if let Some(text) = answer {
                stream.write_all(&(text.len() as u64).to_le_bytes())?;
                stream.write_all(&text)?;
            }
        }
    }

    #[test]
    fn a_server_of_torch_2_is_spoken_to_as_it_wants() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || second_generation(&listener));
        let mut store = TorchStore::open(address, "job", PATIENCE).unwrap();
        assert_eq!(store.read("rank-0").unwrap(), None);
        store.publish("rank-0", "keys").unwrap();
        assert_eq!(store.read("rank-0").unwrap().as_deref(), Some("keys"));
        assert!(store.publish("rank-0", "others").is_err());
        drop(store);
        let ended = server.join().unwrap().unwrap_err();
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn another_server_than_a_store_is_an_error() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            for _ in 0..2 {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.write_all(b"SSH");
            }
        });
        let strange = TorchStore::open(address, "job", PATIENCE).err();
        assert!(
            matches!(strange, Some(StoreError::Strange(_))),
            "{strange:?}"
        );
        server.join().unwrap();
    }
}
