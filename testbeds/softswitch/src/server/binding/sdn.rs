//! `@p4runtime_translation` with strings: which value a client's name stands for (P4Runtime 1.4, sections 8.5.5 and 18.1).
//!
//! A name that the switch was started with (a port's) has its number; a decimal number stands for itself; any other name is
//! given the highest value that is free when it is first written, and keeps it.

use p4lang::runtime::Value;
use p4rt::rpc::Code;
use p4rt::status::UpdateError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Names of one translation.
const NAMES: usize = 65_536;

/// All translations by URI. Clones share them: names keep their values when the program changes.
#[derive(Debug, Clone, Default)]
pub(in crate::server) struct Sdn {
    ports: Arc<BTreeMap<String, Value>>,
    by_uri: Arc<Mutex<BTreeMap<String, Names>>>,
}

#[derive(Debug, Clone, Default)]
struct Names {
    values: BTreeMap<String, Value>,
    names: BTreeMap<Value, String>,
}

impl Sdn {
    /// With the names of the switch's ports.
    pub(in crate::server) fn new(ports: impl IntoIterator<Item = (String, u32)>) -> Self {
        let ports = ports
            .into_iter()
            .map(|(name, port)| (name, u128::from(port).into()));
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
            }
        });
        work(names)
    }

    /// The value of a client's string in a field of `width` bits.
    pub(super) fn value(&self, uri: &str, text: &[u8], width: u32) -> Result<Value, UpdateError> {
        let text = match std::str::from_utf8(text) {
            Ok("") => return Err(UpdateError::new(Code::OutOfRange, "the string is empty")),
            Ok(text) => text,
            Err(_) => return Err(super::invalid("the string is not UTF-8")),
        };
        self.with(uri, |names| names.value(text, width))
    }

    /// What a client calls the value.
    pub(super) fn text(&self, uri: &str, value: &Value) -> Vec<u8> {
        let name = self.with(uri, |names| names.names.get(value).cloned());
        name.unwrap_or_else(|| value.to_string()).into_bytes()
    }
}

impl Names {
    fn value(&mut self, text: &str, width: u32) -> Result<Value, UpdateError> {
        let too_wide = || {
            let message = format!("`{text}` has no value of {width} bits");
            UpdateError::new(Code::OutOfRange, message)
        };
        if let Some(value) = self.values.get(text) {
            let fits = value.fits(width);
            return fits.then(|| value.clone()).ok_or_else(too_wide);
        }
        if self.values.len() >= NAMES {
            let message = format!("{NAMES} names are in use");
            return Err(UpdateError::new(Code::ResourceExhausted, message));
        }
        let number = Value::from_str_radix(text, 10).filter(|n| n.to_string() == text);
        let value = match number {
            Some(number) if !number.fits(width) => return Err(too_wide()),
            Some(number) if self.names.contains_key(&number) => {
                let name = &self.names[&number];
                return Err(super::invalid(format!("{number} is called `{name}`")));
            }
            Some(number) => number,
            None => {
                let mut highest = highest(width);
                let free = highest.find(|v| !self.names.contains_key(v));
                free.ok_or_else(|| {
                    let message = format!("all values of {width} bits have names");
                    UpdateError::new(Code::ResourceExhausted, message)
                })?
            }
        };
        self.values.insert(text.to_owned(), value.clone());
        self.names.insert(value.clone(), text.to_owned());
        Ok(value)
    }
}

/// Values of `width` bits, the highest first: as many as there can be names.
fn highest(width: u32) -> impl Iterator<Item = Value> {
    let most = Value::ones(width);
    (0..=NAMES as u64).map_while(move |less| {
        let mut limbs = most.limbs().to_vec();
        // All its bits are set, so that nothing is borrowed from the next word.
        limbs[0] = limbs[0].checked_sub(less)?;
        Some(Value::from_limbs(&limbs))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_values_and_numbers_are_themselves() {
        let sdn = Sdn::new([("eth0".to_owned(), 4)]);
        let port = |text: &str| {
            sdn.value("a/PortId_t", text.as_bytes(), 9)
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
        assert_eq!(sdn.value("vrf", b"eth0", 1), Ok(1.into()), "not a port");
        assert_eq!(sdn.value("vrf", b"x", 1), Ok(0.into()));
        let full = sdn.value("vrf", b"y", 1).unwrap_err();
        assert_eq!(full.code, Code::ResourceExhausted);
        let wide = |text: &str| sdn.value("tunnel", text.as_bytes(), 200);
        assert_eq!(wide("x"), Ok(Value::ones(200)));
        assert_eq!(wide("y").map(|v| v.to_be_bytes()[24]), Ok(0xfe));
        let number = Value::prefix(200, 3);
        assert_eq!(wide(&number.to_string()), Ok(number));
    }
}
