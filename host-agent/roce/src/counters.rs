//! Counters, under established names: rxe's in `/sys/class/infiniband/*/ports/1/hw_counters`, otherwise mlx5's.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters of a queue pair, or of a whole endpoint.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Names and values, in the order of declaration.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// Adds the values of another set of counters.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Packets sent (rxe).
    sent_pkts,
    /// Packets received for a queue pair (rxe).
    rcvd_pkts,
    /// Requests received again (rxe).
    duplicate_request,
    /// Requests after a gap; only the first after each gap counts, as in rxe.
    out_of_seq_request,
    /// RNR NAKs received (rxe).
    rcvd_rnr_err,
    /// RNR NAKs sent (rxe).
    send_rnr_err,
    /// NAKs "PSN sequence error" received (rxe).
    rcvd_seq_err,
    /// ACKs that were merged into a later one (rxe: deferred).
    ack_deferred,
    /// Work requests that failed with `RetryExceeded` (rxe).
    retry_exceeded_err,
    /// Work requests that failed with `RnrRetryExceeded` (rxe).
    retry_rnr_exceeded_err,
    /// Times that a requester went back and retransmitted: timeouts, NAKs, gaps in READ responses (rxe).
    completer_retry_err,
    /// Packets that could not be built because the local region is invalid (rxe).
    send_err,
    /// Always 0: an endpoint does not see the link (rxe).
    link_downed,
    /// Messages sent and acknowledged; on UC: sent (rxe).
    rdma_sends,
    /// Messages received: SENDs and WRITEs with immediate (rxe).
    rdma_recvs,
    /// Timeouts of the transport timer (mlx5).
    local_ack_timeout_err,
    /// Gaps in READ responses (mlx5).
    implied_nak_seq_err,
    /// Requests refused for an invalid key, address or access (mlx5).
    resp_remote_access_errors,
    /// Requests refused as invalid (mlx5: `req_remote_invalid_request` counts them at the other end).
    resp_remote_invalid_request,
    /// READ requests accepted (mlx5).
    rx_read_requests,
    /// WRITE messages begun (mlx5).
    rx_write_requests,
    /// Packets received with CE (mlx5).
    np_ecn_marked_roce_packets,
    /// CNPs sent (mlx5: `np_cnp_sent`).
    cnp_sent,
    /// CNPs received (mlx5: `rp_cnp_handled`).
    cnp_handled,
    /// Packets with a wrong ICRC (mlx5: `rx_icrc_encapsulated`).
    icrc_errors,
    /// Packets whose headers are not RoCEv2's, or use a feature that is not supported here.
    malformed,
    /// Packets for a queue pair that does not exist.
    unknown_qp,
    /// Packets for a queue pair from an address that is not its peer's.
    stranger,
    /// Packets of another partition.
    pkey_violations,
    /// Packets received in a state that accepts none, or with an opcode of the other transport service.
    wrong_state,
    /// Packets with a PSN that the connection has not reached, or responses to nothing: from another generation, or late.
    ghost_pkts,
    /// Packets whose length the MTU does not allow.
    mtu_violations,
    /// UC: packets dropped because of a gap, a missing receive, or a refusal.
    uc_dropped_pkts,
    /// Replies dropped because the responder's queue was full.
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
