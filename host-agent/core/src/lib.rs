//! The aggregation protocol's state machines: worker, server, slot, quantisation. Pure.
