//! Keeps the output of a user's program: its end in memory, its beginning in files; and each line is passed to a listener.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of bytes from the end of each output stream that are kept in memory.
const TAIL_BYTES: usize = 16 << 10;
/// Number of bytes from the beginning of each output stream that are written to its file.
const FILE_BYTES: u64 = 64 << 20;
/// Maximum length of an output line in bytes; a longer line comes in pieces.
const LINE_BYTES: usize = 64 << 10;

/// An output stream of a program: standard output or standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Standard output and standard error.
    pub const BOTH: [Stream; 2] = [Stream::Stdout, Stream::Stderr];

    /// Name of the stream in file names and JSON: `stdout` or `stderr`.
    pub fn word(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// End of a stream's output, and its total length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StreamTail {
    /// End of the stream's output, as text.
    pub tail: String,
    /// Total number of bytes that the program has written to the stream.
    pub bytes: u64,
}

type Listener = Box<dyn FnMut(Stream, &str) + Send>;

/// Output of a command so far, of all its runs together.
pub struct CommandOutput(Mutex<State>);

struct State {
    tails: [VecDeque<u8>; 2],
    bytes: [u64; 2],
    files: [Option<File>; 2],
    listener: Listener,
}

impl fmt::Debug for CommandOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandOutput").finish_non_exhaustive()
    }
}

impl CommandOutput {
    /// Creates an output without text. `listener` gets each line without its line end. If `folder` is given,
    /// `NAME.stdout` and `NAME.stderr` in it are overwritten.
    pub fn new(name: &str, folder: Option<&Path>, listener: Listener) -> io::Result<CommandOutput> {
        let file = |stream: Stream| {
            let folder = folder?;
            Some(File::create(
                folder.join(format!("{name}.{}", stream.word())),
            ))
        };
        let [stdout, stderr] = Stream::BOTH.map(file);
        Ok(CommandOutput(Mutex::new(State {
            tails: Default::default(),
            bytes: [0; 2],
            files: [stdout.transpose()?, stderr.transpose()?],
            listener,
        })))
    }

    /// End of a stream's output, and its total length.
    pub fn kept(&self, stream: Stream) -> StreamTail {
        let mut state = self.lock();
        let bytes = state.bytes[stream as usize];
        let tail = state.tails[stream as usize].make_contiguous();
        StreamTail {
            tail: String::from_utf8_lossy(tail).into_owned(),
            bytes,
        }
    }

    /// The last `lines` non-empty lines of the standard error, or of the standard output if the standard error has none.
    pub fn last_words(&self, lines: usize) -> Option<String> {
        let streams = [Stream::Stderr, Stream::Stdout];
        streams.into_iter().find_map(|stream| {
            let tail = self.kept(stream).tail;
            let said: Vec<&str> = tail
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
                .collect();
            let first = said.len().saturating_sub(lines);
            (!said.is_empty()).then(|| said[first..].join("\n"))
        })
    }

    /// Collects the output of one run of the command on a stream.
    pub(super) fn lines(&self, stream: Stream) -> Lines<'_> {
        Lines {
            output: self,
            stream,
            line: Vec::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits the output of a stream into lines.
pub(super) struct Lines<'a> {
    output: &'a CommandOutput,
    stream: Stream,
    line: Vec<u8>,
}

impl Lines<'_> {
    pub fn take(&mut self, bytes: &[u8]) {
        let mut state = self.output.lock();
        state.keep(self.stream, bytes);
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(piece) => {
                    self.line.extend(piece);
                    state.show(self.stream, &mut self.line);
                }
                None => self.line.extend(piece),
            }
            if self.line.len() >= LINE_BYTES {
                state.show(self.stream, &mut self.line);
            }
        }
    }

    /// Passes on the last line, which may lack a line end.
    pub fn end(&mut self) {
        if !self.line.is_empty() {
            self.output.lock().show(self.stream, &mut self.line);
        }
    }
}

impl State {
    fn keep(&mut self, stream: Stream, bytes: &[u8]) {
        let index = stream as usize;
        let tail = &mut self.tails[index];
        tail.extend(bytes);
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
        if let Some(file) = &mut self.files[index] {
            let left = FILE_BYTES.saturating_sub(self.bytes[index]);
            let part = bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            if file.write_all(&bytes[..part]).is_err() {
                // A full disk does not end the run; the end of the output is still in the report.
                self.files[index] = None;
            }
        }
        self.bytes[index] += bytes.len() as u64;
    }

    fn show(&mut self, stream: Stream, line: &mut Vec<u8>) {
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        (self.listener)(stream, &String::from_utf8_lossy(line));
        line.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn lines_are_shown_whole_however_they_come() -> io::Result<()> {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let shown = Arc::clone(&seen);
        let listener = move |stream: Stream, line: &str| {
            let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.push(format!("{} {line}", stream.word()));
        };
        let output = CommandOutput::new("x", None, Box::new(listener))?;
        let (mut out, mut err) = (output.lines(Stream::Stdout), output.lines(Stream::Stderr));
        out.take(b"one\ntw");
        err.take(b"oh\r\n\n");
        out.take(b"o\nthree");
        out.take(&vec![b'x'; LINE_BYTES]);
        out.end();
        err.end();
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let shown: Vec<&str> = seen
            .iter()
            .map(|line| &line[..line.len().min(12)])
            .collect();
        let expected = [
            "stdout one",
            "stderr oh",
            "stderr ",
            "stdout two",
            "stdout three",
        ];
        assert_eq!(shown, expected);
        assert_eq!(output.last_words(1).as_deref(), Some("oh"));
        Ok(())
    }

    #[test]
    fn kept_output_is_limited() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let output = CommandOutput::new("x", Some(folder.path()), Box::new(|_, _| {}))?;
        let mut out = output.lines(Stream::Stdout);
        for _ in 0..20 {
            out.take(&[b'a'; 1000]);
        }
        out.take(b"the end\n");
        let kept = output.kept(Stream::Stdout);
        assert_eq!((kept.tail.len(), kept.bytes), (TAIL_BYTES, 20_008));
        assert!(kept.tail.ends_with("the end\n"));
        let written = std::fs::read(folder.path().join("x.stdout"))?;
        assert_eq!(written.len(), 20_008);
        assert_eq!(
            output.last_words(3).map(|words| words.len()),
            Some(TAIL_BYTES - 1)
        );
        Ok(())
    }
}
