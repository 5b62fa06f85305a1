//! Digest lists (P4Runtime 1.4, section 9.8): collects digest messages, decides when to send a list, suppresses
//! duplicates. Pure: time is an argument, lists are returned as values.

use super::MESSAGE_BYTES;
use p4lang::runtime::Value;
use p4rt::rpc::Code;
use p4rt::status::{UpdateError, UpdateResult};
use p4rt::v1;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use v1::update::Type;

/// Maximum number of digest messages per list if the client sets no limit.
const LIST_LIMIT: usize = 1024;
/// Maximum number of messages of one digest that wait for an acknowledgement; beyond it, the switch forgets the oldest
/// list, and may send its messages again.
const UNACKNOWLEDGED: usize = 65_536;
/// Maximum size in bytes of the messages of one digest that wait for an acknowledgement.
const UNACKNOWLEDGED_BYTES: usize = 32 << 20;

/// How the messages of a digest are collected in lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DigestConfig {
    max_timeout_ns: u64,
    /// Maximum number of messages in a list; 0: the client sets no limit.
    max_list_size: usize,
    ack_timeout_ns: u64,
}

impl DigestConfig {
    pub(super) fn new(config: &v1::digest_entry::Config) -> Result<Self, UpdateError> {
        let negative = |_| UpdateError::new(Code::InvalidArgument, "a digest's config is negative");
        Ok(Self {
            max_timeout_ns: u64::try_from(config.max_timeout_ns).map_err(negative)?,
            max_list_size: usize::try_from(config.max_list_size).map_err(negative)?,
            ack_timeout_ns: u64::try_from(config.ack_timeout_ns).map_err(negative)?,
        })
    }

    pub(super) fn to_proto(self) -> v1::digest_entry::Config {
        v1::digest_entry::Config {
            max_timeout_ns: self.max_timeout_ns.cast_signed(),
            max_list_size: i32::try_from(self.max_list_size).unwrap_or(i32::MAX),
            ack_timeout_ns: self.ack_timeout_ns.cast_signed(),
        }
    }

    fn list_size(&self) -> usize {
        match self.max_list_size {
            // A list is sent with its first message if no message may wait.
            _ if self.max_timeout_ns == 0 => 1,
            0 => LIST_LIMIT,
            size => size.min(LIST_LIMIT),
        }
    }
}

/// Configuration of the enabled digests, by digest id.
pub(super) type Configs = BTreeMap<u32, DigestConfig>;

/// Enables, changes or disables a digest, as a client's update of its digest entry requests.
pub(super) fn configure(
    configs: &mut Configs,
    kind: Type,
    id: u32,
    config: DigestConfig,
) -> UpdateResult {
    let error = |code, message: &str| Err(UpdateError::new(code, message));
    match (kind, configs.contains_key(&id)) {
        (Type::Insert, true) => return error(Code::AlreadyExists, "the digest is on"),
        (Type::Modify | Type::Delete, false) => return error(Code::NotFound, "the digest is off"),
        (Type::Delete, true) => configs.remove(&id),
        _ => configs.insert(id, config),
    };
    Ok(())
}

/// A digest list to send to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    pub(super) digest: u32,
    pub(super) id: u64,
    /// The digest messages of the list, each with its fields.
    pub(super) messages: Vec<Message>,
}

/// The messages and lists of all digests of a program.
#[derive(Debug, Default)]
pub(super) struct Digests {
    configs: Configs,
    buffers: BTreeMap<u32, Buffer>,
    next_list: u64,
}

/// The fields of a digest message.
type Message = Arc<[Value]>;

#[derive(Debug, Default)]
struct Buffer {
    /// Messages of the next list, in order of arrival.
    messages: Vec<Message>,
    bytes: usize,
    first_ns: u64,
    /// Messages of the next list and of unacknowledged lists, to suppress duplicates.
    known: BTreeSet<Message>,
    sent: VecDeque<Sent>,
    remembered: usize,
    remembered_bytes: usize,
}

/// A list that was sent and that no client has acknowledged.
#[derive(Debug)]
struct Sent {
    id: u64,
    at_ns: u64,
    messages: Vec<Message>,
    bytes: usize,
}

/// Approximate size of a digest message in bytes, both in memory and on the wire.
fn size(message: &[Value]) -> usize {
    let bytes = message.iter().map(|value| value.bits() as usize / 8);
    bytes.sum::<usize>() + size_of_val(message)
}

impl Digests {
    pub(super) fn configs(&self) -> &Configs {
        &self.configs
    }

    /// Replaces the configuration of all digests; collected messages of disabled digests are dropped.
    pub(super) fn set_configs(&mut self, configs: Configs) {
        self.buffers.retain(|id, _| configs.contains_key(id));
        self.configs = configs;
    }

    /// Adds a digest message of the program; returns a list if one is now full.
    pub(super) fn message(&mut self, now_ns: u64, digest: u32, fields: Vec<Value>) -> Option<List> {
        let config = *self.configs.get(&digest)?;
        let buffer = self.buffers.entry(digest).or_default();
        buffer.forget(now_ns, config.ack_timeout_ns);
        let message = Message::from(fields);
        if !buffer.known.insert(Arc::clone(&message)) {
            return None;
        }
        if buffer.messages.is_empty() {
            buffer.first_ns = now_ns;
        }
        buffer.bytes += size(&message);
        buffer.messages.push(message);
        if buffer.messages.len() < config.list_size() && buffer.bytes < MESSAGE_BYTES {
            return None;
        }
        self.list(now_ns, digest)
    }

    /// Handles a client's acknowledgement of a digest list.
    pub(super) fn acknowledge(&mut self, digest: u32, list: u64) {
        if let Some(buffer) = self.buffers.get_mut(&digest)
            && let Some(at) = buffer.sent.iter().position(|sent| sent.id == list)
        {
            buffer.remove(at);
        }
    }

    /// Takes a list whose messages have waited for the maximum time; `None`: there is none.
    pub(super) fn due(&mut self, now_ns: u64) -> Option<List> {
        let due = |(id, buffer): (&u32, &Buffer)| {
            let at = self.due_ns(*id, buffer)?;
            (at <= now_ns).then_some(*id)
        };
        let digest = self.buffers.iter().find_map(due)?;
        self.list(now_ns, digest)
    }

    /// Time in nanoseconds at which [`Self::due`] next returns a list; `None`: no message waits.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let due = |(id, buffer): (&u32, &Buffer)| self.due_ns(*id, buffer);
        self.buffers.iter().filter_map(due).min()
    }

    fn due_ns(&self, digest: u32, buffer: &Buffer) -> Option<u64> {
        let config = self.configs.get(&digest)?;
        let waiting = !buffer.messages.is_empty();
        waiting.then(|| buffer.first_ns.saturating_add(config.max_timeout_ns))
    }

    fn list(&mut self, now_ns: u64, digest: u32) -> Option<List> {
        let config = self.configs.get(&digest)?;
        let buffer = self.buffers.get_mut(&digest)?;
        self.next_list += 1;
        let id = self.next_list;
        let messages = std::mem::take(&mut buffer.messages);
        let bytes = std::mem::take(&mut buffer.bytes);
        buffer.remembered += messages.len();
        buffer.remembered_bytes += bytes;
        buffer.sent.push_back(Sent {
            id,
            at_ns: now_ns,
            messages: messages.clone(),
            bytes,
        });
        buffer.forget(now_ns, config.ack_timeout_ns);
        while buffer.remembered > UNACKNOWLEDGED || buffer.remembered_bytes > UNACKNOWLEDGED_BYTES {
            buffer.remove(0);
        }
        Some(List {
            digest,
            id,
            messages,
        })
    }
}

impl Buffer {
    /// Forgets the lists that no client acknowledged within `ack_timeout_ns`.
    fn forget(&mut self, now_ns: u64, ack_timeout_ns: u64) {
        while let Some(sent) = self.sent.front()
            && now_ns.saturating_sub(sent.at_ns) >= ack_timeout_ns
        {
            self.remove(0);
        }
    }

    fn remove(&mut self, at: usize) {
        if let Some(sent) = self.sent.remove(at) {
            self.remembered -= sent.messages.len();
            self.remembered_bytes -= sent.bytes;
            for message in &sent.messages {
                self.known.remove(message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(max_timeout_ns: u64, max_list_size: usize, ack_timeout_ns: u64) -> Digests {
        let config = DigestConfig {
            max_timeout_ns,
            max_list_size,
            ack_timeout_ns,
        };
        let mut digests = Digests::default();
        let mut configs = Configs::new();
        configure(&mut configs, Type::Insert, 1, config).unwrap();
        digests.set_configs(configs);
        digests
    }

    fn messages(list: Option<List>) -> Option<Vec<Value>> {
        list.map(|list| list.messages.concat())
    }

    #[test]
    fn a_list_is_sent_when_it_is_full_or_old() {
        let mut digests = digests(100, 3, 0);
        assert_eq!(digests.message(0, 1, vec![1.into()]), None);
        assert_eq!(digests.message(5, 1, vec![1.into()]), None, "known");
        assert_eq!(digests.message(5, 1, vec![2.into()]), None);
        assert_eq!(
            messages(digests.message(6, 1, vec![3.into()])),
            Some(vec![1.into(), 2.into(), 3.into()])
        );
        assert_eq!(digests.next_ns(), None);
        assert_eq!(
            digests.message(10, 1, vec![1.into()]),
            None,
            "forgotten at once"
        );
        assert_eq!(digests.next_ns(), Some(110));
        assert_eq!(digests.due(109), None);
        assert_eq!(messages(digests.due(110)), Some(vec![1.into()]));
        assert_eq!(digests.message(0, 2, vec![1.into()]), None, "off");
    }

    #[test]
    fn unacknowledged_messages_are_not_repeated() {
        let mut digests = digests(0, 0, 50);
        let first = digests.message(0, 1, vec![1.into()]).unwrap();
        assert_eq!(digests.message(10, 1, vec![1.into()]), None);
        digests.acknowledge(1, first.id + 1);
        assert_eq!(digests.message(11, 1, vec![1.into()]), None, "another list");
        digests.acknowledge(1, first.id);
        let second = digests.message(12, 1, vec![1.into()]).unwrap();
        assert!(second.id > first.id);
        assert_eq!(digests.message(61, 1, vec![1.into()]), None);
        assert!(
            digests.message(62, 1, vec![1.into()]).is_some(),
            "too long ago"
        );
    }

    #[test]
    fn a_digest_is_switched_on_changed_and_switched_off() {
        let mut configs = Configs::new();
        let mut apply = |kind| {
            let result = configure(&mut configs, kind, 7, DigestConfig::default());
            result.map_err(|error| error.code)
        };
        assert_eq!(apply(Type::Modify), Err(Code::NotFound));
        assert_eq!(apply(Type::Insert), Ok(()));
        assert_eq!(apply(Type::Insert), Err(Code::AlreadyExists));
        assert_eq!(apply(Type::Modify), Ok(()));
        assert_eq!(apply(Type::Delete), Ok(()));
        assert_eq!(apply(Type::Delete), Err(Code::NotFound));
    }

    #[test]
    fn memory_of_unacknowledged_messages_is_bounded() {
        let mut digests = digests(0, 1, u64::MAX);
        for value in 0..=UNACKNOWLEDGED as u128 {
            assert!(digests.message(0, 1, vec![value.into()]).is_some());
        }
        assert_eq!(digests.message(0, 1, vec![1.into()]), None, "remembered");
        assert!(
            digests.message(0, 1, vec![0.into()]).is_some(),
            "the oldest is not"
        );
    }

    fn wide(tag: u128) -> Vec<Value> {
        let mut fields = vec![Value::ones(2048); 40];
        fields.push(tag.into());
        fields
    }

    #[test]
    fn wide_messages_are_sent_in_short_lists() {
        let mut digests = digests(u64::MAX, 0, 0);
        let lists = (0..300).filter_map(|tag| digests.message(0, 1, wide(tag)));
        let sizes: Vec<usize> = lists.map(|list| list.messages.len()).collect();
        assert_eq!(sizes, [94, 94, 94], "of 40 × 280 + 24 bytes");
    }

    #[test]
    fn memory_of_unacknowledged_wide_messages_is_bounded() {
        let mut digests = digests(0, 1, u64::MAX);
        for tag in 0..4000 {
            assert!(digests.message(0, 1, wide(tag)).is_some());
        }
        let buffer = &digests.buffers[&1];
        assert!(buffer.remembered < 3500, "{}", buffer.remembered);
        assert_eq!(buffer.known.len(), buffer.remembered);
        assert!(digests.message(0, 1, wide(0)).is_some(), "forgotten");
        assert_eq!(digests.message(0, 1, wide(3999)), None, "remembered");
    }
}
