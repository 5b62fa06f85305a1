//! The netlink message that puts a token bucket filter (sch_tbf) at the root of an interface.
//!
//! The netlink crates do not support this filter, so this module lays its options out, as in linux/pkt_sched.h. All are
//! in the byte order of the machine.

use rtnetlink::packet_core::DefaultNla;
use rtnetlink::packet_route::tc::{TcAttribute, TcHandle, TcMessage, TcOption};

use super::Rate;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;

/// Link layer type of Ethernet. Without a link layer type, the kernel would require a table of transmission times.
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// Netlink message (RTM_NEWQDISC) that limits the interface with this index to `rate`.
pub(super) fn message(index: u32, rate: Rate) -> TcMessage {
    let bytes_per_second = (rate.rate_bps / 8).max(1);
    let mut options = vec![TcOption::Other(DefaultNla::new(
        TCA_TBF_PARMS,
        parameters(bytes_per_second, rate),
    ))];
    if u32::try_from(bytes_per_second).is_err() {
        options.push(TcOption::Other(DefaultNla::new(
            TCA_TBF_RATE64,
            bytes_per_second.to_ne_bytes().to_vec(),
        )));
    }
    // In bytes; it overrides the `buffer` of the parameters, which counts ticks.
    options.push(TcOption::Other(DefaultNla::new(
        TCA_TBF_BURST,
        rate.burst_bytes.to_ne_bytes().to_vec(),
    )));

    let mut message = TcMessage::with_index(index as i32);
    message.header.parent = TcHandle::ROOT;
    message.attributes.push(TcAttribute::Kind("tbf".into()));
    message.attributes.push(TcAttribute::Options(options));
    message
}

/// Bytes of `struct tc_tbf_qopt`: rate and peak rate (`struct tc_ratespec` each), limit, buffer, mtu.
fn parameters(bytes_per_second: u64, rate: Rate) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(36);
    bytes.extend(rate_spec(
        TC_LINKLAYER_ETHERNET,
        u32::try_from(bytes_per_second).unwrap_or(u32::MAX),
    ));
    bytes.extend(rate_spec(0, 0));
    bytes.extend(rate.limit_bytes.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes
}

/// Bytes of `struct tc_ratespec`: cell_log, linklayer, overhead, cell_align, mpu, rate.
fn rate_spec(link_layer: u8, bytes_per_second: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[1] = link_layer;
    bytes[8..].copy_from_slice(&bytes_per_second.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(rate_bps: u64) -> Vec<TcOption> {
        let message = message(
            3,
            Rate {
                rate_bps,
                burst_bytes: 10_000,
                limit_bytes: 90_000,
            },
        );
        match message.attributes.into_iter().next_back() {
            Some(TcAttribute::Options(options)) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn lays_the_parameters_out() {
        let bytes = parameters(
            1_250_000,
            Rate {
                rate_bps: 0,
                burst_bytes: 0,
                limit_bytes: 90_000,
            },
        );
        assert_eq!(bytes.len(), 36);
        assert_eq!(bytes[8..12], 1_250_000_u32.to_ne_bytes());
        assert_eq!(bytes[24..28], 90_000_u32.to_ne_bytes());
    }

    #[test]
    fn a_rate_over_32_bits_goes_into_its_own_attribute() {
        assert_eq!(options(10_000_000).len(), 2);
        assert_eq!(options(100_000_000_000).len(), 3);
    }
}
