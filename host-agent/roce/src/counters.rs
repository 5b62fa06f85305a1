//! Counters of RoCEv2 traffic with established names: those of the kernel's rxe driver (`hw_counters` in sysfs), else mlx5's.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Packet and error counters of a queue pair, or of a whole endpoint.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Name and value of each counter, in the order of declaration.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// Adds each value of `other` to the counter of the same name.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Packets sent (counter name of rxe).
    sent_pkts,
    /// Packets received for a queue pair (counter name of rxe).
    rcvd_pkts,
    /// Requests received a second time (rxe).
    duplicate_request,
    /// Requests with a PSN after a gap; only the first request after each gap counts, as in rxe.
    out_of_seq_request,
    /// NAKs "receiver not ready" (RNR) received (rxe).
    rcvd_rnr_err,
    /// NAKs "receiver not ready" (RNR) sent (rxe).
    send_rnr_err,
    /// NAKs "PSN sequence error" received (rxe).
    rcvd_seq_err,
    /// ACKs that were not sent because a later ACK replaced them (rxe: deferred).
    ack_deferred,
    /// Work requests that failed because the peer did not respond to any retransmission (rxe).
    retry_exceeded_err,
    /// Work requests that failed because the peer still had no receive posted at the last retry (rxe).
    retry_rnr_exceeded_err,
    /// Times that a requester retransmitted from an earlier PSN on: timeouts, NAKs, gaps in READ responses (rxe).
    completer_retry_err,
    /// Packets that could not be built because the local region is invalid (rxe).
    send_err,
    /// Times that the link went down (rxe): always 0, as an endpoint does not see the link.
    link_downed,
    /// SEND and WRITE messages sent and acknowledged; on an unreliable connection: sent (rxe).
    rdma_sends,
    /// Messages received: SENDs and WRITEs with immediate (rxe).
    rdma_recvs,
    /// Timeouts of the timer that waits for ACKs (mlx5).
    local_ack_timeout_err,
    /// Gaps in the PSNs of READ responses, each an implied NAK (mlx5).
    implied_nak_seq_err,
    /// Peer's requests refused for an invalid key, address or access (mlx5).
    resp_remote_access_errors,
    /// Peer's requests refused as invalid (mlx5: `req_remote_invalid_request` counts them at the peer).
    resp_remote_invalid_request,
    /// READ requests accepted from peers (mlx5).
    rx_read_requests,
    /// WRITE messages of which the first packet was received (mlx5).
    rx_write_requests,
    /// Packets received with the ECN mark CE (mlx5).
    np_ecn_marked_roce_packets,
    /// Congestion notification packets (CNPs) sent (mlx5: `np_cnp_sent`).
    cnp_sent,
    /// Congestion notification packets (CNPs) received (mlx5: `rp_cnp_handled`).
    cnp_handled,
    /// Packets received with a wrong ICRC (mlx5: `rx_icrc_encapsulated`).
    icrc_errors,
    /// Received packets whose headers are not RoCEv2's, or use a feature that this crate does not support.
    malformed,
    /// Received packets for a queue pair that does not exist.
    unknown_qp,
    /// Received packets for a queue pair from an address that is not its peer's.
    stranger,
    /// Received packets with the partition key of another partition.
    pkey_violations,
    /// Packets received in a queue pair state that accepts none, or with an opcode of the other transport service.
    wrong_state,
    /// Received packets with a PSN that the connection has not reached, and responses to no request: stale or late packets.
    ghost_pkts,
    /// Received packets whose length does not fit the path MTU.
    mtu_violations,
    /// Received packets that an unreliable connection dropped because of a gap, a missing receive, or a refusal.
    uc_dropped_pkts,
    /// ACKs and READ responses that were not sent because the responder's reply queue was full.
    reply_overflows,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_add_by_name() {
        let mut sum = Counters {
            sent_pkts: 1,
            ..Counters::default()
        };
        sum.add(&Counters {
            sent_pkts: 2,
            cnp_sent: 3,
            ..Counters::default()
        });
        let set: Vec<_> = sum.iter().filter(|(_, value)| *value != 0).collect();
        assert_eq!(set, [("sent_pkts", 3), ("cnp_sent", 3)]);
    }
}
