//! The embedded software switch: ports, packet loop, P4Runtime server.
