//! Counters, under the names that others know: rxe's in `/sys/class/infiniband/*/ports/1/hw_counters`, else mlx5's.

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What a queue pair, or a whole endpoint, has counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Names and values, in the order of declaration.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// Adds another's.
            pub fn add(&mut self, other: &Self) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counters! {
    /// Packets sent (rxe).
    sent_pkts,
    /// Packets taken in for a queue pair (rxe).
    rcvd_pkts,
    /// Requests that had been taken before (rxe).
    duplicate_request,
    /// Requests after a gap (rxe counts the first after each gap, as is done here).
    out_of_seq_request,
    /// RNR NAKs received (rxe).
    rcvd_rnr_err,
    /// RNR NAKs sent (rxe).
    send_rnr_err,
    /// NAKs "PSN sequence error" received (rxe).
    rcvd_seq_err,
    /// ACKs that were merged into a later one (rxe: put off).
    ack_deferred,
    /// Work that ended as `RetryExceeded` (rxe).
    retry_exceeded_err,
    /// Work that ended as `RnrRetryExceeded` (rxe).
    retry_rnr_exceeded_err,
    /// Times that a requester went back and sent again: time-outs, NAKs, gaps in READ responses (rxe).
    completer_retry_err,
    /// Packets that could not be made because the local region is wrong (rxe).
    send_err,
    /// Always 0: an endpoint sees no link (rxe).
    link_downed,
    /// Messages sent and acknowledged; on UC: sent (rxe).
    rdma_sends,
    /// Messages received: SENDs and WRITEs with immediate (rxe).
    rdma_recvs,
    /// Time-outs of the transport timer (mlx5).
    local_ack_timeout_err,
    /// Gaps in READ responses (mlx5).
    implied_nak_seq_err,
    /// Requests refused for their key, address or right (mlx5).
    resp_remote_access_errors,
    /// Requests refused as invalid (mlx5: `req_remote_invalid_request` counts them at the other end).
    resp_remote_invalid_request,
    /// READ requests taken (mlx5).
    rx_read_requests,
    /// WRITE messages begun (mlx5).
    rx_write_requests,
    /// Packets that came with CE (mlx5).
    np_ecn_marked_roce_packets,
    /// CNPs sent (mlx5: `np_cnp_sent`).
    cnp_sent,
    /// CNPs received (mlx5: `rp_cnp_handled`).
    cnp_handled,
    /// Packets with a wrong ICRC (mlx5: `rx_icrc_encapsulated`).
    icrc_errors,
    /// Packets whose headers are not RoCEv2's, or none that is here.
    malformed,
    /// Packets for a queue pair that does not exist.
    unknown_qp,
    /// Packets for a queue pair from somebody who is not its peer.
    stranger,
    /// Packets of another partition.
    pkey_violations,
    /// Packets that came in a state that takes none, or for the other transport service.
    wrong_state,
    /// Packets whose PSN the connection has not reached, or answers to nothing: of another life, or late.
    ghost_pkts,
    /// Packets whose length the MTU does not allow.
    mtu_violations,
    /// UC: packets dropped because of a gap, or because no receive was posted, or as refused.
    uc_dropped_pkts,
    /// Replies for which the responder's queue had no room.
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
