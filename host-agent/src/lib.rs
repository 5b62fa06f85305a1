//! Workers and parameter servers over raw packets.
