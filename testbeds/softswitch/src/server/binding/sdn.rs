//! `@p4runtime_translation` with strings: maps a client's names to values (P4Runtime 1.4, sections 8.5.5 and 18.1).
//!
//! A name that is configured at the switch's start (a port's) has its number; a decimal number means itself; any other
//! name gets the highest free value when it is first written, and keeps it. Reads and deletions do not assign values.

use p4lang::runtime::Value;
use p4rt::rpc::Code;
use p4rt::status::{UpdateError, excerpt};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of names that one translation remembers.
const NAMES: usize = 65_536;
/// Maximum length of a name in bytes: the switch keeps each name for as long as it runs.
const NAME_BYTES: usize = 1024;

/// How to handle a client's name to which no value is assigned yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) enum NewName {
    /// Assign a free value to the name.
    Named,
    /// Report that the object with this name does not exist.
    Unknown,
}

/// All translations of names to values, by URI. Clones share them: names keep their values when the program changes.
#[derive(Debug, Clone, Default)]
pub(in crate::server) struct Sdn {
    ports: Arc<BTreeMap<Arc<str>, Value>>,
    by_uri: Arc<Mutex<BTreeMap<String, Names>>>,
}

#[derive(Debug, Clone, Default)]
struct Names {
    values: BTreeMap<Arc<str>, Value>,
    names: BTreeMap<Value, Arc<str>>,
    /// For each width in bits, how many of its highest values were assigned to names. Names are never released.
    named: BTreeMap<u32, usize>,
}

impl Sdn {
    /// Creates the translations, with the names and numbers of the switch's ports.
    pub(in crate::server) fn new(ports: impl IntoIterator<Item = (String, u32)>) -> Self {
        let ports = ports
            .into_iter()
            .map(|(name, port)| (name.into(), u128::from(port).into()));
        Self {
            ports: Arc::new(ports.collect()),
            by_uri: Arc::default(),
        }
    }

    fn with<R>(&self, uri: &str, work: impl FnOnce(&mut Names) -> R) -> R {
        let mut by_uri = self.by_uri.lock().unwrap_or_else(PoisonError::into_inner);
        let names = by_uri.entry(uri.to_owned()).or_insert_with(|| {
            let ports = if uri.to_ascii_lowercase().contains("port") {
                (*self.ports).clone()
            } else {
                BTreeMap::new()
            };
            Names {
                names: ports.iter().map(|(n, v)| (v.clone(), n.clone())).collect(),
                values: ports,
                named: BTreeMap::new(),
            }
        });
        work(names)
    }

    /// The value of a client's name in a field of `width` bits. `new`: what to do if the name has no value yet.
    pub(super) fn value(
        &self,
        uri: &str,
        text: &[u8],
        width: u32,
        new: NewName,
    ) -> Result<Value, UpdateError> {
        let text = match std::str::from_utf8(text) {
            Ok("") => return Err(UpdateError::new(Code::OutOfRange, "the string is empty")),
            Ok(text) => text,
            Err(_) => return Err(super::invalid("the string is not UTF-8")),
        };
        self.with(uri, |names| names.value(text, width, new))
    }

    /// The client's name for a value, or the decimal number if it has none.
    pub(super) fn text(&self, uri: &str, value: &Value) -> Vec<u8> {
        let name = self.with(uri, |names| names.names.get(value).cloned());
        name.map_or_else(|| value.to_string(), |name| name.to_string())
            .into_bytes()
    }
}

impl Names {
    fn value(&mut self, text: &str, width: u32, new: NewName) -> Result<Value, UpdateError> {
        let too_wide = || {
            let message = format!("the value of `{}` exceeds {width} bits", excerpt(text));
            UpdateError::new(Code::OutOfRange, message)
        };
        if let Some(value) = self.values.get(text) {
            let fits = value.fits(width);
            return fits.then(|| value.clone()).ok_or_else(too_wide);
        }
        let number = match is_number(text) {
            // Checked before the text is converted to a number, which takes time quadratic in its digits.
            true if text.len() > digits(width) => return Err(too_wide()),
            true => Value::from_str_radix(text, 10),
            false if text.len() > NAME_BYTES => {
                let (name, bytes) = (excerpt(text), text.len());
                return Err(super::invalid(format!(
                    "the name `{name}` has {bytes} bytes; the maximum is {NAME_BYTES}"
                )));
            }
            false => None,
        };
        if let Some(number) = &number {
            if !number.fits(width) {
                return Err(too_wide());
            }
            if let Some(name) = self.names.get(number) {
                let name = excerpt(name);
                return Err(super::invalid(format!("{number} has a name: use `{name}`")));
            }
        }
        if new == NewName::Unknown {
            return number.ok_or_else(super::no_entry);
        }
        if self.values.len() >= NAMES {
            let message = format!("all {NAMES} names are in use");
            return Err(UpdateError::new(Code::ResourceExhausted, message));
        }
        let value = match number {
            Some(number) => number,
            None => self.highest_free(width).ok_or_else(|| {
                let message = format!("all values of {width} bits have names");
                UpdateError::new(Code::ResourceExhausted, message)
            })?,
        };
        let name: Arc<str> = text.into();
        self.values.insert(Arc::clone(&name), value.clone());
        self.names.insert(value.clone(), name);
        Ok(value)
    }

    /// The highest value of `width` bits to which no name is assigned; `None`: all values have names.
    fn highest_free(&mut self, width: u32) -> Option<Value> {
        let named = self.named.entry(width).or_default();
        let highest = Value::ones(width);
        loop {
            let mut limbs = highest.limbs().to_vec();
            // All bits are set, and there are fewer names than values of a word, so no borrow occurs.
            limbs[0] = limbs[0].checked_sub(*named as u64)?;
            let value = Value::from_limbs(&limbs);
            if !self.names.contains_key(&value) {
                return Some(value);
            }
            *named += 1;
        }
    }
}

/// Whether a name is a decimal number without leading zeros, which means itself.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'))
}

/// Number of decimal digits of the highest value of `width` bits, or one more.
fn digits(width: u32) -> usize {
    // log₁₀ 2 = 0.30102…
    (u64::from(width) * 30_103 / 100_000) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_values_and_numbers_are_themselves() {
        let sdn = Sdn::new([("eth0".to_owned(), 4)]);
        let port = |text: &str| {
            sdn.value("a/PortId_t", text.as_bytes(), 9, NewName::Named)
                .map_err(|e| e.code)
        };
        assert_eq!(port("eth0"), Ok(4.into()));
        assert_eq!(port("7"), Ok(7.into()));
        assert_eq!(port("uplink"), Ok(511.into()));
        assert_eq!(
            port("511"),
            Err(Code::InvalidArgument),
            "that is the uplink"
        );
        assert_eq!(port("510"), Ok(510.into()));
        assert_eq!(port("other"), Ok(509.into()));
        assert_eq!(port("uplink"), Ok(511.into()));
        assert_eq!(port("512"), Err(Code::OutOfRange));
        assert_eq!(port(""), Err(Code::OutOfRange));
        assert_eq!(sdn.text("a/PortId_t", &511.into()), b"uplink");
        assert_eq!(sdn.text("a/PortId_t", &3.into()), b"3");
        let vrf = |text: &str| sdn.value("vrf", text.as_bytes(), 1, NewName::Named);
        assert_eq!(vrf("eth0"), Ok(1.into()), "not a port");
        assert_eq!(vrf("x"), Ok(0.into()));
        assert_eq!(vrf("y").unwrap_err().code, Code::ResourceExhausted);
        let wide = |text: &str| sdn.value("tunnel", text.as_bytes(), 200, NewName::Named);
        assert_eq!(wide("x"), Ok(Value::ones(200)));
        assert_eq!(wide("y").map(|v| v.to_be_bytes()[24]), Ok(0xfe));
        let number = Value::prefix(200, 3);
        assert_eq!(wide(&number.to_string()), Ok(number));
    }

    fn named(width: u32) -> impl Fn(&str) -> Result<Value, UpdateError> {
        let sdn = Sdn::default();
        move |text| sdn.value("u", text.as_bytes(), width, NewName::Named)
    }

    #[test]
    fn lookups_do_not_assign_names() {
        let sdn = Sdn::default();
        let look = |text: &str| sdn.value("u", text.as_bytes(), 8, NewName::Unknown);
        assert_eq!(look("x").unwrap_err(), super::super::no_entry());
        assert_eq!(look("255"), Ok(255.into()), "nor is it a name now");
        let name = |text: &str| sdn.value("u", text.as_bytes(), 8, NewName::Named);
        assert_eq!(name("y"), Ok(255.into()));
        assert_eq!(look("y"), Ok(255.into()));
        assert_eq!(look("255").unwrap_err().code, Code::InvalidArgument);
        assert_eq!(look("256").unwrap_err().code, Code::OutOfRange);
    }

    #[test]
    fn the_highest_number_of_each_width_is_one_and_the_next_is_not() {
        for width in 1..=2048 {
            let value = named(width);
            let highest = Value::ones(width);
            assert_eq!(value(&highest.to_string()), Ok(highest), "{width}");
            let beyond = Value::prefix(width + 1, 1).to_string();
            assert_eq!(beyond.len(), digits(width), "{width}");
            assert_eq!(value(&beyond).unwrap_err().code, Code::OutOfRange);
        }
        // With leading zeros, it is a name.
        assert_eq!(named(8)("007"), Ok(255.into()));
    }

    /// The time for a client's number must not be quadratic in its length.
    #[test]
    fn numbers_that_cannot_fit_are_refused_unread_and_unechoed() {
        let value = named(100);
        for bytes in [32, 1_000_000] {
            let error = value(&"9".repeat(bytes)).unwrap_err();
            assert_eq!(error.code, Code::OutOfRange);
            assert!(error.message.len() < 100, "{}", error.message);
        }
        // Ten million digits would take minutes.
        assert!(value(&"9".repeat(10_000_000)).is_err());
        let error = value(&"ä".repeat(513)).unwrap_err();
        assert_eq!(error.code, Code::InvalidArgument);
        assert_eq!(
            error.message,
            format!(
                "the name `{}…` has 1026 bytes; the maximum is 1024",
                "ä".repeat(40)
            )
        );
        assert_eq!(value(&"ä".repeat(512)), Ok(Value::ones(100)));
    }

    /// If each search started from the top, this would take hours.
    #[test]
    fn all_names_are_given_values_one_below_the_other() {
        let value = named(200);
        for n in 0..NAMES as u64 {
            let given = value(&format!("name {n}")).unwrap();
            assert_eq!(given.limb(0), u64::MAX - n);
        }
        let full = value("one more").unwrap_err();
        assert_eq!(full.code, Code::ResourceExhausted);
        assert_eq!(
            value("name 7").unwrap().limb(0),
            u64::MAX - 7,
            "the others stay"
        );
    }
}
