//! The responder of an unreliable connection (IBA 9.8.2): a message arrives completely or is discarded.
//!
//! ```text
//!              PSN = expected: take, expected + 1
//!             ┌──────────┐
//!             ▼          │      a gap, or refused, in a message   ┌──────────┐  MIDDLE, LAST: drop
//!          ┌─────────────┴──┐ ──────────────────────────────────▶ │ DROPPING │ ──┐
//!          │ IN SEQUENCE    │                                     └──────────┘ ◀─┘
//!          └────────────────┘ ◀──────────────────────────────────       │
//!                                FIRST, ONLY: expected = PSN + 1
//! ```

use super::Responder;
use crate::memory::Buffer;
use crate::packet::{Opcode, Packet};
use crate::qp::inbound::{Refused, Surroundings};

/// UC: a packet at most this many positions late is a duplicate. If it is later, it is the first after a long gap.
const LATE_COPIES: u64 = 1 << 12;

impl Responder {
    pub(super) fn handle_unreliable<B: Buffer>(
        &mut self,
        packet: &Packet<'_>,
        around: &mut Surroundings<'_, B>,
    ) {
        let Opcode::Data { position, .. } = packet.header().opcode else {
            around.counters.wrong_state += 1;
            return;
        };
        let place = self.expected.near(packet.header().psn);
        let late = self.expected.since(place);
        if 0 < late && late <= LATE_COPIES {
            around.counters.duplicate_request += 1;
            return;
        }
        if place != self.expected {
            around.counters.out_of_seq_request += 1;
        }
        if position.begins() || place != self.expected {
            // A new message ends the one that has begun, whose rest was lost.
            self.inbound.forget();
        }
        if !position.begins() && !self.inbound.is_begun() {
            around.counters.uc_dropped_pkts += 1;
            // After a gap all packets are dropped until a message begins; `expected` lets duplicates of them be recognized.
            self.expected = self.expected.max(place.plus(1));
            return;
        }
        self.expected = place.plus(1);
        if let Err(refused) = self.inbound.take(packet, around) {
            around.counters.uc_dropped_pkts += 1;
            around.counters.mtu_violations += u64::from(refused == Refused::Mtu);
            around.counters.resp_remote_access_errors +=
                u64::from(refused == Refused::RemoteAccess);
            self.inbound.forget();
        }
    }
}
