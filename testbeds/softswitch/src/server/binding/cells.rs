//! Converts counters and meters between P4Runtime messages and the program's values (P4Runtime 1.4, sections 9.3 and 9.4).

use super::invalid;
use p4rt::status::UpdateError;
use p4rt::v1;
use pipeline::{CounterValue, MeterConfig};

type Result<T> = std::result::Result<T, UpdateError>;

/// Converts a meter's configuration from P4Runtime; all meters of this switch are two-rate three-color markers.
pub(in crate::server) fn meter_config(config: &v1::MeterConfig) -> Result<MeterConfig> {
    let value = |name: &str, value: i64| {
        u64::try_from(value).map_err(|_| invalid(format!("meter config: {name} is negative")))
    };
    if config.eburst != 0 {
        return Err(invalid(
            "meter config: eburst is only for single-rate meters",
        ));
    }
    let config = MeterConfig {
        cir: value("cir", config.cir)?,
        cburst: value("cburst", config.cburst)?,
        pir: value("pir", config.pir)?,
        pburst: value("pburst", config.pburst)?,
    };
    if config.cir > config.pir {
        return Err(invalid(
            "meter config: the committed rate is above the peak rate",
        ));
    }
    Ok(config)
}

/// Converts a meter's configuration to P4Runtime.
pub(in crate::server) fn config_to_proto(config: MeterConfig) -> v1::MeterConfig {
    v1::MeterConfig {
        cir: config.cir.cast_signed(),
        cburst: config.cburst.cast_signed(),
        pir: config.pir.cast_signed(),
        pburst: config.pburst.cast_signed(),
        eburst: 0,
    }
}

/// Whether an update resets a meter's counts; they cannot be set to a value other than 0.
pub(in crate::server) fn clears(counts: Option<&v1::MeterCounterData>) -> Result<bool> {
    let Some(counts) = counts else {
        return Ok(false);
    };
    let mut colours = [counts.green, counts.yellow, counts.red]
        .into_iter()
        .flatten();
    if colours.any(|c| c != v1::CounterData::default()) {
        return Err(invalid("a meter's counts can only be set to 0"));
    }
    Ok(true)
}

/// Converts a counter's value from P4Runtime.
pub(in crate::server) fn counter_value(data: &v1::CounterData) -> Result<CounterValue> {
    let value = |value: i64| u64::try_from(value).map_err(|_| invalid("a counter is negative"));
    Ok(CounterValue {
        packets: value(data.packet_count)?,
        bytes: value(data.byte_count)?,
    })
}

/// Converts a counter's value to P4Runtime.
pub(in crate::server) fn counter_to_proto(value: CounterValue) -> v1::CounterData {
    v1::CounterData {
        byte_count: value.bytes.cast_signed(),
        packet_count: value.packets.cast_signed(),
    }
}

/// Converts a meter's packet and byte counts of each color to P4Runtime.
pub(in crate::server) fn counts_to_proto(counts: &pipeline::ColourCounts) -> v1::MeterCounterData {
    let [green, yellow, red] = counts.map(|count| Some(counter_to_proto(count)));
    v1::MeterCounterData { green, yellow, red }
}
